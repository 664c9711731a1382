"""Every model of the zoo: imported, built, right, fast? docs/models.md.

    python tools/zoo.py [--only PATTERN] [--size small|full] [--no-time] [--again] [--jobs N]
                        [--peers onnxruntime,openvino]
    python tools/zoo.py --open ...       with an open batch, or sequence of text, at several sizes
    python tools/zoo.py --list
    python tools/zoo.py --document       the tables only, from the results that are there

Results are lines of JSON in docs/reports/zoo.jsonl, with --open in zoo-open.jsonl; what has one is
not tried again without --again. Needs the extra `zoo`, and Relax; a family whose package is missing
is told as such. Exit status 1 when a model is wrong, or does not build, and neither PyTorch nor TVM
is to blame.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

from zoo_models.catalogue import catalogue
from zoo_models.document import write_document
from zoo_models.model import FULL, SMALL, Model
from zoo_models.process import Limits, limit_memory, tried
from zoo_models.record import OURS, RIGHT, Record, add_record, read_records, with_times_of
from zoo_models.run import commit

if TYPE_CHECKING:
    from zoo_models.trial import Trial

ROOT = Path(__file__).resolve().parents[1]
REPORTS = ROOT / "docs" / "reports"
RESULTS, OPEN_RESULTS = REPORTS / "zoo.jsonl", REPORTS / "zoo-open.jsonl"
OPEN_SECONDS = 1800.0  # of one trial: kernels for all sizes, and 171 pictures in five batches


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--only", action="append", default=[], metavar="PATTERN", help="such as 'timm/*' or vgg11")
    add("--size", choices=(SMALL, FULL), default=SMALL, help="small pictures, or as published")
    add("--open", action="store_true", help="with an open batch, or sequence of text")
    add("--no-time", action="store_true", help="time nothing: the machine is busy")
    add("--times", action="store_true", help="only time, what was right and has no times yet")
    add("--peers", metavar="NAMES", help="such as onnxruntime,openvino; all by default")
    add("--again", action="store_true", help="also what has a result already")
    add("--failed", action="store_true", help="of those with a result, what was not right")
    add("--jobs", type=int, default=1, help="trials at once; timing is always one at a time")
    add("--seconds", type=float, help="of one trial")
    add("--gigabytes", type=float, default=Limits.gigabytes, help="of one trial")
    add("--results", type=Path, help="a file of these results")
    add("--write", type=Path, default=ROOT / "docs" / "models.md")
    add("--list", action="store_true", help="print the names of all models")
    add("--document", action="store_true", help="write the document, try nothing")
    add("--trial", metavar="KEY", help=argparse.SUPPRESS)  # in the process of one model
    add("--onnx", metavar="KEY", help=argparse.SUPPRESS)
    add("--to", type=Path, help=argparse.SUPPRESS)
    add("--alone", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.results = args.results or (OPEN_RESULTS if args.open else RESULTS)
    args.seconds = args.seconds or (OPEN_SECONDS if args.open else Limits.seconds)
    return args


def _try(args: argparse.Namespace) -> None:
    """Within the process of one model."""
    limit_memory(args.gigabytes)
    (model,) = (m for m in catalogue()[0] if m.key == args.trial)
    _trial(model, args).run()


def _trial(model: Model, args: argparse.Namespace) -> Trial:
    from zoo_models.opened import Opened
    from zoo_models.trial import Trial

    if not args.open:
        return Trial(model, args.size, args.to, args.alone)
    is_timed = not (args.no_time or args.alone)
    return Opened(model, args.size, args.to, args.alone, is_timed)


def _write_onnx(args: argparse.Namespace) -> None:
    """In a process of its own, too."""
    from zoo_models.timed import write_onnx

    (model,) = (m for m in catalogue()[0] if m.key == args.onnx)
    write_onnx(model, args.size, args.to)


def _left(models: list[Model], args: argparse.Namespace) -> list[Model]:
    """What has no result of this size yet."""
    known = read_records(args.results)
    done = {k for k, r in known.items() if r.size == args.size or args.size == SMALL}
    if args.times:
        return [m for m in models if (r := known.get(m.key)) and _wants_times(r, args)]
    if args.failed:
        return [m for m in models if m.key in known and known[m.key].outcome != RIGHT]
    return models if args.again else [m for m in models if m.key not in done]


def _wants_times(record: Record, args: argparse.Namespace) -> bool:
    same = record.outcome == RIGHT and record.size == args.size
    return same and (args.again or not record.times)


def _found(model: Model, before: Record | None, args: argparse.Namespace) -> Record:
    now = commit(ROOT)
    if args.times and before is not None and not args.open:
        record = before
    else:
        options = [*["--open"] * args.open, *["--no-time"] * args.no_time]
        limits = Limits(args.seconds, args.gigabytes)
        record = replace(tried(model, args.size, limits, options=options), tried=now)
    if args.no_time:
        return with_times_of(record, before)
    if record.outcome != RIGHT:
        return record
    from zoo_models.timed import timed

    from selfbyoc.commands.bench.run import cpu_name

    if not args.open:  # else its own process timed it, which had it built
        peers = args.peers.split(",") if args.peers else None
        record = timed(model, args.size, record, peers)
    return replace(record, timed=f"{cpu_name()}, {now}")


def _run(models: list[Model], args: argparse.Namespace) -> None:
    jobs = args.jobs if args.no_time else 1
    known = read_records(args.results)
    with ThreadPoolExecutor(jobs) as pool:
        for record in pool.map(lambda model: _found(model, known.get(model.key), args), models):
            add_record(args.results, record)
            blame = f" ({record.fault}) {record.reason}" if record.outcome != RIGHT else ""
            print(f"{record.key}: {record.outcome}{blame}", flush=True)


def main() -> int:
    """The command line."""
    args = _arguments()
    if args.trial:
        _try(args)
        return 0
    if args.onnx:
        _write_onnx(args)
        return 0
    models, absent = catalogue(args.only)
    if args.open:
        models = [model for model in models if not model.is_onnx]  # files have the sizes they have
    for family, why in absent.items():
        print(f"{family}: left out, {why}", file=sys.stderr)
    if args.list:
        print("\n".join(model.key for model in models))
        return 0
    if not args.document:
        _run(_left(models, args), args)
    records = read_records(args.results)
    static = read_records(RESULTS) if args.open else records
    opened = records if args.open else read_records(OPEN_RESULTS)
    write_document(args.write, static, [m.key for m in catalogue()[0]], absent, opened)
    chosen = [records[m.key] for m in models if m.key in records]
    return 1 if any(record.fault == OURS for record in chosen) else 0


if __name__ == "__main__":
    raise SystemExit(main())
