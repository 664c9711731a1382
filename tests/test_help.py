"""Every command's `--help` says what it is for, has examples, and fits into 80 columns."""

import shlex

import pytest

from selfbyoc.__main__ import _parser
from selfbyoc.view.examples import EXAMPLES

COMMANDS = _parser()._subparsers._group_actions[0].choices


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = COMMANDS[command].format_help()
    assert text.partition("examples:\n")[2].strip()
    assert "{" not in COMMANDS[command].description
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("command", EXAMPLES)
def test_the_examples_are_understood(command):
    """Their options exist: nothing is read or run here."""
    for line in EXAMPLES[command]:
        asked = _parser().parse_args([command, *shlex.split(line)])
        assert asked.run is not None
