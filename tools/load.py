"""The library under load: threads, thousands of builds and calls, signals, disks, forks.

    python tools/load.py                             all parts (an hour of one core)
    python tools/load.py builds --builds 200         one part, or less of it
    python tools/load.py --write docs/makers/load.md the table into the document

Each part is a process of its own (tools/loads/). The exit status says whether all is within bounds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# After what is on the path: `PYTHONPATH=/another/checkout` looks at that one.
sys.path.append(str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from loads.parts import PARTS, Asked
from loads.table import Row, markdown, row_line

from selfbyoc.commands.bench.performance import text_between
from selfbyoc.common.files import write_text
from selfbyoc.tvm import GENERATION


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    add("--threads", type=int, default=8, help="that build and call at once; default: 8")
    add("--rounds", type=int, default=20, help="of builds in each thread; default: 20")
    add("--builds", type=int, default=1000, help="in one process; default: 1000")
    add("--calls", type=int, default=100_000, help="in one process; default: 100000")
    add("--kills", type=int, default=200, help="of each kind of child; default: 200")
    add("--seed", type=int, default=0)
    add("--write", type=Path, metavar="FILE.md", help="put each table between its markers there")
    return parser.parse_args()


def main() -> int:
    """Run the parts and print each row as it comes."""
    args = _arguments()
    unknown = [name for name in args.parts if name not in PARTS]
    if unknown:
        sys.exit(f"unknown parts {unknown}; expected some of {list(PARTS)}")
    asked = Asked(args.threads, args.rounds, args.builds, args.calls, args.kills, args.seed)
    is_good = True
    for name in args.parts or PARTS:
        rows: list[Row] = []
        for row in PARTS[name](asked):
            rows.append(row)
            print(row_line(row), flush=True)
        is_good &= not any(row.problem for row in rows)
        if args.write is not None:
            text = args.write.read_text(encoding="utf-8")
            write_text(args.write, text_between(text, f"{GENERATION} {name}", markdown(rows)))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
