"""Each function of a kernel has a stack frame that begins at a whole vector."""

import re

import numpy as np
import pytest
from against_numpy import normal, taken

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.ir.emit import emit
from selfbyoc.tir.aligned_stack import with_aligned_stack
from selfbyoc.tir.lowering import finished, machine_code
from selfbyoc.tvm import make_target, module_source

ROWS = (61, 40), (56, 40)  # tails of rows and of columns


def scheduled(cpu):
    mod = emit(lambda x, w: op.dense(x, w), {"x": ROWS[0]}, {"w": np.ones(ROWS[1], "float32")})
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod))
    target = make_target({"kind": "llvm", "mcpu": cpu, "num-cores": 2})
    return kernel.schedule(target)[1].mod["main"], target


@pytest.mark.parametrize(("cpu", "vector"), [("skylake-avx512", 64), ("haswell", 32)])
def test_frames_begin_at_a_vector(cpu, vector):
    func, target = scheduled(cpu)
    finished_func = finished(func, target).with_attr("global_symbol", "dense")
    assembly = module_source(machine_code(finished_func, "dense", target), "asm")
    assert re.findall(r"^\tandq\t\$-(\d+), %rsp$", assembly, re.MULTILINE) == [str(vector)]


def test_vectors_of_16_bytes_need_none():
    func, _ = scheduled("haswell")
    assert with_aligned_stack(func, 4).same_as(func)
    assert not with_aligned_stack(func, 8).same_as(func)


def test_results_stay():
    x, w = normal(*ROWS[0], seed=1), normal(*ROWS[1], seed=2)
    assert taken(lambda x, w: op.dense(x, w), {"x": x}, {"w": w}) == {"dense": 1}
