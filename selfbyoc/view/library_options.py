"""The options of `compile`, `run` and `show`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from .model_file import add_model, add_shape


@dataclass(frozen=True)
class Named:
    """`x=x.npy`."""

    name: str
    path: Path


def add_compile(commands: Any) -> None:
    """From a model to a file that runs."""
    parser = _parser(
        commands, "compile", "a model as a library: one file that `run` and selfbyoc.load take",
        """
  %(prog)s model.onnx                       writes model.so
  %(prog)s model.onnx -o out.so --shape images=1x3x224x224
  %(prog)s program.pt2 --target 'llvm -mcpu=haswell'
  %(prog)s model.onnx --weights float16     half the size, nearly the same numbers
  %(prog)s module.json --composites mine.py""",
    )  # fmt: skip
    add_model(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.so", help="default: MODEL's name with .so, here"
    )
    parser.add_argument("--target", help="what to build for; default: this machine's CPU")
    parser.add_argument(
        "--weights", choices=("float32", "float16"), default="float32",
        help="how the file holds weights of float32, with which is computed; default: float32",
    )  # fmt: skip
    parser.set_defaults(run=_compile)


def add_run(commands: Any) -> None:
    """A library on arrays."""
    parser = _parser(
        commands, "run", "a library on .npy files or made-up inputs: shapes, ranges, time",
        """
  %(prog)s model.so
  %(prog)s model.so --input x=x.npy --output results
  %(prog)s model.so --shape tokens=1x128 --seed 7""",
    )  # fmt: skip
    parser.add_argument("file", type=Path, metavar="FILE.so", help="what `compile` wrote")
    add = parser.add_argument
    add("--input", type=_named, action="append", default=[], metavar="NAME=FILE.npy",
        help="values of an input; those that none is given for are made up")  # fmt: skip
    add("--output", type=Path, metavar="DIR", help="write each output to DIR/NAME.npy")
    add("--seed", type=int, default=0, help="of the values that are made up; default: 0")
    add_shape(parser)
    parser.set_defaults(run=_run)


def add_show(commands: Any) -> None:
    """What a model or a library is."""
    parser = _parser(
        commands, "show", "inputs, outputs, kernels, target and versions of a model or a library",
        """
  %(prog)s model.so                         runs none of its code
  %(prog)s model.onnx --shape images=1x3x224x224""",
    )  # fmt: skip
    add_model(parser, help="what `compile` wrote")
    parser.add_argument("--target", help="of a model: what to build for; default: this CPU")
    parser.set_defaults(run=_show)


def _parser(commands: Any, name: str, text: str, examples: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=f"examples:{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def _named(text: str) -> Named:
    name, _, path = text.partition("=")
    if not name or not path:
        raise argparse.ArgumentTypeError(f"expected NAME=FILE.npy, found {text!r}")
    return Named(name, Path(path))


def _asked(args: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name, value in vars(args).items() if name != "run"}


def _compile(args: argparse.Namespace, console: Console) -> int:
    from .compile_command import Request, run

    run(console, Request(**_asked(args)))
    return 0


def _run(args: argparse.Namespace, console: Console) -> int:
    from .run_command import Request, run

    run(console, Request(**_asked(args)))
    return 0


def _show(args: argparse.Namespace, console: Console) -> int:
    from .show_command import Request, run

    run(console, Request(**_asked(args)))
    return 0
