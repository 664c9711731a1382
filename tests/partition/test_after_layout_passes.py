"""docs/makers/layout-passes.md: what it says is so, and is what comes of these programs today."""

import pytest
from scripts import ROOT, tool

from selfbyoc.tvm import GENERATION

TOOL = tool("layout_passes")
PROGRAMS = {program.name: program for program in TOOL.programs()}
ROWS = {generation: TOOL.read(generation) for generation in TOOL.GENERATIONS}
# Which TVM 0.17's ConvertLayout makes wrong itself, in blocks: depthwise convolutions.
WRONG_IN_TVM = ("inverted_residual", "depthwise_pointwise", "MobileNet block")


def test_the_page_is_current():
    page = (ROOT / "docs/makers/layout-passes.md").read_text(encoding="utf-8")
    assert page == TOOL.text(), "run tools/layout_passes.py on both generations"


@pytest.mark.parametrize("generation", ROWS)
def test_every_cell_is_matched_and_right(generation):
    """Or TVM's own pass raises, or makes the module wrong for TVM, too."""
    for row in ROWS[generation]:
        if row["verdict"] == "less" or row.get("right") is False:
            assert (row["right"], row["tvm"]) == (False, "wrong, too"), row
            assert row["program"].startswith(WRONG_IN_TVM), row
            assert "to NCHW" in row["after"], row
        elif row["verdict"] == "refused":
            assert generation == "relay", row
        else:
            assert row["right"] is True, row


def test_every_program_is_there():
    assert list(dict.fromkeys(row["program"] for row in ROWS[GENERATION])) == list(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_cells(name):
    """Each built and run once more."""
    program = PROGRAMS[name]
    found = [cell.to_json() for cell in TOOL.judged(program)]
    rows = [row for row in ROWS[GENERATION] if row["program"] == name]
    for one, other in zip(found, rows, strict=True):
        assert {**one, "said": ""} == {**other, "said": ""}
