"""The matrix of executors: some of it here and now, and whether its document is of today."""

import json
import sys
from pathlib import Path

import pytest

from selfbyoc.tvm import GENERATION

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from executor_cells.cells import EXPORTED, USUAL, Cell, Outcome, cells  # isort: skip
from executor_cells.generation import roads  # isort: skip
from executor_cells.known import to_be_mended  # isort: skip
from executor_cells.matrix import judged  # isort: skip
from executor_cells.page import page  # isort: skip

ROOT = Path(__file__).parents[2]
FILES = [ROOT / f"docs/reports/executors-{name}.json" for name in ("relax", "relay")]


def reports():
    return [json.loads(path.read_text(encoding="utf-8")) for path in FILES]


def test_every_executor():
    """The rest is `make executors`."""
    here = [Cell(EXPORTED, e, way=USUAL.get(e, "memory")) for e in roads.EXECUTORS]
    assert judged(here) == {cell: Outcome("right") for cell in here}


def test_a_crash_is_one_cell():
    """TVM's own: the cells after it are judged all the same."""
    if GENERATION == "relay":
        crashing = Cell(EXPORTED, "aot", way="memory")
        found = judged([crashing, Cell(EXPORTED, "graph")])
        assert [o.kind for o in found.values()] == ["crash", "right"]
        assert found[crashing].alone == "right"
        assert not to_be_mended(crashing, found[crashing])  # the reason is known
    else:
        refused = Cell("two results, a kernel each", "bytecode", variant="pipeline zero")
        found = judged([refused, Cell(EXPORTED, "bytecode")])
        assert [o.kind for o in found.values()] == ["refused", "right"]
        assert found[refused].alone == "refused"


@pytest.mark.parametrize(
    ("kind", "alone", "expected"),
    [
        ("right", "", False),
        ("refused", "refused", False),
        ("refused", "right", True),
        ("refused", "crash", False),
        ("wrong", "refused", True),
        ("wrong", "right", True),
        ("wrong", "wrong", False),
        ("crash", "right", True),
        ("crash", "refused", True),
    ],
)
def test_what_is_to_be_mended(kind, alone, expected):
    assert to_be_mended(Cell(EXPORTED, roads.EXECUTORS[0]), Outcome(kind, "", alone)) == expected


def test_the_document_is_of_its_data():
    """`python tools/executors.py --document`"""
    assert (ROOT / "docs/makers/executors.md").read_text(encoding="utf-8") == page(reports())


def test_the_data_are_of_todays_cells():
    """And nothing in them is to be mended: `make executors`."""
    report = reports()[0 if GENERATION == "relax" else 1]
    fields = {*vars(Cell("", ""))}
    found = {Cell(**{k: v for k, v in r.items() if k in fields}): r for r in _cells(report)}
    assert set(found) == set(cells())
    outcomes = {"kind", "says", "alone", "alone_says"}
    for cell, row in found.items():
        outcome = Outcome(**{k: v for k, v in row.items() if k in outcomes})
        assert not to_be_mended(cell, outcome), row


def _cells(report):
    return [{"program": "", **row} for row in report["cells"]]
