"""The command line: `python -m selfbyoc demo | composites | partition MODEL.onnx`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from . import BUILTIN, __version__
from .errors import SelfbyocError


def _demo(args: argparse.Namespace, console: Console) -> int:
    from .demo.run import demo

    return 0 if demo(console, args.output) else 1


def _composites(args: argparse.Namespace, console: Console) -> int:
    from .view import tables

    if args.markdown:
        print(tables.composites_markdown(BUILTIN))
    else:
        console.print(tables.composites_table(BUILTIN))
    return 0


def _partition(args: argparse.Namespace, console: Console) -> int:
    from .view.inspection import inspect

    inspect(console, args.model, args.html)
    return 0


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
    partition = commands.add_parser("partition", help="what matches in a model, and what does not")
    partition.add_argument("model", type=Path, metavar="MODEL.onnx")
    partition.add_argument(
        "--html", type=Path, metavar="FILE", help="also write a page with the graph"
    )
    partition.set_defaults(run=_partition)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; -> the exit status."""
    args = _parser().parse_args(argv)
    console = Console(
        width=None if sys.stdout.isatty() else 120
    )  # in a file, rich would break lines at 80
    try:
        return args.run(args, console)
    except SelfbyocError as err:
        print(f"error: {err}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
