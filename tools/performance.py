"""Put reports of `selfbyoc bench --json` between the markers of docs/makers/performance-tables.md.

    python tools/performance.py relax=build/relax.json relay=build/relay.json

Beside it goes the roofline plot of the first one; from the tables the figure and the verdict of
docs/performance.md are made, also without a report. All else is written by hand.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from selfbyoc.commands.bench.bars import figure, measured, verdict
from selfbyoc.commands.bench.performance import between, markdown, text_between
from selfbyoc.commands.bench.records import read_report
from selfbyoc.commands.bench.roofline import roofline

DOCS = Path(__file__).parents[1] / "docs"
PAGE, TABLES = DOCS / "performance.md", DOCS / "makers/performance-tables.md"
PLOT, FIGURE = DOCS / "reports/roofline.svg", DOCS / "reports/performance.svg"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("reports", nargs="*", metavar="MARKER=FILE.json")
    asked = dict(pair.split("=", 1) for pair in parser.parse_args().reports)
    text = TABLES.read_text(encoding="utf-8")
    for number, (marker, file) in enumerate(asked.items()):
        report = read_report(Path(file))
        if f"<!-- {marker} -->" not in text:
            parser.error(f"{TABLES} has no <!-- {marker} -->")
        text = text_between(text, marker, markdown(report))
        if number == 0:
            PLOT.write_text(roofline(report), encoding="utf-8")
    TABLES.write_text(text, encoding="utf-8")
    svg, page = derived(text, PAGE.read_text(encoding="utf-8"))
    FIGURE.write_text(svg, encoding="utf-8")
    PAGE.write_text(page, encoding="utf-8")


def derived(tables: str, page: str) -> tuple[str, str]:
    """The figure, and the page with its verdict, as the tables have them."""
    found = measured(between(tables, "relax"))
    return figure(found), text_between(page, "verdict", verdict(found))


if __name__ == "__main__":
    main()
