"""The options of `python -m selfbyoc bounds`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console


def add_bounds(commands: Any) -> None:
    """The command, in the command line's list of them."""
    parser = commands.add_parser("bounds", help="does each kernel stay in its buffers? proof, runs")
    add = parser.add_argument
    add("file", type=Path, nargs="?", metavar="FILE", help="composites of a .py file on their "
        "cases, or the kernels of a .onnx model; default: the built-in composites")  # fmt: skip
    add("--composite", action="append", metavar="NAME", help="this one alone; again for more")
    add(
        "--target",
        action="append",
        help="what to build for, again for more; default: host, this CPU",
    )
    add("--shape", action="append", default=[], metavar="INPUT=1x3x224x224",
        help="of an input of a .onnx model; for each one with open sizes")  # fmt: skip
    add("--cases", type=int, metavar="N", help="only the N smallest of each composite")
    add("--no-run", action="store_true", help="only prove")
    add("--seed", type=int, default=0, help="of the random inputs")
    add("--timeout", type=float, default=300.0, help="seconds for one step; default: 300")
    add("--json", type=Path, metavar="FILE", help="also write a line of JSON a kernel")
    add("--resume", action="store_true", help="check only the cases that the JSON file lacks")
    add("--tables", type=Path, action="append", metavar="FILE", help="print what such files say as "
        "Markdown, and check nothing; again for more")  # fmt: skip
    parser.set_defaults(run=_bounds)


def _bounds(args: argparse.Namespace, console: Console) -> int:
    from .bounds_command import Request, run

    asked = {name: value for name, value in vars(args).items() if name != "run"}
    return 0 if run(console, Request(**asked)) else 1
