"""Which OpenCL runtime serves: each is asked, in a process of its own, and says itself why not."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import broken_programs
import pytest
from harness import served
from scripts import tool

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.__main__ import main
from selfbyoc.analysis.gpu import opencl, opencl_question, runtimes
from selfbyoc.common.optional import is_installed
from selfbyoc.errors import MissingExtra, ToolError
from selfbyoc.runtime.system_compiler import does_not_compile
from selfbyoc.tvm import tvm

SUPPORT = Path(__file__).parents[2] / "support"
TOLD = {
    "compiles nothing": "error: unknown target CPU 'generic'",
    "crashes": "ended by Aborted (signal 6)",
    "hangs": "no answer within 2 s",
    "computes wrong": "it computes 1 of 192 numbers wrong",
}


def model():
    return emit(lambda x: op.softmax(x), {"x": ((3, 17), "float32")})


@pytest.fixture(autouse=True)
def _asked_afresh():
    afresh()
    yield
    afresh()


def afresh():
    runtimes._asked.cache_clear()
    runtimes.alone.cache_clear()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Call it with what the runtimes do, the first first."""
    monkeypatch.syspath_prepend(SUPPORT / "fake_opencl")
    monkeypatch.delitem(sys.modules, "pyopencl", raising=False)

    def install(*how):
        for number, name in enumerate(how):
            (tmp_path / f"{number}-{name}.icd").write_text("libc.so.6\n")
        if "hangs" in how:
            monkeypatch.setattr("selfbyoc.common.probes.SECONDS", 2.0)
        monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))

    return install


@pytest.mark.parametrize("how", TOLD)
def test_a_runtime_that_does_not_serve(how, installed):
    installed(how)
    told = f"no OpenCL runtime serves here: Planted that {how} 1.0, a CPU: {TOLD[how]}"
    with pytest.raises(ToolError) as raised:
        selfbyoc.verify(model(), target=opencl.TARGET)
    assert str(raised.value).startswith(told)
    assert runtimes.cannot_run() == str(raised.value)


@pytest.mark.parametrize("how", TOLD)
def test_the_second_serves(how, installed):
    installed(how, "serves")
    assert runtimes.cannot_run() == ""
    assert str(runtimes.serving()) == "Planted that serves 1.0, a CPU"
    assert runtimes.serving().file.name == "1-serves.icd"


@pytest.mark.parametrize(("how", "halves"), [("serves", False), ("serves halves", True)])
def test_whether_it_has_halves(how, halves, installed):
    """POCL 3.0 has none on any CPU: `make gpu` says of cases of float16 that they are not run."""
    installed(how)
    assert runtimes.serving().halves == halves


def test_a_runtime_that_serves_alone_and_not_here(installed):
    """As Intel's, where OpenVINO has loaded another libtbb.so.12."""
    installed("serves alone", "serves")
    assert runtimes.serving().platform == "Planted that serves"
    assert isinstance(runtimes.alone(next(runtimes.files())), runtimes.Runtime)
    afresh()
    Path(os.environ["OCL_ICD_VENDORS"], "1-serves.icd").unlink()
    told = "serves alone 1.0, a CPU: beside what this process has loaded: ended by Aborted (signal"
    assert told in runtimes.cannot_run()


def test_what_is_loaded_later_is_asked_about(installed, monkeypatch):
    installed("serves")
    asks = []
    monkeypatch.setattr(runtimes, "beside", lambda runtime: asks.append(1) or runtime)
    for loaded in ("a.so", "a.so", "b.so", "a.so"):
        monkeypatch.setattr(runtimes, "_loaded", lambda found=loaded: frozenset([found]))
        assert runtimes.cannot_run() == ""
    assert len(asks) == 2


def test_each_that_does_not_serve_is_told(installed):
    installed("compiles nothing", "computes wrong", "has no CPU")
    told = runtimes.cannot_run().removeprefix("no OpenCL runtime serves here: ")
    assert told.split("; ") == [
        "Planted that compiles nothing 1.0, a CPU: error: unknown target CPU 'generic'",
        "Planted that computes wrong 1.0, a CPU: it computes 1 of 192 numbers wrong",
        "2-has no CPU: it has no CPU (others: apt install pocl-opencl-icd, pip install "
        "'selfbyoc[opencl-intel]')",
    ]


def test_who_was_asked_is_no_advice(installed, tmp_path, monkeypatch):
    installed()
    (tmp_path / "pocl-compiles nothing.icd").write_text("libc.so.6\n")
    monkeypatch.setattr(runtimes, "_VENDORS", tmp_path)
    intel = " (others: pip install 'selfbyoc[opencl-intel]')"
    assert runtimes.cannot_run().endswith(TOLD["compiles nothing"] + intel)
    afresh()
    monkeypatch.setattr(runtimes, "_intel", lambda: tmp_path.glob("*.icd"))
    assert runtimes.cannot_run().endswith(TOLD["compiles nothing"])


def test_a_command_says_it_in_one_line(installed, tmp_path, capsys):
    installed("compiles nothing")
    (tmp_path / "model.json").write_text(tvm.ir.save_json(model()))
    assert main(["verify", str(tmp_path / "model.json"), "--target", "opencl"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: no OpenCL runtime serves here: Planted that compiles nothing")
    assert TOLD["compiles nothing"] in line


def test_tests_are_skipped_with_these_words(installed):
    installed("compiles nothing")
    with pytest.raises(pytest.skip.Exception, match="error: unknown target CPU 'generic'"):
        served(runtimes.cannot_run())


def test_the_table_of_gpu_kernels_says_it(installed, monkeypatch):
    """And what needs no runtime is looked at all the same."""
    installed("compiles nothing")
    gpu = tool("gpu")
    (softmax,) = [c for c in selfbyoc.BUILTIN if c.name == "softmax"]
    monkeypatch.setattr(gpu, "cannot_assemble", lambda: "NVRTC: no")
    line = gpu.of_case(softmax, gpu.smallest(softmax), "opencl")
    assert line["wrong"] == []
    assert TOLD["compiles nothing"] in line["not_run"]
    assert line["kernels"][0]["checked"]
    told = gpu.told(gpu.served("opencl")).splitlines()
    assert told[0].startswith("not run: no OpenCL runtime serves here: Planted")
    assert told[1] == "not compiled as CUDA: NVRTC: no"
    text = gpu.tables([line, json.loads(json.dumps(line))])
    assert "- 2 not run: no OpenCL runtime serves here: Planted" in text
    assert "- 2 not compiled as CUDA: NVRTC: no" in text
    assert "| softmax | 2 | 1 |" in text


def test_no_opencl(monkeypatch, tmp_path):
    monkeypatch.setattr(runtimes.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"OpenCL is not installed: pip install 'selfbyoc\[open"):
        selfbyoc.verify(model(), target=opencl.TARGET)


def test_no_runtime(installed, monkeypatch, tmp_path):
    installed()
    with pytest.raises(MissingExtra, match=r"OpenCL has no runtime here: pip install 'selfbyoc"):
        selfbyoc.verify(model(), target=opencl.TARGET)


# ---- libraries that end the process, or never return, when OpenCL's own loader loads them

LIBRARY = "#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) void f(void) {%s}"


@pytest.mark.parametrize(
    ("body", "told"),
    [("abort();", "ended by Aborted (signal 6)"), ("sleep(600);", "no answer within 0.3 s")],
)
def test_a_library_that_is_no_runtime(body, told, tmp_path, monkeypatch):
    served("" if is_installed("pyopencl") else "pyopencl is not installed")
    served(does_not_compile("cc"))
    (tmp_path / "it.c").write_text(LIBRARY % body)
    command = ["cc", "-shared", "-fPIC", "-o", tmp_path / "planted.so", tmp_path / "it.c"]
    subprocess.run(command, check=True)
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / "planted.so"))
    broken_programs.impatient(monkeypatch, "hangs" if "sleep" in body else "")
    assert runtimes.cannot_run().startswith(f"no OpenCL runtime serves here: planted: {told}")


def test_a_library_that_does_not_load(tmp_path, monkeypatch):
    """As Intel's without intel-cmplr-lib-rt; the loader would say that there is no platform."""
    served("" if is_installed("pyopencl") else "pyopencl is not installed")
    (tmp_path / "intel.icd").write_text("/opt/anaconda1anaconda2anaconda3/lib/libintelocl.so\n")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / "intel.icd"))
    assert "intel: OSError: /opt/anaconda1anaconda2" in runtimes.cannot_run()


# ---- what serves here


def test_the_runtime_that_serves_is_named(opencl):
    found = selfbyoc.verify(model(), target=selfbyoc.analysis.gpu.opencl.TARGET, kinds=["random"])
    assert found.counts == {"passed": 1}
    assert found.ran_by == str(runtimes.serving())
    assert found.summary.endswith(f"; run by {found.ran_by}")
    assert json.loads(found.to_json())["ran_by"] == found.ran_by


def pocl():
    """Of its wheel; it must serve here."""
    known = [file for file in runtimes.files() if file.name == "pocl.icd"]
    served("" if known else "POCL's wheel is not installed")
    return known[0]


def test_a_runtime_whose_barriers_do_nothing(monkeypatch):
    """POCL, told to leave them out."""
    file = pocl()
    monkeypatch.setenv("OCL_ICD_VENDORS", str(file))
    served(runtimes.cannot_run())
    afresh()
    monkeypatch.setenv("POCL_EXTRA_BUILD_FLAGS", "-Dbarrier(x)=")
    assert "it computes 192 of 192 numbers wrong" in runtimes.cannot_run()


def test_pocl_on_a_cpu_that_it_does_not_know():
    """A Zen 5, of which LLVM 14 has not heard, as qemu shows it."""
    file, emulator = pocl(), shutil.which("qemu-x86_64")
    served(tool("emulated").cannot_emulate("haswell"))
    command = [emulator, "-cpu", "EPYC,family=26,model=36", sys.executable, "-c"]
    command += [Path(opencl_question.__file__).read_text(), "", *runtimes.OPTIONS]
    env = {**os.environ, **runtimes.only(file), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert "Portable Computing Language" in done.stdout
    assert "error: unknown target CPU 'generic'" in done.stderr
    assert done.returncode == 1
