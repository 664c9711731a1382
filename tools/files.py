"""Every ONNX file of other people's wheels: imported, built, right, fast? docs/models.md.

    python tools/files.py [--only PATTERN] [--again] [--failed]
    python tools/files.py --times [--again]    only time what was right; nothing else should run
    python tools/files.py --list
    python tools/files.py --document           the tables only, from the results that are there

The wheels come from PyPI into build/wheels, once. Results are lines of JSON in
docs/reports/files-relax.jsonl (-relay with TVM 0.17); what has one is not tried again without
--again. Exit status 1 when a file is wrong, or is not built by our fault.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from wheel_files.catalogue import Entry, entries
from wheel_files.document import write_document
from wheel_files.model import AS_USED, zoo_model
from wheel_files.wheel import Missing, fetched
from zoo_models.process import Limits, limit_memory, tried
from zoo_models.record import OURS, RIGHT, Record, add_record, read_records, with_times_of
from zoo_models.run import commit

from selfbyoc.commands.bench.run import cpu_name
from selfbyoc.tvm import GENERATION

ROOT = Path(__file__).resolve().parents[1]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--only", action="append", default=[], metavar="PATTERN", help="such as 'silero-vad*'")
    add("--times", action="store_true", help="only time, what was right and has no times yet")
    add("--again", action="store_true", help="also what has a result already")
    add("--failed", action="store_true", help="of those with a result, what was not right")
    add("--seconds", type=float, default=Limits.seconds, help="of one trial")
    add("--gigabytes", type=float, default=Limits.gigabytes, help="of one trial")
    add("--results", type=Path, default=ROOT / "docs" / "reports", help="the folder of both files")
    add("--write", type=Path, default=ROOT / "docs" / "models.md")
    add("--list", action="store_true", help="print the names of all files")
    add("--document", action="store_true", help="write the document, try nothing")
    add("--trial", metavar="KEY", help=argparse.SUPPRESS)  # in the process of one file
    add("--size", help=argparse.SUPPRESS)  # of the zoo's models
    add("--to", type=Path, help=argparse.SUPPRESS)
    add("--alone", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _try(args: argparse.Namespace) -> None:
    """Within the process of one file."""
    from wheel_files.trial import FileTrial

    limit_memory(args.gigabytes)
    FileTrial(entries()[args.trial], args.to, args.alone).run()


def _results(args: argparse.Namespace, generation: str = GENERATION) -> Path:
    return Path(args.results) / f"files-{generation}.jsonl"


def _left(found: dict[str, Entry], args: argparse.Namespace) -> dict[str, Entry]:
    """What is to be tried, or timed."""
    known = read_records(_results(args))
    return {key: entry for key, entry in found.items() if _wanted(known.get(key), args)}


def _wanted(before: Record | None, args: argparse.Namespace) -> bool:
    if before is None:
        return not args.times and not args.failed
    if args.times:
        return before.outcome == RIGHT and (args.again or not before.times)
    return before.outcome != RIGHT if args.failed else args.again


def _found(key: str, entry: Entry, args: argparse.Namespace) -> Record:
    before = read_records(_results(args)).get(key)
    if args.times and before is not None:
        from wheel_files.timed import timed

        return replace(timed(entry, before), timed=f"{cpu_name()}, {commit(ROOT)}")
    fetched(*entry)  # not within the trial's limits
    limits = Limits(args.seconds, args.gigabytes)
    record = tried(zoo_model(entry), AS_USED, limits, Path(__file__))
    return with_times_of(replace(record, tried=commit(ROOT)), before)


def _run(found: dict[str, Entry], args: argparse.Namespace) -> None:
    for key, entry in found.items():
        try:
            record = _found(key, entry, args)
        except Missing as err:
            print(f"{key}: left out, {err}", file=sys.stderr)
            continue
        add_record(_results(args), record)
        blame = f" ({record.fault}) {record.reason}" if record.outcome != RIGHT else ""
        print(f"{record.key}: {record.outcome}{blame}", flush=True)


def main() -> int:
    """The command line."""
    args = _arguments()
    if args.trial:
        _try(args)
        return 0
    found = entries(args.only)
    if args.list:
        print("\n".join(found))
        return 0
    if not args.document:
        _run(_left(found, args), args)
    relax, relay = (read_records(_results(args, each)) for each in ("relax", "relay"))
    write_document(args.write, entries(), relax, relay)
    mine = relax if GENERATION == "relax" else relay
    chosen = [mine[key] for key in found if key in mine]
    return 1 if any(record.fault == OURS for record in chosen) else 0


if __name__ == "__main__":
    raise SystemExit(main())
