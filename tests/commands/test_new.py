"""`selfbyoc new`: what it writes runs, and nothing is written over."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import selfbyoc
from selfbyoc.__main__ import main
from selfbyoc.analysis.lint.file import load_file
from selfbyoc.analysis.lint.linter import lint_file

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_composite_and_its_test(folder, capsys):
    assert main(["new", "mine_2"]) == 0
    assert files(folder) == ["mine_2.py", "test_mine_2.py"]
    printed = capsys.readouterr().out
    assert printed == "mine_2.py\ntest_mine_2.py\n\ntry it:     pytest test_mine_2.py\n"
    assert lint_file(folder / "mine_2.py") == []
    ((variable, composite),), _ = load_file(folder / "mine_2.py")
    assert (variable, composite.name) == ("composite", "mine_2")
    parts = ("pattern", "check", "reference", "cases", "schedule", "why")
    assert all(getattr(composite, part) for part in parts)
    for case in composite.cases:
        mod = selfbyoc.emit(composite.pattern, case.args)
        report = selfbyoc.report(selfbyoc.partition_for_tefuse(mod, composites=[composite]))
        assert (report.counts, report.left) == ({"mine_2": 1}, {})
        assert selfbyoc.verify(mod, composites=[composite], kinds=["random"]).ok
    for path in folder.glob("*.py"):
        assert "NAME" not in path.read_text()
        assert len(path.read_text().splitlines()) <= 75


def test_a_package(folder, capsys):
    assert main(["new", "a_package_", "--package"]) == 0
    names = ["a_package_.py", "pyproject.toml", "test_a_package_.py"]
    assert files(folder) == [f"a_package_/{name}" for name in names]
    text = (folder / "a_package_/pyproject.toml").read_text()
    assert 'name = "a-package"\n' in text  # neither begins nor ends with a hyphen
    assert 'a_package_ = "a_package_:composite"\n' in text
    printed = capsys.readouterr().out
    assert "pip install ./a_package_\n" in printed
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Mine", "expected lower case letters, digits and underscores"),
        ("1st", "expected lower case letters"),
        ("a-b", "expected lower case letters"),
        ("../mine", "expected lower case letters"),
        ("mine.py", "expected lower case letters"),
        ("größe", "expected lower case letters"),
        ("", "expected lower case letters"),
        ("class", "it is a word of Python's"),
        ("dense", "composite 'dense' is a built-in one"),
        ("json", "json.py would be taken for another module"),
        ("numpy", "numpy.py would be taken for another module"),
        ("selfbyoc", "selfbyoc.py would be taken for another module"),
        ("sys", "sys.py would be taken for another module"),
        ("conftest", "conftest.py would be taken for another module"),
        ("setup", "setup.py would be taken for another module"),
    ],
)
def test_a_name_that_does_not_do(folder, capsys, name, said):
    assert main(["new", name]) == 1
    assert said in capsys.readouterr().err
    assert files(folder) == []


@pytest.mark.parametrize("there", ["mine.py", "test_mine.py", "a link", "a folder"])
def test_nothing_is_written_over(folder, capsys, there):
    path = folder / ("mine.py" if " " in there else there)
    if there == "a link":
        path.symlink_to("nowhere")
    elif there == "a folder":
        path.mkdir()
    else:
        path.write_text("as it was")
    assert main(["new", "mine"]) == 1
    assert f"{path.name} is there already" in capsys.readouterr().err
    assert [p.name for p in folder.iterdir()] == [path.name]
    assert not path.is_file() or path.read_text() == "as it was"


def test_again_it_is_refused(folder, capsys):
    """Where the folder is on Python's path, too: the file is no other module's."""
    for status, said in ((0, ""), (1, "mine/mine.py is there already"), (1, "already")):
        assert main(["new", "mine", "--package"]) == status
        assert said in capsys.readouterr().err
    assert main(["new", "mine"]) == 0  # beside a folder of its name


def test_a_folder_that_cannot_be_written(folder, capsys):
    (folder / "mine").write_text("a file")
    assert main(["new", "mine", "--package"]) == 1
    assert "mine" in capsys.readouterr().err
    assert files(folder) == ["mine"]


@pytest.mark.parametrize("options", [[], ["--package"]], ids=["files", "package"])
def test_what_is_written_passes(folder, options):
    """As a user runs it, warnings as errors."""
    assert main(["new", "mine", *options]) == 0
    place = folder / "mine" if options else folder
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "test_mine.py"]
    done = subprocess.run(command, env=env, cwd=place, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 passed" in done.stdout


@pytest.mark.parametrize(
    ("was", "instead"),
    [
        ("np.maximum(x @ y + z, 0)", "np.maximum(x @ y - z, 0)"),
        ('require(rows % ROWS == 0, f"{rows} rows are no multiple of {ROWS}")', "pass"),
        ("sch.compute_inline(ops.add.block)", "sch.compute_inline(ops.add.blocks)"),
        ("op.relu(op.add", "op.tanh(op.add"),
    ],
    ids=["reference", "check", "schedule", "pattern"],
)
def test_what_is_changed_wrongly_fails(folder, was, instead):
    """The test is of all parts."""
    assert main(["new", "mine"]) == 0
    text = (folder / "mine.py").read_text()
    assert was in text
    (folder / "mine.py").write_text(text.replace(was, instead))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "test_mine.py"]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr


def test_it_is_formatted(folder):
    pytest.importorskip("ruff", reason="needs ruff")
    assert main(["new", "mine", "--package"]) == 0
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--select", "E,F,I,UP,B,PT,RUF,SIM"], ["format", "--check"]):
        options = ["--isolated", "--line-length", "100", "--no-cache", "mine"]
        done = subprocess.run([*ruff, *command, *options], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
