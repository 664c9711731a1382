"""The kernels of a partitioned module, and the level that each takes."""

import pytest
from harness import model, random_args

import selfbyoc
from selfbyoc import Case, Composite, host_target, op
from selfbyoc._tvm import make_target
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.apply import DEFAULT, OWN, level_of


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
