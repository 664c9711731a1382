"""The options of `python -m selfbyoc fuzz`."""

from __future__ import annotations

from pathlib import Path

from ..command import Commands, add_command, at_least, runs, seconds
from ..model_file import add_shape


def add_fuzz(commands: Commands) -> None:
    """The command, in the command line's list of them."""
    parser = add_command(
        commands, "fuzz", "grow programs from the composites; what is wrong?",
        """
        % --seconds 600 --jobs 2
        % --composites mine.py --seed 7
        % --onnx --like model.onnx --count 100
        % --replay build/fuzz/case.json""",
    )  # fmt: skip
    add = parser.add_argument
    add("--seconds", type=seconds, default=60.0, help="how long; default: 60")
    add("--seed", type=at_least(0), default=0, help="the same one grows the same programs")
    add("--count", type=at_least(1), metavar="N", help="no more than so many programs")
    add("--jobs", type=at_least(1), default=1, metavar="N", help="worker processes; default: 1")
    add("--target", help="what to build for; default: this machine's CPU")
    add("--opt-level", type=int, choices=range(4), metavar="0..3",
        help="how much LLVM makes of machine code; 0 saves a third of the time")  # fmt: skip
    add("--composites", type=Path, action="append", default=[], metavar="FILE.py",
        help="the composites of this file instead of the built-in ones")  # fmt: skip
    add("--onnx", action="store_true",
        help="write the programs as ONNX models, with ops of ONNX's own among theirs")  # fmt: skip
    add("--like", type=Path, action="append", default=[], metavar="FILE.onnx",
        help="mutants of this ONNX model instead; implies --onnx; may be repeated")  # fmt: skip
    add_shape(parser)
    add("--timeout", type=seconds, default=120.0, help="seconds for one program; default: 120")
    add("--shrink", type=at_least(1), default=150, metavar="N",
        help="programs tried to make one finding smaller; default: 150")  # fmt: skip
    add("--output", type=Path, default=Path("build/fuzz"), metavar="DIR",
        help="where findings go; default: build/fuzz")  # fmt: skip
    add("--replay", type=Path, metavar="CASE",
        help="only this case, as it was written: CASE.json, or CASE.onnx of --like")  # fmt: skip
    add("--json", type=Path, metavar="FILE", help="also write all as data")
    add("--tables", type=Path, action="append", default=[], metavar="FILE",
        help="print what such files say as Markdown, and do nothing else")  # fmt: skip
    parser.set_defaults(run=runs("fuzz.command", "run"))
