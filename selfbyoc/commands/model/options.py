"""The options of `explain`, `melting` and `verify`: questions about a model."""

from __future__ import annotations

from pathlib import Path

from ..command import Commands, add_command, at_least, runs, seconds
from ..model_file import add_model, add_size

_TARGET = "what to build for; default: this machine's CPU"
_COMPOSITE = "about this composite alone"


def add_explain(commands: Commands) -> None:
    """What matches, what does not, and why."""
    parser = add_command(
        commands, "explain", "what matches in a model, what nearly does, why",
        """
        % model.onnx --shape images=1x3x224x224
        % model.onnx --html page.html --time
        % program.pt2 --root relu_3 --composites mine.py""",
    )  # fmt: skip
    add_model(parser)
    add = parser.add_argument
    add("--composite", metavar="NAME", help=_COMPOSITE)
    add("--root", metavar="OP", help="every decision about this op")
    add("--all", action="store_true", help="every decision")
    add("--target", help=_TARGET)
    add("--guard", action="store_true", help="measure each kernel; leave out what does not pay")
    add("--json", type=Path, metavar="FILE", help="also write all as data")
    add("--html", type=Path, metavar="FILE", help="also write a page")
    add("--time", action="store_true", help="also time each kernel, for the page")
    parser.set_defaults(run=runs("model.explain", "inspect", "Question"))


def add_melting(commands: Commands) -> None:
    """The loops."""
    parser = add_command(
        commands, "melting", "each kernel's loop nest, and what it saves",
        """
        % model.onnx --shape images=1x3x224x224
        % model.onnx --composite conv2d --time
        % model.onnx --size batch=8 --size length=128
        % module.json --composites mine.py""",
    )  # fmt: skip
    add_model(parser)
    add = parser.add_argument
    add("--composite", metavar="NAME", help=_COMPOSITE)
    add("--target", help=_TARGET)
    add("--time", action="store_true", help="also build and time each kernel")
    add_size(parser)
    add("--json", type=Path, metavar="FILE", help="also write all as data")
    parser.set_defaults(run=runs("model.melting", "show"))


def add_verify(commands: Commands) -> None:
    """Whether it is right."""
    parser = add_command(
        commands, "verify", "each kernel on edge inputs, against references",
        """
        % model.onnx --shape images=1x3x224x224
        % model.onnx --kind nan --kind borders
        % module.json --composites mine.py --json found.json""",
    )  # fmt: skip
    add_model(parser)
    add = parser.add_argument
    add("--target", help=_TARGET)
    add("--kind", action="append", help="a kind of input; default: all of them")
    add("--seed", type=at_least(0), default=0, help="of the random inputs")
    add("--timeout", type=seconds, default=300.0, help="seconds for one build or run; default: 300")
    add("--json", type=Path, metavar="FILE", help="also write all as data")
    parser.set_defaults(run=runs("model.verify", "run"))
