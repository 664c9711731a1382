"""Files that were damaged: each is an error of ours, or says what it said before.

    python tools/damage.py                        all kinds, 10,000 damages of each: hours
    python tools/damage.py libraries --flips 500  one kind, or less of it
    python tools/damage.py --seconds 600 --write docs/makers/damage.md
                                                  as many as these seconds of a kind allow, and the
                                                  table into the document

A reading is a process of its own. The exit status says whether all is well; `--keep FOLDER` keeps
the files that are not.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# After what is on the path: `PYTHONPATH=/another/checkout` looks at that one.
sys.path.append(str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from damaged.kinds import KINDS, Asked, rows
from loads.table import markdown, row_line

from selfbyoc.commands.bench.performance import text_between
from selfbyoc.common.files import write_text
from selfbyoc.tvm import GENERATION


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; default: all")
    add("--flips", type=int, default=10_000, help="damages of each kind; default: 10000")
    add("--every", type=int, default=1, help="length at which a file is cut; 0: none; default: 1")
    add("--seconds", type=float, help="after which a kind ends; default: none")
    add("--seed", type=int, default=0)
    add("--begin", type=int, default=0, help="number of the first damage")
    add("--keep", type=Path, metavar="FOLDER", help="of files that something is wrong with")
    add("--write", type=Path, metavar="FILE.md", help="put the table between its markers there")
    return parser.parse_args()


def main() -> int:
    """Damage, and print a row for each kind of file."""
    args = _arguments()
    unknown = [name for name in args.kinds if name not in KINDS]
    if unknown:
        sys.exit(f"unknown kinds {unknown}; expected some of {list(KINDS)}")
    asked = Asked(args.flips, args.every, args.seed, args.begin, args.keep, args.seconds)
    found = []
    for name in args.kinds or KINDS:
        for row in rows(name, asked):
            found.append(row)
            print(row_line(row), flush=True)
    if args.write is not None:
        text = args.write.read_text(encoding="utf-8")
        write_text(args.write, text_between(text, GENERATION, markdown(found)))
    return 1 if any(row.problem for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
