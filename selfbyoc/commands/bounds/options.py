"""The options of `python -m selfbyoc bounds`."""

from __future__ import annotations

from pathlib import Path

from ..command import Commands, add_command, at_least, runs, seconds
from ..model_file import add_composites, add_input, add_shape, add_size


def add_bounds(commands: Commands) -> None:
    """The command, in the command line's list of them."""
    parser = add_command(
        commands, "bounds", "does each kernel stay in its buffers? proof, runs",
        """
        % --composite conv2d --cases 3
        % mine.py                 on their cases
        % model.onnx --composites mine.py""",
    )  # fmt: skip
    add = parser.add_argument
    add("file", type=Path, nargs="?", metavar="FILE", help="composites of a .py file on their "
        "cases, or the kernels of a model (.onnx, .pt2, TVM's JSON); default: the built-in "
        "composites")  # fmt: skip
    add("--composite", action="append", metavar="NAME", help="this one alone; again for more")
    add(
        "--target",
        action="append",
        help="what to build for, again for more; default: host, this CPU",
    )
    add_shape(parser)
    add_input(parser)
    add_size(parser)
    add_composites(parser)
    add("--cases", type=at_least(1), metavar="N", help="only the N smallest of each composite")
    add("--no-run", action="store_true", help="only prove")
    add("--seed", type=at_least(0), default=0, help="of the random inputs")
    add("--timeout", type=seconds, default=300.0, help="seconds for one step; default: 300")
    add("--json", type=Path, metavar="FILE", help="also write a line of JSON a kernel")
    add("--resume", action="store_true", help="check only the cases that the JSON file lacks")
    add("--tables", type=Path, action="append", metavar="FILE", help="print what such files say as "
        "Markdown, and check nothing; again for more")  # fmt: skip
    parser.set_defaults(run=runs("bounds.command", "run"))
