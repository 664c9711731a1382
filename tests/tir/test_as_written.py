"""Kernels whose register tiles fill all registers ask LLVM to leave their loops as they are."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.machine.features import known_cpus
from selfbyoc.tir.as_written import target_as_written
from selfbyoc.tvm import make_target, target_dict


def plain(x, w):
    return op.conv2d(x, w)


def scheduled(program, shapes, target):
    weights = {"w": np.ones(shapes["w"], "float32")}
    mod = emit(program, {"x": (shapes["x"], "float32")}, weights)
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=target))
    return kernel.schedule(target)[1].mod["main"]


@pytest.mark.skipif("znver3" not in known_cpus(), reason="LLVM 10 ends at znver2, as it should be")
@pytest.mark.parametrize(
    ("program", "shapes", "cpu"),
    [
        (plain, {"x": (1, 24, 14, 14), "w": (100, 24, 1, 1)}, "znver2"),
        (  # two steps of a window's sums fit
            lambda x, w: op.conv2d(x, w, groups=24, padding=1),
            {"x": (1, 24, 56, 56), "w": (24, 1, 3, 3)},
            "znver3",
        ),
    ],
)
def test_who_asks(program, shapes, cpu):
    target = make_target({"kind": "llvm", "mcpu": "znver3", "num-cores": 2})
    func = scheduled(program, shapes, target)
    assert target_dict(target_as_written([func], target))["mcpu"] == cpu


def test_other_cpus_do_not_care():
    target = make_target({"kind": "llvm", "mcpu": "haswell", "num-cores": 2})
    func = scheduled(plain, {"x": (1, 24, 14, 14), "w": (100, 24, 1, 1)}, target)
    assert target_as_written([func], target) is target
