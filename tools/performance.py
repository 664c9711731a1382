"""Put reports of `python -m selfbyoc bench --json` into docs/performance.md, between its markers.

    python tools/performance.py relax=build/relax.json relay=build/relay.json

Beside it goes the roofline plot of the first one. All else in the document is written by hand.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from selfbyoc.bench.records import read_report
from selfbyoc.view.performance import markdown, text_between
from selfbyoc.view.roofline import roofline

DOCUMENT = Path(__file__).parents[1] / "docs" / "performance.md"
PLOT = DOCUMENT.parent / "reports" / "roofline.svg"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("reports", nargs="+", metavar="MARKER=FILE.json")
    asked = dict(pair.split("=", 1) for pair in parser.parse_args().reports)
    text = DOCUMENT.read_text(encoding="utf-8")
    for number, (marker, file) in enumerate(asked.items()):
        report = read_report(Path(file))
        if f"<!-- {marker} -->" not in text:
            parser.error(f"{DOCUMENT} has no <!-- {marker} -->")
        text = text_between(text, marker, markdown(report))
        if number == 0:
            PLOT.write_text(roofline(report), encoding="utf-8")
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
