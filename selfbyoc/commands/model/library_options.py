"""The options of `compile`, `run` and `show`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from ...models.sizes import parse_sizes
from ..command import Commands, add_command, answers, at_least, runs
from ..model_file import add_model, add_range, add_shape, checked


@dataclass(frozen=True)
class Named:
    """`x=x.npy`."""

    name: str
    path: Path


def add_compile(commands: Commands) -> None:
    """From a model to a file that runs."""
    parser = add_command(
        commands, "compile", "a model as a library: one file that `run` and selfbyoc.load take",
        """
        % model.onnx              writes model.so
        % model.onnx -o out.so --shape images=1x3x224x224
        % model.onnx --size batch=1 --size seq=1..512
        % program.pt2 --target 'llvm -mcpu=haswell'
        % model.onnx --weights float16
        % model.onnx --weights int4 --activations int8 --symmetric
        % model.int8.onnx --requantize combined
        % module.json --composites mine.py""",
    )  # fmt: skip
    add_model(parser)
    add_range(parser)
    add = parser.add_argument
    add("-o", "--output", type=Path, metavar="FILE.so", help="default: MODEL's name with .so, here")
    add("--target", help="what to build for; default: this machine's CPU")
    add("--weights", choices=("float32", "float16", "bfloat16", "int8", "int4"), default="float32",
        help="how the file holds weights of float32, with which is computed; int8 and int4 those "
        "of dense layers, in memory too; default: float32")  # fmt: skip
    add("--group", type=int, default=32, metavar="N", help="inputs of a unit that share a scale, "
        "of int8 and int4; default: 32")  # fmt: skip
    add("--activations", choices=("float32", "int8"), default="float32", help="int8: what weights "
        "of int8 and int4 are multiplied by is rounded to 8 bits; default: float32")  # fmt: skip
    add(
        "--symmetric",
        action="store_true",
        help="weights of int8 and int4 have no zero points: fewer bytes, slightly coarser",
    )
    add("--requantize", choices=("stepwise", "combined"), default="stepwise", help="combined: sums "
        "of levels become levels by one factor, as in ONNX Runtime; default: stepwise, as the "
        "model's ops say")  # fmt: skip
    add("--times", action="store_true", help="a table of where the time went")
    before = answers("model.compiled_before", "served")
    parser.set_defaults(run=runs("model.compile", "run"), before=before)


def add_run(commands: Commands) -> None:
    """A library on arrays."""
    parser = add_command(
        commands, "run", "a library on .npy files or made-up inputs: shapes, ranges, time",
        """
        % model.so
        % model.so --input x=x.npy --output results
        % model.so --shape tokens=1x128 --seed 7
        % model.so --size batch=1 --size seq=128""",
    )  # fmt: skip
    parser.add_argument("file", type=Path, metavar="FILE.so", help="what `compile` wrote")
    add = parser.add_argument
    add("--input", type=_named, action="append", default=[], metavar="NAME=FILE.npy",
        help="values of an input; those that none is given for are made up")  # fmt: skip
    add("--output", type=Path, metavar="DIR", help="write each output to DIR/NAME.npy")
    add("--seed", type=at_least(0), default=0, help="of the values that are made up; default: 0")
    add_shape(parser)
    add("--size", type=checked(lambda text: parse_sizes([text])), action="append", default=[],
        metavar="NAME=128", help="an open size, in all inputs that have it; may be given "
        "again")  # fmt: skip
    parser.set_defaults(run=runs("model.run", "run"))


def add_show(commands: Commands) -> None:
    """What a model or a library is."""
    parser = add_command(
        commands, "show", "inputs, outputs, kernels, target and versions of a model or a library",
        """
        % model.so                runs none of its code
        % model.onnx --shape images=1x3x224x224""",
    )  # fmt: skip
    add_model(parser, help="what `compile` wrote")
    add_range(parser)
    parser.add_argument("--target", help="of a model: what to build for; default: this CPU")
    parser.set_defaults(run=runs("model.show", "run"))


def _named(text: str) -> Named:
    name, _, path = text.partition("=")
    if not name or not path:
        raise argparse.ArgumentTypeError(f"expected NAME=FILE.npy, found {text!r}")
    return Named(name, Path(path))
