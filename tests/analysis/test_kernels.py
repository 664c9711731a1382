"""The kernels of a partitioned module, and the level that each takes."""

import inspect

import numpy as np
import pytest
from harness import model, random_args

import selfbyoc
from selfbyoc import Case, Composite, emit, host_target, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.apply import DEFAULT, OWN, level_of
from selfbyoc.ir.generation import ir
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.runtime.tolerance import first_wrong, longest_reduction
from selfbyoc.tvm import make_target


def test_every_match_has_its_kernel():
    def program(x, w0, w1, w2):
        y = op.relu(op.dense(op.relu(op.dense(x, w0)), w1))
        return op.softmax(op.dense(y, w2))

    case = Case(
        program, constants=("w0", "w1", "w2"), x=(5, 33), w0=(33, 33), w1=(33, 33), w2=(7, 33)
    )
    composites = [c for c in selfbyoc.BUILTIN if c.name in ("dense", "softmax")]
    mod = selfbyoc.partition_for_tefuse(
        model(composites[0], case, random_args(case)), composites=composites
    )
    found = kernels(mod)
    matched = selfbyoc.report(mod).matched
    assert sorted(r for k in found for r in k.roots) == sorted(r.root for r in matched)
    by_root = {root: k for k in found for root in k.roots}
    for record in matched:
        kernel = by_root[record.root]
        assert kernel.composite.name == record.composite
        assert kernel.match.root.kind == record.root.rsplit("_", 1)[0]
        assert len(kernel.calls) == len(kernel.roots)
        _, scheduled = kernel.schedule(host_target())
        assert scheduled.level.name == OWN


@pytest.mark.parametrize("layers", [1, 4])
def test_equal_composites_are_one_kernel(layers, tmp_path):
    """Bottlenecks of one shape with weights of their own, as ResNet repeats them."""

    def program(x, **weights):
        for n in range(layers):
            y = op.relu(op.conv2d(x, weights[f"a{n}"]))
            x = op.relu(op.add(op.conv2d(y, weights[f"b{n}"], padding=1), x))
        return x

    rng = np.random.default_rng(0)
    shapes = {"x": (1, 24, 9, 7)}
    for n in range(layers):
        shapes |= {f"a{n}": (8, 24, 1, 1), f"b{n}": (24, 8, 3, 3)}
    arrays = {n: (rng.standard_normal(s) / 8).astype("float32") for n, s in shapes.items()}
    program.__signature__ = inspect.Signature(
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in shapes]
    )
    constants = {n: a for n, a in arrays.items() if n != "x"}
    library = selfbyoc.build(emit(program, shapes, constants), cache=tmp_path)
    assert sum(library.report.counts.values()) == 2 * layers
    assert (len(library.cache.misses), library.cache.hits) == (2, [])
    graph = ir.read(emit(program, shapes)["main"])
    (expected,) = evaluate(graph, list(arrays.values()))
    (found,) = library(arrays["x"])
    assert first_wrong(found, expected, "float32", longest_reduction(graph)) is None


@pytest.mark.parametrize(
    ("schedule", "told", "level", "reason"),
    [
        (None, "", DEFAULT, "composite one has no schedule of its own"),
        ({"cuda": print, "c": print}, "", DEFAULT,
         "composite one has a schedule for c, cuda, not llvm"),
        ({"llvm": print}, "", OWN, "composite one has a schedule for llvm"),
        (print, "", OWN, "composite one has a schedule for llvm"),
        (print, "it computed 3 wrong elements", DEFAULT, "it computed 3 wrong elements"),
    ],
)  # fmt: skip
def test_level(schedule, told, level, reason):
    found = level_of(Composite("one", lambda x: op.relu(x), schedule), make_target("llvm"), told)
    assert (found.name, found.reason) == (level, reason)
