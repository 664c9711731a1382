"""A hypervisor may give a CPU the model's number of an older one, by which LLVM names it."""

import pytest

from selfbyoc.common import cpu_features
from selfbyoc.machine import host, machine
from selfbyoc.machine.features import known_cpus
from selfbyoc.tvm import make_target, tvm

pytestmark = pytest.mark.skipif(
    host.architecture("llvm") != "x86_64", reason="LLVM's names of x86 CPUs"
)
ROCKET_LAKE = frozenset(
    {"avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd", "avx512vnni"}
)
SAPPHIRE_RAPIDS = frozenset(cpu_features.X86) - {
    "sse4a", "tbm", "xop", "fma4", "avxifma", "avxvnniint8", "avxneconvert", "avxvnniint16",
}  # fmt: skip


@pytest.fixture
def pretend(monkeypatch):
    """The machine that LLVM calls `name` and that shows these features."""

    def pretending(name, features):
        monkeypatch.delenv(cpu_features.PRETENDED, raising=False)
        monkeypatch.setattr(tvm.target.codegen, "llvm_get_system_cpu", lambda: name)
        monkeypatch.setattr(cpu_features, "detected", lambda _: features)
        host._cpu.cache_clear()

    yield pretending
    monkeypatch.undo()
    host._cpu.cache_clear()


def test_a_newer_core_under_an_old_name(pretend):
    pretend("icelake-client", SAPPHIRE_RAPIDS)
    assert host.core() == "sapphirerapids"
    if "sapphirerapids" in known_cpus():
        assert host.cpu() == "sapphirerapids"
    assert machine(make_target(f"llvm -mcpu={host.cpu()}")).multiply_adds == 2


def test_what_its_name_says_stays(pretend):
    pretend("icelake-client", ROCKET_LAKE)
    assert host.cpu() == host.core() == "icelake-client"
    assert machine(make_target("llvm -mcpu=icelake-client")).multiply_adds == 1


def test_a_cpu_without_a_name(pretend):
    pretend("generic", frozenset({"avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe", "popcnt",
                                  "sse3", "ssse3", "sse4.1", "sse4.2", "avx"}))  # fmt: skip
    assert host.cpu() == host.core() == "haswell"
