"""The options of `python -m selfbyoc tune` and `records`."""

from __future__ import annotations

from pathlib import Path

from ..command import Commands, add_command, at_least, runs, seconds
from ..model_file import add_model


def add_tune(commands: Commands) -> None:
    """The command, in the command line's list of them."""
    tune = add_command(
        commands, "tune", "search better numbers for the schedules of a model",
        """
        % model.onnx --records records --seconds 600
        % model.onnx --shape ids=1x128 --list
        % model.onnx --composites mine.py --min-ops 2""",
    )  # fmt: skip
    add = tune.add_argument
    add_model(tune)
    add("--trials", type=at_least(1), default=64, metavar="N",
        help="candidates a task; default: 64")  # fmt: skip
    add("--records", type=Path, default=Path("records"), metavar="DIR", help="default: records")
    add("--seconds", type=seconds, metavar="S", help="end after this time at the latest")
    add("--target", help="what to tune for; default: this machine's CPU")
    add("--space", choices=("own", "metaschedule"), default="own", help="what is searched: the "
        "composites' choices (default), or MetaSchedule's own space for all")  # fmt: skip
    add("--min-ops", type=at_least(1), default=1, metavar="N", help="only kernels of so many ops")
    add("--include-simple-tasks", "--all", action="store_true", help="also kernels of elementwise "
        "and data-moving ops alone")  # fmt: skip
    add("--tracker", metavar="HOST:PORT", help="measure on the machines of this RPC tracker")
    add("--key", help="under which its servers are registered")
    add("--json", type=Path, metavar="FILE", help="also write what was found as data")
    add("--list", action="store_true", help="list the tasks, and tune nothing")
    tune.set_defaults(run=runs("tune.command", "show"))


def add_records(commands: Commands) -> None:
    """As `add_tune`."""
    records = add_command(
        commands, "records", "the records of tuning in a folder",
        """
        % records
        % records model.onnx --shape ids=1x128
        % records model.onnx --composites mine.py""",
    )  # fmt: skip
    records.add_argument("folder", type=Path, metavar="DIR", help="what `tune --records` wrote")
    add_model(records, nargs="?", help="also say which of them a build of this model takes, and "
              "why not the rest; the exit status is 1 if it takes none, or if one that was "
              "measured here no longer fits its kernel")  # fmt: skip
    records.add_argument("--target", help="what is built for; default: this machine's CPU")
    records.set_defaults(run=runs("tune.records", "show"))
