"""A command of the command line: its one line, its help with examples, and what runs it."""

from __future__ import annotations

import argparse
import gc
import importlib
import math
from collections.abc import Callable
from typing import TypeAlias

from rich.console import Console

from ..common.collecting import put_off

Run = Callable[[argparse.Namespace, Console], int]
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_OURS = ("run", "before")  # what a command is, and what may answer before TVM is imported
RIGHT, FOUND = 0, 1  # exit codes; argparse's for wrong arguments is 2


def add_command(commands: Commands, name: str, text: str, examples: str) -> argparse.ArgumentParser:
    """A command's parser. In an example `%` is the command, and two spaces begin a remark."""
    lines = [f"  %(prog)s{line.strip()[1:]}" for line in examples.strip().splitlines()]
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}{'' if text.endswith('?') else '.'}",
        epilog="\n".join(["examples:", *lines]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def at_least(least: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number from here on."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected {least} or more, found {text!r}")
        return int(text)

    return number


def seconds(text: str) -> float:
    """The type of an argument that is a time above 0."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"expected a time above 0, found {text!r}")
    return found


def answers(module: str, function: str) -> Callable[[argparse.Namespace, Console], bool]:
    """What is asked before TVM is imported: a function of a module in this room. Where it is true,
    all is done.
    """

    def before(args: argparse.Namespace, console: Console) -> bool:
        there = importlib.import_module(f".{module}", __package__)
        return bool(getattr(there, function)(args, console))

    return before


def runs(module: str, function: str, request: str = "Request") -> Run:
    """What a command does: a function of a module in this room, which is imported only then, on
    its request of the arguments. A result that is false says that something was found.
    """

    def run(args: argparse.Namespace, console: Console) -> int:
        with put_off():
            there = importlib.import_module(f".{module}", __package__)
        gc.freeze()  # what was imported stays until the process ends
        asked = {name: value for name, value in vars(args).items() if name not in _OURS}
        found = getattr(there, function)(console, getattr(there, request)(**asked))
        return FOUND if found is False else RIGHT

    return run
