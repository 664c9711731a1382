"""The options of `composites`, `ops`, `lint`, `op-info` and `cache`."""

from __future__ import annotations

from pathlib import Path

from ..command import Commands, add_command, runs
from ..model_file import add_composites


def add_list(commands: Commands) -> None:
    """The composites."""
    parser = add_command(
        commands, "composites", "list the built-in composites",
        """
        %
        % --composites mine.py""",
    )  # fmt: skip
    parser.add_argument("--markdown", action="store_true", help="as in docs/composites.md")
    add_composites(parser)
    parser.set_defaults(run=runs("composites.command", "composites", "Composites"))


def add_ops(commands: Commands) -> None:
    """The vocabulary."""
    parser = add_command(
        commands, "ops", "the ops that patterns are written in",
        """
        %
        % conv2d                  as help(selfbyoc.op.conv2d)""",
    )  # fmt: skip
    add = parser.add_argument
    add("op", nargs="?", metavar="OP", help="this op alone, as help(op.OP)")
    add("--markdown", action="store_true", help="as in docs/ops.md")
    add("--stub", action="store_true", help="as in language/typed_ops.pyi")
    parser.set_defaults(run=runs("composites.command", "ops", "Ops"))


def add_lint(commands: Commands) -> None:
    """Declarations."""
    parser = add_command(
        commands, "lint", "check the composites that a file declares",
        """
        % mine.py
        % mine.py dense_relu      this composite alone""",
    )  # fmt: skip
    parser.add_argument("file", type=Path, metavar="FILE.py", help="a file of composites")
    parser.add_argument("name", nargs="?", metavar="NAME", help="this composite alone")
    parser.set_defaults(run=runs("composites.command", "lint", "Lint"))


def add_op_info(commands: Commands) -> None:
    """Op info."""
    parser = add_command(
        commands, "op-info", "the ops of each kernel, stacked and scheduled",
        """
        % conv2d
        % mine --composites mine.py
        % dense --target 'llvm -mcpu=haswell'""",
    )  # fmt: skip
    add = parser.add_argument
    add("composite", nargs="?", metavar="COMPOSITE", help="this composite alone")
    add_composites(parser)
    add("--target", help="what to schedule for; default: this machine's CPU")
    add("--json", type=Path, metavar="FILE", help="also write all as data")
    add("--markdown", action="store_true", help="as in docs/reports/op-info.md")
    parser.set_defaults(run=runs("composites.op_info", "show"))


def add_cache(commands: Commands) -> None:
    """The compile cache."""
    parser = add_command(
        commands, "cache", "the kernels that were compiled before, on disk",
        """
        %
        % --clear""",
    )  # fmt: skip
    parser.add_argument("--clear", action="store_true", help="drop them all")
    parser.set_defaults(run=runs("composites.cache", "show"))
