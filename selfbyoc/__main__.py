"""The command line: `python -m selfbyoc demo | composites | explain | melting | verify | bounds |
lint | op-info | bench | tune | records | cache | fuzz`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from . import BUILTIN, __version__
from .errors import SelfbyocError
from .view.bench_options import add_bench
from .view.bounds_options import add_bounds
from .view.console import SafeConsole
from .view.fuzz_command import add_fuzz
from .view.model_file import add_model


def _asked(args: argparse.Namespace) -> dict[str, Any]:
    """What a command's Request holds."""
    return {name: value for name, value in vars(args).items() if name != "run"}


def _demo(args: argparse.Namespace, console: Console) -> int:
    from .demo.run import demo

    return 0 if demo(console, args.output) else 1


def _composites(args: argparse.Namespace, console: Console) -> int:
    from .view import tables

    if args.markdown:
        print(tables.composites_markdown(BUILTIN), end="\n\n")
        print(tables.fusion_markdown(BUILTIN))
    else:
        console.print(tables.composites_table(BUILTIN))
    return 0


def _explain(args: argparse.Namespace, console: Console) -> int:
    from .view.inspection import Question, inspect

    inspect(console, Question(**_asked(args)))
    return 0


def _add_explain(commands: Any) -> None:
    explain = commands.add_parser("explain", help="what matches in a model, what nearly does, why")
    add_model(explain)
    explain.add_argument("--composite", metavar="NAME", help="about this composite alone")
    explain.add_argument("--root", metavar="OP", help="every decision about this op")
    explain.add_argument("--all", action="store_true", help="every decision")
    explain.add_argument("--target", help="what to build for; default: this machine's CPU")
    explain.add_argument(
        "--guard", action="store_true", help="measure each kernel; leave out what does not pay"
    )
    explain.add_argument("--json", type=Path, metavar="FILE", help="also write all as data")
    explain.add_argument("--html", type=Path, metavar="FILE", help="also write a page")
    explain.set_defaults(run=_explain)


def _melting(args: argparse.Namespace, console: Console) -> int:
    from .view.melting_command import Request, show

    show(console, Request(**_asked(args)))
    return 0


def _add_melting(commands: Any) -> None:
    melting = commands.add_parser("melting", help="each kernel's loop nest, and what it saves")
    add_model(melting)
    melting.add_argument("--composite", metavar="NAME", help="about this composite alone")
    melting.add_argument("--target", help="what to build for; default: this machine's CPU")
    melting.add_argument("--time", action="store_true", help="also build and time each kernel")
    melting.add_argument("--json", type=Path, metavar="FILE", help="also write all as data")
    melting.set_defaults(run=_melting)


def _verify(args: argparse.Namespace, console: Console) -> int:
    from .view.verdicts import Request, run

    return 0 if run(console, Request(**_asked(args))) else 1


def _add_verify(commands: Any) -> None:
    verify = commands.add_parser("verify", help="each kernel on edge inputs, against references")
    add_model(verify)
    verify.add_argument("--target", help="what to build for; default: this machine's CPU")
    verify.add_argument("--kind", action="append", help="a kind of input; default: all of them")
    verify.add_argument("--seed", type=int, default=0, help="of the random inputs")
    verify.add_argument(
        "--timeout", type=float, default=300.0, help="seconds for one build or run; default: 300"
    )
    verify.add_argument("--json", type=Path, metavar="FILE", help="also write all as data")
    verify.set_defaults(run=_verify)


def _lint(args: argparse.Namespace, console: Console) -> int:
    from .analysis.lint.linter import lint_file
    from .view.verdicts import print_findings

    findings = lint_file(args.file, args.name)
    print_findings(console, findings, str(args.file))
    return 1 if findings else 0


def _add_lint(commands: Any) -> None:
    lint = commands.add_parser("lint", help="check the composites that a file declares")
    lint.add_argument("file", type=Path, metavar="FILE.py")
    lint.add_argument("name", nargs="?", metavar="NAME", help="this composite alone")
    lint.set_defaults(run=_lint)


def _op_info(args: argparse.Namespace, console: Console) -> int:
    from .view.op_info_command import Request, show

    show(console, Request(**_asked(args)))
    return 0


def _add_op_info(commands: Any) -> None:
    info = commands.add_parser("op-info", help="the ops of each kernel, stacked and scheduled")
    info.add_argument("composite", nargs="?", metavar="COMPOSITE", help="this composite alone")
    info.add_argument("--target", help="what to schedule for; default: this machine's CPU")
    info.add_argument("--json", type=Path, metavar="FILE", help="also write all as data")
    info.add_argument("--markdown", action="store_true", help="as in docs/reports/op-info.md")
    info.set_defaults(run=_op_info)


def _tune(args: argparse.Namespace, console: Console) -> int:
    from .view.tune_command import Request, show

    show(console, Request(**_asked(args)))
    return 0


def _add_tune(commands: Any) -> None:
    tune = commands.add_parser("tune", help="search better numbers for the schedules of a model")
    add = tune.add_argument
    add_model(tune)
    add("--trials", type=int, default=64, metavar="N", help="candidates a task; default: 64")
    add("--records", type=Path, default=Path("records"), metavar="DIR", help="default: records")
    add("--seconds", type=float, metavar="S", help="end after this time at the latest")
    add("--target", help="what to tune for; default: this machine's CPU")
    add("--space", choices=("own", "metaschedule"), default="own", help="what is searched: the "
        "composites' choices (default), or MetaSchedule's own space for all")  # fmt: skip
    add("--min-ops", type=int, default=1, metavar="N", help="only kernels of so many ops")
    add("--include-simple-tasks", "--all", action="store_true", help="also kernels of elementwise "
        "and data-moving ops alone")  # fmt: skip
    add("--tracker", metavar="HOST:PORT", help="measure on the machines of this RPC tracker")
    add("--key", help="under which its servers are registered")
    add("--json", type=Path, metavar="FILE", help="also write what was found as data")
    add("--list", action="store_true", help="list the tasks, and tune nothing")
    tune.set_defaults(run=_tune)


def _records(args: argparse.Namespace, console: Console) -> int:
    from .view.records_command import Request, show

    show(console, Request(**_asked(args)))
    return 0


def _add_records(commands: Any) -> None:
    records = commands.add_parser("records", help="the records of tuning in a folder")
    records.add_argument("folder", type=Path, metavar="DIR")
    add_model(records, nargs="?", help="also say which of them a build of this model takes, and "
              "why not the rest")  # fmt: skip
    records.add_argument("--target", help="what is built for; default: this machine's CPU")
    records.set_defaults(run=_records)


def _cache(args: argparse.Namespace, console: Console) -> int:
    from .view.cache_command import show

    show(console, args.clear)
    return 0


def _add_cache(commands: Any) -> None:
    cache = commands.add_parser("cache", help="the kernels that were compiled before, on disk")
    cache.add_argument("--clear", action="store_true", help="drop them all")
    cache.set_defaults(run=_cache)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m selfbyoc", description="TVM as its own external compiler."
    )
    parser.add_argument("--version", action="version", version=f"selfbyoc {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="GoogLeNet: partition, build, check, time")
    demo.add_argument("--output", type=Path, default=Path("build/demo"), help="folder of the page")
    demo.set_defaults(run=_demo)
    composites = commands.add_parser("composites", help="list the built-in composites")
    composites.add_argument("--markdown", action="store_true", help="as in docs/composites.md")
    composites.set_defaults(run=_composites)
    _add_explain(commands)
    _add_melting(commands)
    _add_verify(commands)
    add_bounds(commands)
    _add_lint(commands)
    _add_op_info(commands)
    add_bench(commands)
    _add_tune(commands)
    _add_records(commands)
    _add_cache(commands)
    add_fuzz(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; -> the exit status."""
    args = _parser().parse_args(argv)
    console = SafeConsole(
        width=None if sys.stdout.isatty() else 120
    )  # in a file, rich would break lines at 80
    try:
        return args.run(args, console)
    except SelfbyocError as err:
        print(f"error: {err}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
