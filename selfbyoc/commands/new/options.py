"""The options of `new`."""

from __future__ import annotations

from ..command import Commands, add_command, runs


def add_new(commands: Commands) -> None:
    """A composite to begin with."""
    parser = add_command(
        commands, "new", "a composite of your own to begin with, and its test",
        """
        % mine             writes mine.py and test_mine.py
        % mine --package   writes a folder that pip installs""",
    )  # fmt: skip
    parser.add_argument("name", metavar="NAME", help="lower case letters, digits and underscores")
    parser.add_argument("--package", action="store_true", help="in a folder NAME, with a "
        "pyproject.toml by which `--composites installed` finds it")  # fmt: skip
    parser.set_defaults(run=runs("new.command", "new"))
