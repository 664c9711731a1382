"""A command that checked nothing does not exit with 0, and says so."""

import pytest

from selfbyoc import emit, op
from selfbyoc.__main__ import main
from selfbyoc.tvm import GENERATION, tvm

UNMATCHED = """
from selfbyoc import Case, Composite, op
own = Composite("own", lambda x, w: op.relu(op.dense(x, w)), why="a test",
                cases=(Case(lambda x, w: op.tanh(op.dense(x, w)), x=(3, 5), w=(4, 5)),))
"""
HERE = UNMATCHED.replace("lambda x, w: op.tanh(op.dense(x, w)), ", "")
OTHER = "relay" if GENERATION == "relax" else "relax"
ELSEWHERE = HERE.replace("w=(4, 5)", f"w=(4, 5), generations=['{OTHER}']")
BOTH = UNMATCHED.replace("cases=(", "cases=(Case(x=(3, 5), w=(4, 5)), ")
FILES = {"unmatched.py": UNMATCHED, "here.py": HERE, "other.py": ELSEWHERE, "both.py": BOTH}


@pytest.fixture
def files(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    mod = emit(lambda x: op.tanh(x), {"x": (3, 5)})
    (tmp_path / "model.json").write_text(tvm.ir.save_json(mod), encoding="utf-8")
    (tmp_path / "records.jsonl").write_text("", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("bounds unmatched.py --no-run", "its own pattern does not match it"),
        ("bounds unmatched.py --no-run", "so nothing was checked"),
        ("bounds other.py", "so nothing was checked"),
        ("bounds model.json --composites here.py", "no composite matches in model.json"),
        ("verify model.json --composites here.py", "so nothing was verified"),
        ("verify model.json --composites here.py --kind nan", "so nothing was verified"),
        ("lint other.py", "nothing was tried"),
        ("fuzz --composites here.py --seconds 1e-9", "nothing was built, so nothing was checked"),
        ("records .", "no record in"),
    ],
)
def test_what_checked_nothing_is_no_success(files, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(files)
    assert main(arguments.split()) == 1
    assert says in " ".join(capsys.readouterr().out.split())


def test_what_checked_something_is(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    assert main(["lint", "here.py"]) == 0
    assert main(["bounds", "here.py", "--no-run"]) == 0
    assert "1 kernels; 0 things are not proved" in capsys.readouterr().out


def test_the_kernel_that_is_missing_is_named(files, monkeypatch, capsys):
    """Beside one that is there."""
    monkeypatch.chdir(files)
    assert main(["bounds", "both.py", "--no-run"]) == 1
    out = capsys.readouterr().out
    assert "match: failed: no kernel: its own pattern does not match it" in out
    assert "1 kernels; 0 things are not proved" in out
