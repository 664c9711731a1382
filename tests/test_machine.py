"""What a target says of its machine."""

import pytest

from selfbyoc._tvm import make_target
from selfbyoc.schedules.machine import machine


@pytest.mark.parametrize(
    ("target", "vector_bytes", "registers"),
    [
        ("llvm -mcpu=cascadelake", 64, 32),
        ("llvm -mcpu=skylake-avx512", 64, 32),
        ("llvm -mcpu=skylake", 32, 16),
        ("llvm -mcpu=haswell", 32, 16),
        ("llvm -mattr=+avx2,+fma", 32, 16),
        ("llvm -mattr=+avx512f,+avx512vl", 64, 32),
        ("llvm -mcpu=haswell -mattr=-avx512f", 32, 16),
        ("llvm -mtriple=aarch64-linux-gnu", 16, 32),
        ("llvm", 16, 16),
        ("c", 16, 16),
    ],
)
def test_vectors_and_registers(target, vector_bytes, registers):
    cpu = machine(make_target(target))
    assert (cpu.vector_bytes, cpu.vector_registers) == (vector_bytes, registers)


def test_lanes_by_dtype():
    cpu = machine(make_target("llvm -mcpu=cascadelake"))
    lanes = {d: cpu.lanes(d) for d in ("float64", "float32", "float16", "int8")}
    assert lanes == {"float64": 8, "float32": 16, "float16": 32, "int8": 64}


def test_cores_of_the_target_come_before_those_of_the_process():
    assert machine(make_target("llvm -num-cores=7")).cores == 7
    assert machine(make_target("llvm")).cores >= 1
