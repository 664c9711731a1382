"""Programs that are installed and do not serve: told in one line by whoever would have used them,
with the program's own words. Of all this nothing is different on Relay.
"""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import broken_programs
import pytest
from harness import is_of_others, served
from scripts import tool

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.__main__ import main
from selfbyoc.codegen.cache import keys
from selfbyoc.common import probes
from selfbyoc.common.probes import Answer, ask, ask_beside, ask_python, once, telling
from selfbyoc.errors import ToolError
from selfbyoc.runtime import system_compiler

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import browser  # isort: skip
from other_cpus import aarch64, mca  # isort: skip
from zoo_models.run import commit  # isort: skip

BROKEN = list(broken_programs.HOW)
pytestmark = pytest.mark.usefixtures("asked_afresh")


def on_path(monkeypatch, folder):
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


# ---- a question


def test_a_right_answer():
    found = ask(["cat"], "^forty-two\n$", given="forty-two\n")
    assert (found.printed, found.why_not) == ("forty-two\n", "")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("echo 41", "the answer '41' is wrong"),
        ("exit 3", "status 3"),
        ("echo first >&2; echo 'fatal error: x.h' >&2; echo last >&2; exit 1", "fatal error: x.h"),
        ("echo only; exit 1", "only"),
        ("echo dying >&2; kill -SEGV $$", "ended by Segmentation fault (signal 11): dying"),
        (r"printf '\033[2Jerror' >&2; exit 1", r"\x1b[2Jerror"),
    ],
)
def test_no_right_answer(tmp_path, text, told):
    assert ask([str(broken_programs.script(tmp_path, "it", text))], "^42\n$").why_not == told


def test_a_fault_of_ours_skips_no_test():
    why = once("a tool of nobody's", [], lambda: "it sleeps")
    assert is_of_others(ToolError(f"export_library needs {why}"))
    assert not is_of_others(ToolError("a context that is not there"))


def test_what_does_not_start(tmp_path):
    assert ask([str(tmp_path / "none")], "").why_not == "does not start: No such file or directory"
    (tmp_path / "text").write_text("no program")
    assert ask([str(tmp_path / "text")], "").why_not == "does not start: Permission denied"


def test_what_hangs_ends_with_all_that_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(probes, "SECONDS", 0.5)
    path = broken_programs.script(tmp_path, "it", f"sleep 600 & echo $! > {tmp_path}/pid; wait")
    assert ask([str(path)], "").why_not == "no answer within 0.5 s"
    child = Path("/proc") / (tmp_path / "pid").read_text().strip()
    for _ in range(100):
        if not child.exists() or "\nState:\tZ" in (child / "status").read_text():
            return
        time.sleep(0.05)
    pytest.fail("its child is still there")


def test_python_code_finds_what_this_process_finds(tmp_path, monkeypatch):
    broken_programs.package(tmp_path, "only_here", "number = 42")
    monkeypatch.syspath_prepend(tmp_path)
    assert ask_python("import only_here; print(only_here.number)", "^42\n").why_not == ""
    assert ask_python("import sys; print(sys.argv[1])", "^42\n", "42").why_not == ""
    found = ask_python("import nowhere", "")
    assert found.why_not == "ModuleNotFoundError: No module named 'nowhere'"


def test_the_telling_line():
    assert telling("") == ""
    assert telling("warning: old\nerror: new\nstopped\n") == "error: new"
    said = "Traceback (most recent call last):\n  raise error\nOSError: x.so: cannot open\n"
    assert telling(said) == "OSError: x.so: cannot open"


def test_a_fork_meets_what_is_loaded():
    seen = {"number": 42}
    assert ask_beside(lambda: print(seen["number"]), "^42\n") == Answer("42\n")
    assert ask_beside(lambda: seen.clear(), "").why_not == ""
    assert seen == {"number": 42}
    assert ask_beside(lambda: sys.exit("no CPU"), "").why_not == "no CPU"
    assert ask_beside(lambda: seen["none"], "").why_not == "KeyError: 'none'"
    assert ask_beside(os.abort, "").why_not == "ended by Aborted (signal 6)"
    assert ask_beside(lambda: print(41), "^42\n").why_not == "the answer '41' is wrong"


def test_a_fork_that_hangs(monkeypatch):
    broken_programs.impatient(monkeypatch, "hangs")
    assert ask_beside(lambda: time.sleep(600), "").why_not == broken_programs.TOLD["hangs"]


# Without TVM, which this module does not need.
ANOTHER_PROCESS = """
import sys, types
sys.modules["selfbyoc"] = package = types.ModuleType("selfbyoc")
package.__path__ = [sys.argv[1]]
from selfbyoc.common.probes import once
print(repr(once("it", [sys.argv[2]], lambda: "asked again")))
"""


def test_whoever_serves_is_asked_once_also_by_the_processes_that_this_one_starts(tmp_path):
    asks = []
    path = broken_programs.script(tmp_path, "it", "echo 42")

    def asking():
        asks.append(1)
        return ask([str(path)], "42").why_not

    assert [once("it", [path], asking) for _ in range(3)] == ["", "", ""]
    assert len(asks) == 1
    command = [sys.executable, "-c", ANOTHER_PROCESS, selfbyoc.__path__[0], str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.stdout == "''\n", done.stderr
    broken_programs.script(tmp_path, "it", "echo 41 by another version")
    assert once("it", [path], asking) == "it: the answer '41 by another version' is wrong"
    assert once("it", [path], asking).startswith("it: ")
    assert len(asks) == 2


def test_who_serves_changes_no_kernel(monkeypatch):
    before = keys._environment()
    monkeypatch.setenv(probes.SERVES, "0123456789abcdef")
    assert keys._environment() == before


# ---- programs


@pytest.mark.parametrize("how", BROKEN)
def test_a_compiler(how, tmp_path, monkeypatch):
    path = broken_programs.plant(tmp_path / "bin", "c++", how)
    monkeypatch.setattr(system_compiler._CC, "get_cc", lambda: str(path))
    broken_programs.impatient(monkeypatch, how)
    library = selfbyoc.build(
        emit(lambda x: op.softmax(x), {"x": ((3, 17), "float32")}), cache=False
    )
    with pytest.raises(ToolError) as raised:
        library.export_library(tmp_path / "model.so")
    told = f"export_library needs a C++ compiler that works: {path}: {broken_programs.TOLD[how]}"
    assert str(raised.value) == told
    assert not (tmp_path / "model.so").exists()


def test_a_compiler_whose_libraries_do_not_load(tmp_path, monkeypatch):
    path = broken_programs.script(
        tmp_path, "c++", 'while [ "$1" != -o ]; do shift; done; echo no > "$2"'
    )
    monkeypatch.setattr(system_compiler._CC, "get_cc", lambda: str(path))
    assert ": OSError: " in system_compiler.cannot_compile()


@pytest.mark.parametrize("how", BROKEN)
def test_a_compiler_in_a_command(how, tmp_path, monkeypatch, capsys):
    from selfbyoc.tvm import tvm

    (tmp_path / "model.json").write_text(
        tvm.ir.save_json(emit(lambda x: op.softmax(x), {"x": ((3, 17), "float32")}))
    )
    path = broken_programs.plant(tmp_path / "bin", "c++", how)
    monkeypatch.setattr(system_compiler._CC, "get_cc", lambda: str(path))
    broken_programs.impatient(monkeypatch, how)
    assert main(["compile", str(tmp_path / "model.json"), "-o", str(tmp_path / "model.so")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: export_library needs a C++ compiler that works: ")
    assert line.endswith(broken_programs.TOLD[how])


@pytest.mark.parametrize("how", BROKEN)
def test_llvm_mca(how, tmp_path, monkeypatch):
    """The newest is broken: an older one serves, where there is one."""
    mca.program.cache_clear()
    for version in (19, 20, 21):
        broken_programs.plant(tmp_path, f"llvm-mca-{version}", how)
    on_path(monkeypatch, tmp_path)
    broken_programs.impatient(monkeypatch, how)
    with pytest.raises(ToolError, match=f"llvm-mca-21: {broken_programs.TOLD[how]}; llvm-mca-20: "):
        mca.program()
    broken_programs.script(tmp_path, "llvm-mca-20", "cat > /dev/null; echo 'Total Cycles:      53'")
    assert mca.program() == "llvm-mca-20"
    mca.program.cache_clear()


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("name", [aarch64.GCC, aarch64.QEMU])
def test_tools_for_aarch64(name, how, tmp_path, monkeypatch):
    broken_programs.script(tmp_path, aarch64.GCC, "exit 0")
    broken_programs.plant(tmp_path, aarch64.QEMU, how)
    broken_programs.plant(tmp_path, name, how)
    on_path(monkeypatch, tmp_path)
    broken_programs.impatient(monkeypatch, how)
    with pytest.raises(ToolError, match=f"^AArch64: {name}: {broken_programs.TOLD[how]}$"):
        aarch64.check_tools()


@pytest.mark.parametrize("how", BROKEN)
def test_emulators_of_other_cpus(how, tmp_path, monkeypatch, capsys):
    emulated = tool("emulated")
    broken_programs.plant(tmp_path, emulated.EMULATOR, how)
    on_path(monkeypatch, tmp_path)
    broken_programs.impatient(monkeypatch, how)
    monkeypatch.setattr(sys, "argv", ["emulated.py", "--cpu", "nehalem"])
    with pytest.raises(SystemExit) as ended:
        emulated.main()
    assert ended.value.code == 2
    told = f"error: qemu-x86_64 -cpu Nehalem: {broken_programs.TOLD[how]}\n"
    assert capsys.readouterr().err.endswith(told)


@pytest.mark.parametrize("how", BROKEN)
def test_a_browser(how, tmp_path, monkeypatch):
    broken_programs.plant(tmp_path, "chromium", how)
    on_path(monkeypatch, tmp_path)
    broken_programs.impatient(monkeypatch, how)
    assert browser.cannot_show() == f"Chromium: {broken_programs.TOLD[how]}"
    monkeypatch.setattr(browser, "NAMES", ("no-chromium",))
    assert browser.cannot_show() == "no chromium on PATH"


@pytest.mark.parametrize("how", BROKEN)
def test_git(how, tmp_path, monkeypatch):
    """It only names the commit."""
    broken_programs.plant(tmp_path, "git", how)
    on_path(monkeypatch, tmp_path)
    broken_programs.impatient(monkeypatch, how)
    assert commit(Path(__file__).parents[3]) == "unknown"


HIDES_NOTHING = "int selfbyoc_hides_nothing;\n"
STARTS = """
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void start(void) {
"""
ENDS = STARTS + 'fputs("this CPU cannot trap CPUID", stderr); _exit(1); }\n'
WAITS = STARTS + "sleep(600); }\n"


@pytest.mark.parametrize(
    ("source", "told"),
    [(ENDS, "probe: this CPU cannot trap CPUID"), (WAITS, "probe: no answer within 1 s")],
)
def test_a_preloaded_library_that_hides_avx512(source, told, tmp_path, monkeypatch):
    served(system_compiler.does_not_compile("cc"))
    hidden = tool("without_avx512")
    monkeypatch.setattr(hidden, "SOURCE", tmp_path / "it.c")
    hidden.SOURCE.write_text(source)
    monkeypatch.setattr(hidden, "SECONDS", 1.0 if source == WAITS else 60.0)
    with pytest.raises(hidden.DoesNotServe, match=f"^{told}$"):
        hidden.made(tmp_path / "it.so")


def test_a_preloaded_library_that_hides_nothing(tmp_path, monkeypatch):
    """It is loaded, and programs find AVX-512 all the same; elsewhere there is nothing to hide."""
    served(system_compiler.does_not_compile("cc"))
    hidden = tool("without_avx512")
    monkeypatch.setattr(hidden, "SOURCE", tmp_path / "it.c")
    hidden.SOURCE.write_text(HIDES_NOTHING)
    if "avx512f" not in Path("/proc/cpuinfo").read_text():
        hidden.made(tmp_path / "it.so")
        return
    with pytest.raises(hidden.DoesNotServe, match=r"it\.so: a program .* finds 'AVX-512'"):
        hidden.made(tmp_path / "it.so")


@pytest.mark.parametrize("how", BROKEN)
def test_a_compiler_of_what_is_preloaded(how, tmp_path, monkeypatch):
    hidden = tool("without_avx512")
    monkeypatch.setenv("CC", str(broken_programs.plant(tmp_path, "cc", how)))
    monkeypatch.setattr(hidden, "SECONDS", broken_programs.SECONDS)
    with pytest.raises(hidden.DoesNotServe, match=f"^cc: {broken_programs.TOLD[how]}$"):
        hidden.made(tmp_path / "it.so")


def test_asked_ahead_and_once():
    """Whoever asks the same waits for the answer that is on its way."""
    begun, may_end, asked = threading.Event(), threading.Event(), []

    def asking():
        asked.append(1)
        begun.set()
        assert may_end.wait(10)
        return "no"

    name = f"asked ahead {time.time_ns()}"
    probes.ahead(lambda: probes.once(name, [], asking))
    assert begun.wait(10)
    threading.Timer(0.05, may_end.set).start()
    assert probes.once(name, [], asking) == f"{name}: no"
    assert asked == [1]
    probes.ahead(lambda: 1 / 0)  # nobody is told


def test_an_answer_is_there_when_the_process_ends():
    """Popen.wait with a timeout looks every 0.05 s."""
    start = time.perf_counter()
    for _ in range(5):
        assert probes.ask(["sleep", "0.06"], "").why_not == ""
    assert time.perf_counter() - start < 5 * 0.06 + 0.5
