"""The reports in docs/reports are what explain says today."""

from pathlib import Path

import pytest
from scripts import tool

from selfbyoc.tvm import GENERATION

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/reports" / ("relay" if GENERATION == "relay" else "")
NEEDS = {"googlenet": "onnx", "transformer": "torch" if GENERATION == "relax" else "numpy"}


@pytest.mark.parametrize("name", ["googlenet", "rfc", "transformer"])
def test_the_reports_are_current(name):
    pytest.importorskip(NEEDS.get(name, "numpy"))
    current = (FOLDER / f"{name}.txt").read_text(encoding="utf-8") == tool("reports").text(name)
    assert current, f"run tools/reports.py {FOLDER.relative_to(ROOT)} on {GENERATION}"


@pytest.mark.skipif(GENERATION == "relay", reason="the table is made on Relax")
def test_the_table_of_mutations_is_current():
    page = (ROOT / "docs/reports/mutations.md").read_text(encoding="utf-8")
    assert page == tool("mutations").table(), "run tools/mutations.py on Relax"
