"""Code runs only where it can: features by target and host, unknown names, libraries, commands."""

import os
import subprocess
import sys

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.common import cpu_features
from selfbyoc.errors import InputError, TargetError, TuningError
from selfbyoc.machine import host
from selfbyoc.machine.features import check_cpu, features_of, known_cpus
from selfbyoc.tvm import GENERATION, make_target, target_dict

X, W = (np.random.default_rng(n).standard_normal((24, 24), "float32") for n in (1, 2))
DENSE = Composite("dense_relu", lambda x, w: op.relu(op.dense(x, w)))
# Nothing has all of these.
BEYOND = "llvm -mcpu=haswell -mattr=+avx512f,+avx512vnni,+xop,+tbm,+fma4"
ARM = "llvm -mtriple=aarch64-linux-gnu"


def model():
    return selfbyoc.emit(
        lambda x, w: op.relu(op.dense(x, w)), {"x": ((24, 24), "float32")}, {"w": W}
    )


def built(target):
    library = selfbyoc.build(model(), target, composites=[DENSE])
    assert library.report.counts == {"dense_relu": 1}
    return library


@pytest.mark.parametrize(
    ("target", "has", "lacks"),
    [
        ("llvm", {"sse2", "64bit"}, {"sse3", "avx"}),
        ("llvm -mcpu=nehalem", {"sse4.2", "popcnt"}, {"avx"}),
        ("llvm -mcpu=haswell", {"avx2", "fma", "bmi2"}, {"avx512f"}),
        ("llvm -mcpu=haswell -mattr=-fma", {"avx2"}, {"fma"}),
        ("llvm -mcpu=haswell -mattr=-avx", {"sse4.2"}, {"avx", "avx2", "fma"}),
        ("llvm -mattr=+avx2", {"avx", "sse4.2", "avx2"}, {"fma"}),
        ("llvm -mcpu=cascadelake", {"avx512f", "avx512vnni"}, {"avx512bf16"}),
        (f"{ARM} -mcpu=neoverse-n1", {"neon", "dotprod"}, {"avx", "sve"}),
        (ARM, {"neon"}, {"dotprod", "sse2"}),
        ("c", set(), {"sse2", "neon"}),
    ],
)
def test_features_of_a_target(target, has, lacks):
    on_x86 = target.startswith("llvm") and "mtriple" not in target
    found = features_of(f"{target} -mtriple=x86_64-linux-gnu" if on_x86 else target)
    assert has <= found
    assert not lacks & found


def test_here():
    """The host runs its own target; nothing that beats every CPU runs, nor another's code."""
    assert host.lacking(selfbyoc.host_target()) == ()
    assert host.lacking("llvm") == ()
    assert host.lacking("c") == host.lacking("cuda") == ()
    assert "cuda" in host.cannot_run("cuda")
    for target in ("c", "llvm"):
        host.check_runs(target, "it")
    with pytest.raises(TargetError, match=r"it: this TVM .* is built without a runtime for metal"):
        host.check_runs("metal", "it")
    assert host.lacking(BEYOND)
    riscv = {"kind": "llvm", "mtriple": "riscv64-linux-gnu", "mcpu": "generic-rv64"}
    assert host.lacking(riscv) == ("riscv64",)
    host.check_runs("llvm", "a kernel")
    with pytest.raises(
        TargetError, match=r"^a kernel: code for llvm -mcpu=haswell .*may use .*xop"
    ):
        host.check_runs(BEYOND, "a kernel")


def test_what_only_the_system_uses_is_not_asked_for():
    """Such features are in a CPU's list, not in its code: a machine without them runs it."""
    here = host.cpu()
    if not here:
        pytest.skip("this LLVM has no name for the CPU")
    more = "+sgx,+invpcid,+clzero,+mwaitx,+pku,+aes,+sha,+rdrnd,+prfchw"
    assert host.lacking(f"llvm -mcpu={here} -mattr={more}") == ()


X86 = pytest.mark.skipif("sse2" not in features_of("llvm"), reason="tables of x86")


@X86
def test_amds_extras_may_be_left_out():
    target = f"llvm -mcpu={host.cpu() or 'x86-64'} -mattr=+sse4a,+tbm"
    fitted = host.fitted(target)
    assert host.runs(fitted)
    assert features_of(fitted) - {"sse4a", "tbm"} == features_of(target) - {"sse4a", "tbm"}
    assert target_dict(host.fitted(BEYOND)) == target_dict(make_target(BEYOND))  # no help there


def rows(**bits):
    """CPUID with these features in its registers, and these in force."""
    found = {row: [0] * 8 for row in (0, 1, 2, 6)}
    for kind, offset in (("has", 0), ("force", 4)):
        for name in bits.get(kind, ()):
            row, register, bit, _ = cpu_features.X86[name]
            found[row][register + offset] |= 1 << bit
    return found


@pytest.mark.parametrize(
    ("has", "force", "expected"),
    [
        ({"sse4.2", "bmi"}, set(), {"sse4.2", "bmi"}),
        ({"avx", "avx2"}, {"avx", "avx2"}, {"avx", "avx2"}),
        ({"avx", "avx2", "popcnt"}, set(), {"popcnt"}),  # the system saves no wide registers
        ({"avx", "avx512f", "avx512bw"}, {"avx"}, {"avx"}),
        ({"avx", "avxvnniint8", "avx512f", "avx512fp16"}, {"avx", "avx512f"},
         {"avx", "avxvnniint8", "avx512f", "avx512fp16"}),  # newer than the C library
    ],
)  # fmt: skip
def test_registers_that_the_system_saves(has, force, expected):
    assert cpu_features.from_cpuid(rows(has=has, force=force)) == expected


@X86
def test_the_kernel_agrees_with_the_c_library(monkeypatch):
    asked = cpu_features._x86()
    monkeypatch.setattr(cpu_features, "_cpuid", lambda: None)
    if not cpu_features.cpuinfo():
        pytest.skip("no flags in /proc/cpuinfo")
    assert "sse3" in asked
    assert asked <= cpu_features._x86()  # under an emulator that shows the machine below


def test_what_the_name_promises_and_the_system_keeps_is_switched_off(monkeypatch):
    if not host.cpu() or "sse4.2" not in host.features():
        pytest.skip("nothing to keep from this CPU")
    monkeypatch.setattr(host, "_features", lambda _: frozenset({"sse3", "ssse3"}))
    target = selfbyoc.host_target()
    assert "-sse4.2" in target_dict(target)["mattr"]
    assert host.lacking(target) == ()
    assert "avx" not in features_of(target)


# ---- unknown names


def entries(target):
    """Every road on which a target enters."""
    parted = selfbyoc.partition_for_tefuse(model(), composites=[DENSE])
    return {
        "build": lambda: selfbyoc.build(model(), target),
        "partition": lambda: selfbyoc.partition_for_tefuse(model(), target=target),
        "hook": lambda: selfbyoc.build(parted, target),
        "verify": lambda: selfbyoc.verify(model(), target=target),
        "melting": lambda: selfbyoc.melting(parted, target),
        "explain": lambda: selfbyoc.explain(model(), target=target),
        "features": lambda: features_of(target),
    }


@pytest.mark.parametrize("entry", list(entries("llvm")))
def test_an_unknown_cpu_names_its_nearest(entry):
    with pytest.raises(
        TargetError, match=r"no -mcpu=haswel; the nearest known are haswell.*-mattr"
    ):
        entries("llvm -mcpu=haswel")[entry]()


@pytest.mark.parametrize(
    ("name", "near"),
    [("cascade-lake", "cascadelake"), ("znver9", "znver"),
     ("icelake", "icelake-client, icelake-server"), ("HASWELL", "haswell"), ("qqq", "")],
)  # fmt: skip
def test_nearest(name, near):
    with pytest.raises(TargetError, match=rf"no -mcpu={name}.* Describe a CPU") as caught:
        check_cpu(f"llvm -mcpu={name} -mtriple=x86_64-linux-gnu")
    assert near in str(caught.value)
    assert ("nearest" in str(caught.value)) == (name != "qqq")


@pytest.mark.parametrize(
    ("name", "older"),
    [("znver3", "znver2"), ("sapphirerapids", "icelake-server"), ("alderlake", "skylake"),
     ("x86-64-v3", "haswell")],
)  # fmt: skip
def test_what_an_old_llvm_lacks_is_named_with_what_came_before(name, older):
    if name in known_cpus():
        check_cpu(f"llvm -mcpu={name}")
        return
    assert GENERATION == "relay"  # LLVM 10
    with pytest.raises(TargetError, match=rf"no -mcpu={name}; the nearest known are {older}"):
        check_cpu(f"llvm -mcpu={name}")


def test_a_feature_without_a_sign():
    with pytest.raises(TargetError, match=r"-mattr=avx2: .* write \+avx2 or -avx2"):
        selfbyoc.build(model(), "llvm -mattr=avx2")


# ---- running


@pytest.mark.parametrize("target", [BEYOND, ARM])
def test_built_for_another_cpu(target):
    """To build is allowed, to run is not, on any road."""
    library = built(target)
    for run in (lambda: library(X), library.session, lambda: library.prepared(X)):
        with pytest.raises(TargetError, match=r"library: code for llvm .*selfbyoc.host_target"):
            run()


def test_an_exported_library_knows_its_target(tmp_path):
    path = tmp_path / "model.so"
    built(BEYOND).export_library(path)
    with pytest.raises(TargetError, match=r"model.so: code for llvm -mcpu=haswell .*may use"):
        selfbyoc.load(path)
    own = built(None)
    own.export_library(path)
    again = selfbyoc.load(path)
    assert target_dict(again.target) == target_dict(own.target) == target_dict(host_target())
    np.testing.assert_array_equal(again(X)[0], own(X)[0])


def host_target():
    return selfbyoc.host_target()


def test_a_library_of_another_tool_has_no_note(tmp_path):
    own = built(None)
    own.native.export_library(str(tmp_path / "model.so"))
    again = selfbyoc.load(tmp_path / "model.so", own)
    assert again.target is None
    np.testing.assert_array_equal(again(X)[0], own(X)[0])


def test_a_note_that_cannot_be_read(tmp_path):
    (tmp_path / "model.so").write_bytes(b'\x7fELF..selfbyoc.note={"target": {"kind"\0')
    with pytest.raises(TargetError, match=r"model.so: its note cannot be read"):
        selfbyoc.load(tmp_path / "model.so")


def test_nothing_is_measured_for_another_cpu(tmp_path):
    parted = selfbyoc.partition_for_tefuse(model(), target=BEYOND, composites=[DENSE])
    with pytest.raises(TargetError, match="time: code for"):
        selfbyoc.melting(parted, BEYOND, time=True)
    with pytest.raises(InputError, match="nothing can be measured: code for"):
        selfbyoc.build(model(), BEYOND, composites=[DENSE], guard=selfbyoc.MeasuredGuard())
    verdicts = selfbyoc.verify(parted, target=BEYOND).verdicts
    assert [v.status for v in verdicts] == ["refused"]
    pytest.importorskip("cloudpickle", reason="the tune extra is not installed")
    with pytest.raises(TuningError, match="target: code for"):
        selfbyoc.tune(model(), BEYOND, trials=1, work_dir=tmp_path)


# ---- a lesser machine


def told(name):
    """What a process says that is told to be another machine."""
    code = (
        "import selfbyoc; from selfbyoc.machine import host; t = selfbyoc.host_target()\n"
        "print(host.cpu(), t.attrs['mcpu'], *sorted(host.features()))\n"
        "print(*host.lacking('llvm -mcpu=haswell'))"
    )
    env = {**os.environ, "SELFBYOC_CPU": name, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )


@X86
def test_a_lesser_cpu_by_the_environment():
    if not host.runs("llvm -mcpu=nehalem"):
        pytest.skip("there is hardly a lesser one")
    done = told("nehalem")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.split()[:2] == ["nehalem", "nehalem"]
    assert "sse4.2" in first
    assert "avx" not in first
    assert {"avx2", "fma"} <= set(second.split())


@X86
@pytest.mark.parametrize(
    ("name", "error"), [("haswell", "lacks .*avx2"), ("nosuch", "LLVM .* knows no -mcpu=nosuch")]
)
def test_an_environment_that_contradicts_the_machine(name, error, monkeypatch):
    real = host._features
    monkeypatch.setattr(host, "_features", lambda told: real(told) if told else frozenset({"sse3"}))
    monkeypatch.setenv("SELFBYOC_CPU", name)
    host._check_pretended.cache_clear()
    for ask in (host.cpu, host.features, selfbyoc.host_target, lambda: selfbyoc.build(model())):
        with pytest.raises(TargetError, match=f"^SELFBYOC_CPU={name}: .*{error}"):
            ask()
