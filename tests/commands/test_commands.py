"""Every command: its help with examples that parse, its exit codes, what it prints in 80 columns,
what it says while it works, and names for sizes that are open.
"""

import re
import shlex
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from selfbyoc import emit, op
from selfbyoc.__main__ import _parser, main
from selfbyoc.codegen.progress import Work
from selfbyoc.commands import build_progress, progress
from selfbyoc.commands.console import SafeConsole
from selfbyoc.tvm import GENERATION, tir, tvm

COMMANDS = (
    "compile", "quantize", "run", "show", "demo", "composites", "ops", "new", "explain",
    "melting", "verify", "bounds", "lint", "op-info", "bench", "tune", "records", "cache", "fuzz",
)  # fmt: skip
# Of a model: all of these take its shapes and a user's own composites.
OF_MODELS = (
    "compile", "show", "explain", "melting", "verify", "bounds", "bench", "tune", "records",
)  # fmt: skip
W = np.random.default_rng(0).standard_normal((17, 33), np.float32)
MINE = """
from selfbyoc import Case, Composite, op

mine = Composite(
    "mine",
    lambda x, w: op.softmax(op.dense(x, w)),
    why="a row is read once",
    cases=(Case(x=(3, 5), w=(7, 5)), Case(x=(5, 33), w=(17, 33))),
)
"""


def program(x, w):
    return op.softmax(op.dense(x, w))


def written(path, rows=5):
    shapes = {"x": ((rows, 33), "float32"), "w": (W.shape, "float32")}
    path.write_text(tvm.ir.save_json(emit(program, shapes, {"w": W})))
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory, compiler):
    """A model, its library, and composites."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "mine.py").write_text(MINE)
    assert main(["compile", str(written(folder / "net.json")), "-o", str(folder / "net.so")]) == 0
    return folder


# ---- help


def test_these_are_all(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = re.findall(r"^    ([a-z][a-z-]+)(?: |$)", capsys.readouterr().out, re.MULTILINE)
    assert tuple(listed) == COMMANDS


@pytest.mark.parametrize("script", ["selfbyoc", "__main__.py"])
@pytest.mark.parametrize("command", COMMANDS)
def test_help(command, script, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", [script])
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    start = f"  {'selfbyoc' if script == 'selfbyoc' else 'python -m selfbyoc'} {command}"
    examples = text.partition("\nexamples:\n")[2].splitlines()
    assert examples
    for line in examples:
        assert line.startswith(start)
        asked = shlex.split(line.removeprefix(start).partition("   ")[0])
        assert _parser().parse_args([command, *asked]).run
    options = {"--shape", "--composites"} if command in OF_MODELS else set()
    assert all(f"{option} " in text for option in options)


# ---- what they print, how they end


def printed(capsys, *args, status=0):
    capsys.readouterr()
    found = main(list(map(str, args)))
    text, err = capsys.readouterr()
    assert found == status, err
    return text


@pytest.fixture
def terminal(monkeypatch):
    """Of 80 columns."""

    def made(width=None):
        return SafeConsole(width=80, force_terminal=True, color_system=None)

    monkeypatch.setattr("selfbyoc.__main__.SafeConsole", made)


def test_eighty_columns(files, tmp_path, capsys, terminal):
    model, mine = files / "net.json", ("--composites", files / "mine.py")
    for args in (
        ("show", model), ("show", files / "net.so"), ("explain", model, *mine),
        ("explain", model, "--all"), ("explain", model, "--root", "softmax"), ("melting", model),
        ("verify", model, *mine, "--kind", "zeros"), ("bounds", model, *mine, "--no-run"),
        ("tune", model, "--list"), ("composites", *mine), ("ops",), ("ops", "conv2d"),
        ("op-info", "mine", *mine), ("cache",), ("bench", "--list"), ("run", files / "net.so"),
        ("compile", model, "-o", tmp_path / "a.so"),
    ):  # fmt: skip
        text = printed(capsys, *args).replace(str(tmp_path), "")
        assert max(map(len, text.splitlines()), default=0) <= 80, args
        assert "…" not in text, args


def test_ones_own_composites(files, capsys):
    mine = ("--composites", files / "mine.py")
    for args in (("explain", files / "net.json"), ("melting", files / "net.json"), ("composites",),
                 ("verify", files / "net.json", "--kind", "zeros"), ("op-info", "mine"),
                 ("bounds", files / "net.json", "--no-run"), ("tune", files / "net.json", "--list"),
                 ("bounds", "--composite", "mine", "--cases", "1", "--no-run")):  # fmt: skip
        assert "mine" in printed(capsys, *args, *mine), args


def test_exit_codes(files, tmp_path, capsys):
    (tmp_path / "bad.py").write_text(MINE.replace('why="a row is read once",', ""))
    (tmp_path / "wrong.py").write_text(
        MINE.replace("cases=", "reference=lambda x, w: x @ w.T, cases=")
    )
    assert "nothing to report" in printed(capsys, "lint", files / "mine.py")
    assert "1 finding" in printed(capsys, "lint", tmp_path / "bad.py", status=1)
    wrong = ("--composites", tmp_path / "wrong.py")
    args = ("verify", files / "net.json", "--kind", "random")
    assert "wrong" in printed(capsys, *args, *wrong, status=1)
    printed(capsys, "explain", files / "none.json", status=1)
    for args in (["explain"], ["melting", "a", "--nosuch"], ["tune", "a", "--trials", "many"],
                 ["show", "a", "--shape", "x=8,8"], ["run", "a", "--seed", "-1"],
                 ["verify", "a", "--seed", "-1"], ["bounds", "--seed", "-1"],
                 ["bounds", "--cases", "0"], ["bench", "--builds", "0"],
                 ["bench", "--threads", "0"], ["tune", "a", "--trials", "0"],
                 ["tune", "a", "--seconds", "-1"], ["verify", "a", "--timeout", "nan"],
                 ["fuzz", "--seconds", "0"], ["fuzz", "--jobs", "0"],
                 ["fuzz", "--count", "0"]):  # fmt: skip
        with pytest.raises(SystemExit) as ended:
            main(args)
        assert ended.value.code == 2
        assert "usage: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (OSError(28, "No space left on device"), 1, "error: No space left on device\n"),
    ],
)
def test_what_ends_a_command(capsys, monkeypatch, raised, status, said):
    def show(console, asked):
        raise raised

    monkeypatch.setattr("selfbyoc.commands.composites.cache.show", show)
    assert main(["cache"]) == status
    assert capsys.readouterr().err == said


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's importers have fixed sizes")
def test_open_sizes_have_names(tmp_path, capsys):
    path = written(tmp_path / "net.json", tir.Var("rows", "int64"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args in (("show",), ("explain", "--root", "dense")):
            text = printed(capsys, args[0], path, *args[1:])
            assert "[rows, 33]" in " ".join(text.split()), args
            assert "dynamic" not in text
            assert "?" not in text, args


def test_warnings_are_one_line():
    """As the process shows them; who records them sees what they always see."""
    usual, seen = warnings.formatwarning, []

    class Shown(SafeConsole):
        def print(self, *args, **options):
            seen.append(warnings.formatwarning("odd", UserWarning, "x.py", 3, "x = 1"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("selfbyoc.__main__.SafeConsole", Shown)
        assert main(["cache"]) == 0
    assert seen[0] == "warning: odd\n"
    assert warnings.formatwarning is usual


# ---- while they work


def slowly(monkeypatch, terminal, patience=0.01):
    def console(stderr):
        assert stderr
        return Console(file=sys.stderr, force_terminal=terminal, width=80)

    monkeypatch.setattr(progress, "Console", console)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    with progress.step("building [x]"):
        time.sleep(0.1)
        SafeConsole(file=sys.stdout, width=80).print("a line of the result")
        time.sleep(0.1)


def test_what_takes_a_while_is_said(capsys, monkeypatch):
    slowly(monkeypatch, terminal=True)
    out, err = capsys.readouterr()
    assert err.count("\x1b[?25l") == 2  # it was shown, made room, and was shown again
    assert "building [x]" in err
    assert out == "a line of the result\n"  # stdout is no terminal here


def test_where_nobody_looks_or_it_is_soon_done_nothing_is_said(capsys, monkeypatch):
    for terminal, patience in ((False, 0.01), (True, 60)):
        slowly(monkeypatch, terminal, patience)
        assert capsys.readouterr() == ("a line of the result\n", "")


def test_a_file_in_the_readme_names_no_other_command():
    """What README and documents write as a command is one."""
    root = Path(__file__).parents[2]
    for path in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        text = path.read_text(encoding="utf-8")
        found = re.findall(r"(?:^|`)(?:python -m )?selfbyoc ([a-z][a-z-]*)\b", text, re.MULTILINE)
        assert set(found) <= set(COMMANDS), path


def test_a_build_tells_its_parts_and_how_many_kernels_are_left(monkeypatch):
    clock = iter([0.0, 3.0, 9.0])
    monkeypatch.setattr(build_progress.time, "perf_counter", lambda: next(clock))
    said = []
    shown = build_progress._Shown("net.onnx", Console(), said.append)
    shown.part("laying out weights")
    shown.begun(Work(3, compiled=3))
    for _ in range(2):
        shown.done()
    assert said == [
        "building net.onnx: laying out weights",
        "building net.onnx: 1 of 3 kernels compiled, about 6 s left",
        "building net.onnx: 2 of 3 kernels compiled, about 4 s left",
    ]
