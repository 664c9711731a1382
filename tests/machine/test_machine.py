"""What a target says of its machine."""

import pytest

from selfbyoc import host_target
from selfbyoc.machine import host, machine
from selfbyoc.machine.features import known_cpus
from selfbyoc.schedules.steps.tiles import RegisterTile, most_sums
from selfbyoc.tvm import make_target


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


@pytest.mark.parametrize(
    ("target", "l1", "l2"),
    [
        ("llvm -mcpu=znver2", 32, 512),
        ("llvm -mcpu=sapphirerapids", 48, 2048),
        ("llvm -mcpu=x86-64-v3", 32, 256),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1", 64, 1024),
        ("llvm -mtriple=aarch64-linux-gnu", 32, 256),
        ("llvm", 32, 256),
    ],
)
def test_caches_by_name(target, l1, l2, monkeypatch):
    name = target.partition("-mcpu=")[2]
    if name and name not in known_cpus("aarch64-linux-gnu" if "aarch64" in target else ""):
        pytest.skip(f"this TVM's LLVM does not know {name}")
    monkeypatch.setattr(host, "cpu", lambda: "")
    cpu = machine(make_target(target))
    assert (cpu.l1_bytes, cpu.l2_bytes) == (l1 << 10, l2 << 10)


def test_bandwidths_by_name():
    named, least = machine(make_target("llvm -mcpu=cascadelake")), machine(make_target("llvm"))
    assert (named.memory_bandwidth, named.l2_bandwidth, named.l3_bandwidth) == (5.0, 32.0, 15.0)
    assert (least.memory_bandwidth, least.l2_bandwidth, least.l3_bandwidth) == (4.0, 32.0, 12.0)


def test_the_hosts_own_caches_are_asked_for(monkeypatch):
    target = host_target()
    monkeypatch.setattr(host, "cpu", lambda: target.attrs.get("mcpu"))
    monkeypatch.setattr(host, "cache_bytes", lambda: {1: 12345})
    cpu = machine(target)
    assert cpu.l1_bytes == (12345 if target.attrs.get("mcpu") else 32 << 10)
    assert cpu.l2_bytes >= 256 << 10  # not told: by the name


def test_caches_as_linux_lists_them(tmp_path):
    for n, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2M"), ("3", "U", "?")]
    ):
        (tmp_path / f"index{n}").mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (tmp_path / f"index{n}" / name).write_text(text + "\n")
    (tmp_path / "index9").mkdir()
    assert host.cache_bytes(tmp_path) == {1: 48 << 10, 2: 2 << 20}


@pytest.mark.parametrize(
    ("target", "sums"),
    [
        ("llvm", 10),  # SSE: a product overwrites a copy of its operand
        ("llvm -mcpu=haswell", 12),
        ("llvm -mtriple=aarch64-linux-gnu", 24),
        ("llvm -mcpu=cascadelake", 24),
    ],
)
def test_sums_and_operands_fit_in_registers(target, sums):
    cpu = machine(make_target(target))
    assert most_sums(cpu) == sums
    assert RegisterTile(sums, 1).fits(cpu)
    assert not RegisterTile(sums + 1, 1).fits(cpu)
    # Of a step's operands the tile's vectors are held, or as many as the schedule says.
    assert not RegisterTile(1, sums).fits(cpu)
    assert RegisterTile(1, sums).fits(cpu, held=1)


def test_an_operand_in_memory_needs_no_register():
    avx512 = machine(make_target("llvm -mcpu=cascadelake"))
    neon = machine(make_target("llvm -mtriple=aarch64-linux-gnu"))
    assert RegisterTile(3, 8).fits(avx512)
    assert not RegisterTile(3, 8).fits(neon)
