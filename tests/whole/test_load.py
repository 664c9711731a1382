"""A few seconds of tools/load.py, seeded; `make load` takes an hour."""

import importlib
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def parts(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("loads.parts")


def test_threads(parts):
    found = parts.said("crowd", 4, 1)
    assert (found["builds"], found["problems"]) == (4, [])


def test_calls_leave_nothing(parts):
    found = parts.said("soak", "calls", 4000)
    assert found["bytes_each"] - 2 * found["error"] < 16
    assert found["grown"] == 0


@pytest.mark.parametrize("job", ["build", "append", "report"])
def test_signals(parts, job, tmp_path):
    found = parts.said("kills", job, 6, 1, tmp_path / "found")
    assert found["problems"] == []
    assert sum(found.get(how, 0) for how in ("killed", "interrupted", "done before")) == 6


def test_a_slope_is_found(parts, monkeypatch):
    """The fit sees 40 KB a build, and none where there is none."""
    soak = importlib.import_module("loads.soak")
    for grows in (0, 40_000):
        at = iter(range(1000))
        monkeypatch.setattr(soak, "resident", lambda g=grows, at=at: 10**8 + g * 2 * next(at))
        monkeypatch.setattr(soak, "road", lambda name, folder: lambda number: None)
        found = soak.soaked("builds", 100, "")
        assert abs(found["bytes_each"] - grows) < 1
        row = parts._soaked("builds", found, parts.A_BUILD)
        assert row.problem == ("it grows" if grows else "")


def test_disks(parts, tmp_path):
    found = parts.said("disks", tmp_path / "disks")
    assert isinstance(found, list), found
    assert [f for f in found if f["problem"]] == []
    assert sum("said" in f for f in found) > 6
