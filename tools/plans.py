"""`make plans`: plans of every kernel family by the million, on drawn shapes, attributes and
machines; nothing is built. docs/makers/plans.md

    python tools/plans.py --json build/plans/relax.jsonl      goes on where it was interrupted
    python tools/plans.py --family conv --plans 20000         some of one family
    python tools/plans.py --build 200 --json build/plans/built.jsonl    programs a family, built
                                                              and, where the CPU can be, run
    python tools/plans.py --tables build/plans/relax.jsonl    what such files say, as Markdown
    python tools/plans.py --replay build/plans/relax.jsonl    the faults of their findings by now

The exit status says whether a plan has a fault.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import sys
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

# After what is on the path: `PYTHONPATH=/another/checkout` looks at that one's plans.
sys.path.append(str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from plan_draws import builds
from plan_draws.asked import families
from plan_draws.chunks import PLANS, Chunk, replayed, run
from plan_draws.table import tables

from selfbyoc.commands.fuzz.judge import Judge
from selfbyoc.commands.fuzz.targets import Setting

Line = dict[str, Any]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--family", action="append", choices=list(families()), help="default: all")
    add("--plans", type=int, default=1_000_000, help="of each family; default: 1000000")
    add("--seed", type=int, default=0)
    add("--jobs", type=int, default=os.cpu_count() or 1, help="processes; default: one a core")
    add("--json", type=Path, metavar="FILE", help="of lines, which are added to")
    add("--build", type=int, default=0, metavar="COUNT", help="programs of each family")
    add("--tables", type=Path, nargs="+", metavar="FILE")
    add("--replay", type=Path, nargs="+", metavar="FILE")
    return parser.parse_args()


def read(path: Path) -> list[Line]:
    """The lines of a file; none of one that is not there, nor one that was cut off."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def waiting(args: argparse.Namespace, before: list[Line]) -> Iterator[tuple[str, int]]:
    """The chunks that are left, a family after the other, so that all grow alike."""
    left = []
    for family in args.family or families():
        own = [line for line in before if (line["family"], line["seed"]) == (family, args.seed)]
        number = 1 + max((line["number"] for line in own), default=-1)
        count = -(-(args.plans - sum(line["plans"] for line in own)) // PLANS)
        left.append([(family, number + n) for n in range(count)])
    for some in itertools.zip_longest(*left):
        yield from (asked for asked in some if asked is not None)


def chunks(args: argparse.Namespace, before: list[Line]) -> Iterator[Chunk]:
    """The chunks that are left, as they are done; processes of their own."""
    todo = waiting(args, before)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(args.jobs, mp_context=context) as pool:
        running: set[Future[Chunk]] = set()
        while True:
            while len(running) < args.jobs and (asked := next(todo, None)) is not None:
                running.add(pool.submit(run, asked[0], args.seed, asked[1]))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)


def main() -> int:
    """Run; the exit status is 1 if a plan has a fault."""
    args = _arguments()
    if args.tables:
        print(tables([line for path in args.tables for line in read(path)]))
        return 0
    if args.replay:
        return _replay([line for path in args.replay for line in read(path)])
    if args.build:
        return _build(args)
    before = read(args.json) if args.json else []
    failed = sum(bool(line["findings"]) for line in before)
    for chunk in chunks(args, before):
        failed += bool(chunk.findings)
        rate = chunk.plans / chunk.seconds
        print(
            f"{chunk.family} {chunk.number}: {chunk.plans} plans, {rate:.0f} a second", flush=True
        )
        for finding in chunk.findings:
            print(f"  {finding['fault']}\n  {json.dumps(finding['case'])}", flush=True)
        add_line(args.json, chunk.line())
    return min(failed, 1)


def add_line(path: Path | None, line: str) -> None:
    """One more line of a file, if there is one."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def _build(args: argparse.Namespace) -> int:
    """Build programs of each family, in one process; the exit status is 1 if one is wrong."""
    lines = read(args.json) if args.json else []
    judge = Judge(Setting(), builds.SECONDS)
    try:
        for family, number in builds.waiting(args.family or families(), args.build, lines):
            line = builds.built(family, args.seed, number, judge)
            lines.append(line)
            told = f": {line['text']}\n  {json.dumps(line['program'])}" if line["text"] else ""
            print(f"{family} {number} {line['target']}: {line['status']}{told}", flush=True)
            add_line(args.json, json.dumps(line))
    finally:
        judge.end()
    print(builds.summary(lines))
    return min(sum(bool(line["text"]) for line in lines), 1)


def _replay(lines: list[Line]) -> int:
    """Print the faults that are still there."""
    failed = 0
    for finding in (f for line in lines for f in line["findings"]):
        faults = replayed(finding)
        failed += bool(faults)
        print(f"{'; '.join(faults) or 'right by now'}: {finding['fault']}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
