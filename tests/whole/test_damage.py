"""A few seconds of tools/damage.py, seeded; the table in docs/makers/damage.md is of minutes."""

import importlib
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from selfbyoc.errors import InputError
from selfbyoc.tvm import GENERATION

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def tool(monkeypatch):
    """A module of it by name."""
    monkeypatch.syspath_prepend(str(TOOLS))
    return lambda name: importlib.import_module(f"damaged.{name}")


@pytest.mark.parametrize("kind", ["libraries", "caches", "modules", "onnx_files", "arrays"])
def test_nothing_is_wrong(tool, kind):
    """Of the first specimen; of all kinds those that are built fast."""
    specimen, draw = next(tool(kind).specimens()), tool("draw")
    damages = [draw.drawn(0, n, specimen.files) for n in range(8)]
    damages += [*draw.cuts(0, specimen.files)][:2]
    found = tool("kinds").judged(specimen, damages)
    assert [each for each in found if each.how not in ("same", "error")] == []


@pytest.mark.parametrize("kind", ["records", "programs"])
def test_nothing_is_wrong_slowly(tool, kind):
    """One tunes, one exports from PyTorch, which is none on Relay."""
    if kind == "programs":
        pytest.importorskip("torch", reason="PyTorch is not installed (make test TORCH=1)")
    kinds = tool("kinds")
    found = list(kinds.rows(kind, kinds.Asked(flips=8, every=0)))
    assert [row.problem for row in found if row.problem] == []
    assert found or (kind, GENERATION) == ("programs", "relay")


# ---- what is wrong is found


def crashes():
    signal.raise_signal(signal.SIGBUS)


def hangs():
    time.sleep(60)


def raises():
    raise ZeroDivisionError("of another's")


def refuses():
    raise InputError("damaged")


def refuses_at_length():
    raise InputError("damaged\nby whom?")


def is_too_large():
    return np.zeros(1 << 45, "uint8")


def one():
    return 1


def test_how_a_reading_ends(tool):
    """Each in turn, and those that follow one which ended the process are tried too."""
    fork = tool("fork")
    acts = [one, crashes, refuses, hangs, raises, refuses_at_length, is_too_large, one]
    found = fork.tried_each(acts, seconds=1.0)
    hows = ["value", "crash", "error", "hang", "raw", "raw", "memory", "value"]
    assert [each.how for each in found] == hows
    assert "SIGBUS" in found[1].text
    assert found[2].text == "InputError: damaged"
    assert "ZeroDivisionError" in found[4].text


def test_memory(tool, monkeypatch):
    monkeypatch.setattr(tool("fork"), "MEMORY", 1 << 26)
    found = tool("fork").tried_each([one, lambda: float(np.ones(1 << 25).sum()), one])
    assert [each.how for each in found] == ["value", "memory", "value"]


def test_another_result(tool, tmp_path, capsys):
    """A file without a checksum: rows tell that its content is another, and it is kept."""
    specimen, kinds = tool("specimen"), tool("kinds")
    data = np.arange(64, dtype="float32")

    def read(folder):
        found = np.fromfile(folder / "x", "float32")
        if len(found) < len(data):
            raise InputError("cut off")
        return [found]

    made = specimen.Specimen("numbers", {"x": data.tobytes()}, read, specimen.compared([data]))
    damages = (tool("draw").drawn(0, n, made.files) for n in range(40))
    row = kinds._row(made, "", damages, tmp_path / "kept")
    wrong = len(list((tmp_path / "kept").iterdir()))
    assert row.count == "40"
    assert row.found == f"0 the same, {40 - wrong} an error, {wrong} differs"
    assert "array 0 is another one" in row.problem
    assert capsys.readouterr().out.count("numbers: number") == wrong > 20


def test_what_is_drawn(tool):
    """Always damage; the same for a seed; every length once."""
    draw, files = tool("draw"), {"a": bytes(50), "b": b"b" * 7}
    found = [draw.drawn(0, n, files) for n in range(300)]
    assert found == [draw.drawn(0, n, files) for n in range(300)]
    assert all(each.data != files[each.file] for each in found)
    assert {each.file for each in found} == {"a", "b"}
    lengths = [(each.file, len(each.data)) for each in draw.cuts(0, files)]
    assert sorted(lengths) == [("a", n) for n in range(50)] + [("b", n) for n in range(7)]


def test_a_time_ends_it(tool):
    kinds = tool("kinds")
    rows = list(kinds.rows("arrays", kinds.Asked(flips=10**6, seconds=0.2)))
    assert [int(row.count.replace(",", "")) < 10**6 for row in rows] == [True, True]
