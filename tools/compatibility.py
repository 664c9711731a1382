"""The tests with each TVM, Python, NumPy and CPU that is supported: docs/makers/compatibility.md.

    python tools/compatibility.py [--only NAME] [--tests quick|all] [--limit SECONDS] [--again]
    python tools/compatibility.py --list
    python tools/compatibility.py --document     the table only, from the results that are there

Environments are kept in build/compatibility/, results in docs/reports/compatibility/, one file a
combination: what another system found (a chroot with another Python) stays in the table. Only the
standard library is needed. Exit status 1 when a test failed.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from compatible.document import markdown
from compatible.environment import FOLDER, RESULTS, ROOT, wheel
from compatible.table import BY_NAME, Combination
from compatible.tested import SELECTED, Result, tried

DOCUMENT = ROOT / "docs" / "makers" / "compatibility.md"
BEGIN, END = "<!-- table -->", "<!-- end -->"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="such as '*python3.12*'")
    parser.add_argument("--tests", choices=SELECTED, default="quick")
    parser.add_argument("--limit", type=float, default=7200.0, metavar="SECONDS", help="of each")
    parser.add_argument("--again", action="store_true", help="also those with a result already")
    parser.add_argument("--list", action="store_true", help="print the names of all combinations")
    parser.add_argument("--document", action="store_true", help="write the table, run nothing")
    return parser.parse_args()


def _chosen(patterns: list[str] | None) -> list[Combination]:
    wanted = patterns or ["*"]
    return [c for n, c in BY_NAME.items() if any(fnmatch.fnmatch(n, p) for p in wanted)]


def _path(name: str) -> Path:
    return RESULTS / f"{name}.json"


def _results() -> dict[str, Any]:
    return {n: json.loads(_path(n).read_text()) for n in BY_NAME if _path(n).is_file()}


def _run(chosen: list[Combination], tests: str, limit: float) -> bool:
    """Try each and keep what it found; whether all that ran passed."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="wheel-", dir=FOLDER) as folder:
        built = wheel(Path(folder))
        return all([_kept(tried(combination, tests, built, limit)) for combination in chosen])


def _kept(result: Result) -> bool:
    """Write a result down and tell it; whether no test failed. What could not be tried here leaves
    what another system found as it is.
    """
    if result.is_unavailable and _path(result.name).is_file():
        print(f"{result.name}: {result.problem}; the earlier result stays", flush=True)
        return True
    _path(result.name).parent.mkdir(parents=True, exist_ok=True)
    _path(result.name).write_text(json.dumps(result.as_json(), indent=1) + "\n")
    counts = ", ".join(f"{count} {kind}" for kind, count in result.counts.items())
    print(f"{result.name}: {result.problem or counts}", flush=True)
    return not result.failed


def _write() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    table = markdown(_results())
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")


def main() -> int:
    """The command line."""
    args = _arguments()
    chosen = _chosen(args.only)
    if args.list:
        print("\n".join(combination.name for combination in chosen))
        return 0
    left = chosen if args.again else [c for c in chosen if not _path(c.name).is_file()]
    good = args.document or _run(left, args.tests, args.limit)
    _write()
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
