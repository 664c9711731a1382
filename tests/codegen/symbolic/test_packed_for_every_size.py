"""Weights of a symbolic batch are packed before any size is known: no plan may ask one question in
two ways then.
"""

import pytest
from harness import CASES, random_args

import selfbyoc
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.pack import packable, packed_types
from selfbyoc.ir.emit import emit
from selfbyoc.language.decisions import for_every_size_of
from selfbyoc.tvm import make_target

TARGETS = [make_target(t) for t in ("llvm -mcpu=cascadelake", "llvm -mcpu=haswell", "llvm")]
HAVE_WEIGHTS = [p for p in CASES if p.values[1].constants]


@pytest.mark.parametrize(("composite", "case"), HAVE_WEIGHTS)
def test_packing_asks_each_question_once(composite, case):
    constants = {name: random_args(case)[name] for name in case.constants}
    mod = emit(case.program or composite.pattern, case.args, constants)
    for kernel in kernels(selfbyoc.partition_for_tefuse(mod, composites=[composite])):
        graph, constant = kernel.source.graph, kernel.calls[0]
        found = packable(graph, kernel.match)
        wanted = {i: name for i, name in found.items() if i in constant}
        batch = next(v.shape[0] for i, v in enumerate(graph.inputs) if i not in constant)
        for target in TARGETS:
            with target, for_every_size_of([batch]):
                assert set(packed_types(graph, kernel.match, wanted)) == set(wanted)
