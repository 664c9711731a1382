"""docs/performance.md and README.md say what docs/makers/performance-tables.md has."""

import re
from pathlib import Path

import pytest
from scripts import tool

from selfbyoc.commands.bench.bars import figure, mean, measured
from selfbyoc.commands.bench.performance import between

ROOT = Path(__file__).parents[2]
TABLES = (ROOT / "docs/makers/performance-tables.md").read_text(encoding="utf-8")


def test_figure_and_verdict_are_current():
    page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    svg = (ROOT / "docs/reports/performance.svg").read_text(encoding="utf-8")
    assert tool("performance").derived(TABLES, page) == (svg, page), (
        "run python tools/performance.py"
    )


@pytest.mark.parametrize("marker", ["relax", "relay"])
def test_means_are_those_below_the_tables(marker):
    text = between(TABLES, marker).replace("TVM default / ours", "best peer / ours")
    written = re.findall(r"^Geometric mean ([\d.]+), lowest ([\d.]+)\.$", text, re.MULTILINE)
    found = measured(text).values()
    assert [(f"{mean(b):.2f}", f"{min(x.ratio for x in b):.2f}") for b in found] == written


@pytest.mark.parametrize("page", ["README.md", "docs/performance.md"])
def test_means_in_words(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "reports/performance.svg" in text
    for bars in measured(between(TABLES, "relax")).values():
        assert f"{mean(bars):.2f}" in text


def test_a_table_of_today():
    """commands/bench/performance.py has more columns than the tables that an earlier one wrote."""
    head = "| workload | MFLOP | ours, ms | best peer, ms | peer | best peer / ours | ORT | torch |"
    text = "\n".join(
        ["**{}**\n", head, "|---|", "| a <b> | 3 | 0.5 | 0.4 | torch | 0.80 | 1.0 | **0.4** |", ""]
    )
    found = measured("".join(text.format(t) + "\n" for t in ("Fused workloads", "Whole models")))
    (bar,) = found["Whole models"]
    assert (bar.name, bar.ratio, bar.peer, bar.is_slower) == ("a <b>", 0.8, "PyTorch", True)
    assert "a &lt;b&gt;" in figure(found)
    assert "0.80 x PyTorch (ours 0.5 ms)" in figure(found)
