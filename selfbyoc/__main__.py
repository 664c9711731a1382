"""The command line: `selfbyoc` or `python -m selfbyoc`, with compile | quantize | run | show |
demo | composites | ops | new | explain | melting | verify | bounds | lint | op-info | bench |
tune | records | cache | fuzz. A wrong argument or a missing file is answered without TVM.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console

from .commands.bench.options import add_bench
from .commands.bounds.options import add_bounds
from .commands.command import add_command
from .commands.composites.options import add_cache, add_lint, add_list, add_op_info, add_ops
from .commands.console import SafeConsole
from .commands.fuzz.options import add_fuzz
from .commands.model.compiled_before import beside
from .commands.model.library_options import add_compile, add_run, add_show
from .commands.model.options import add_explain, add_melting, add_verify
from .commands.model_file import LIBRARIES
from .commands.new.options import add_new
from .commands.quantize.options import add_quantize
from .commands.tune.options import add_records, add_tune
from .common.files import check_output
from .errors import InputError, SelfbyocError, one_line
from .printable import shown
from .version import __version__


def _add_demo(commands: Any) -> None:
    """The demonstration."""
    parser = add_command(
        commands, "demo", "GoogLeNet: partition, build, check, time",
        """
        %
        % --output demo           the page goes to demo/""",
    )  # fmt: skip
    parser.add_argument("--output", type=Path, default=Path("build/demo"), metavar="DIR",
        help="folder of the page; default: build/demo")  # fmt: skip
    parser.set_defaults(run=_demo)


def _demo(args: argparse.Namespace, console: Console) -> int:
    from .commands.demo.run import demo

    return 0 if demo(console, args.output) else 1


_SHOWS_FAULTS = "SELFBYOC_TRACEBACK"
WIDTH = 120  # in a file, where rich would break lines at 80

_EXAMPLES = """
examples:
  %(prog)s compile model.onnx --shape images=1x3x224x224
  %(prog)s run model.so --input images=images.npy --output results
  %(prog)s show model.so
  %(prog)s explain model.onnx --html page.html
  %(prog)s COMMAND --help"""


def _parser() -> argparse.ArgumentParser:
    is_script = os.path.basename(sys.argv[0]) == "selfbyoc"
    parser = argparse.ArgumentParser(
        prog="selfbyoc" if is_script else "python -m selfbyoc",
        description="TVM as its own external compiler.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"selfbyoc {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (add_compile, add_quantize, add_run, add_show, _add_demo, add_list, add_ops,
                add_new, add_explain, add_melting, add_verify, add_bounds, add_lint, add_op_info,
                add_bench, add_tune, add_records, add_cache, add_fuzz):  # fmt: skip
        add(commands)
    return parser


# The arguments that name files to read: a path, or several.
_READ = (
    "model", "file", "own", "input", "composites", "minilm", "replay", "like", "tables", "markdown",
)  # fmt: skip


# Those that name files to write: a text goes to a pipe or a terminal, too.
_TEXTS, _OUTPUT = ("json", "html", "roofline"), "output"


def _check_files(args: argparse.Namespace) -> None:
    read = list(_paths(args, _READ))
    for path in read:
        if not _is_there(path):
            raise InputError(f"{path} cannot be read: No such file or directory")
    texts, made = _paths(args, _TEXTS), [] if "model" not in args else _paths(args, [_OUTPUT])
    for path, is_text in (*((path, True) for path in texts), *((path, False) for path in made)):
        check_output(path, read, is_text)
        if path.is_file() and path.suffix.lower() not in LIBRARIES:
            check_output(path, chain(*map(beside, read)), is_text)


def _paths(args: argparse.Namespace, names: Iterable[str]) -> Iterator[Path]:
    for name in names:
        value: Any = getattr(args, name, None) or []
        for given in value if isinstance(value, list) else [value]:
            path: Any = getattr(given, "path", given)
            if isinstance(path, Path):
                yield path


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError) as err:  # a name that is too long, a loop of links
        why = err.strerror if isinstance(err, OSError) else str(err)
        raise InputError(f"{path} cannot be read: {why}") from err


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; -> the exit status: 0, 1 for what went wrong, 2 for wrong arguments, 130
    for Ctrl-C."""
    _fill_closed()
    args = _parser().parse_args(argv)
    if sys.stdout is None:
        print("error: standard output is closed", file=sys.stderr)
        return 1
    console = SafeConsole(width=None if sys.stdout.isatty() else WIDTH)
    usual, warnings.formatwarning = warnings.formatwarning, _warning
    try:
        _check_files(args)
        if "before" in args and args.before(args, console):
            return 0
        return args.run(args, console)
    except SelfbyocError as err:
        print(f"error: {err}", file=sys.stderr)
        return 1
    except OSError as err:  # of the terminal or file that all is printed to, as a full disk
        print(f"error: {err.strerror or err}", file=sys.stderr)
        return 1
    except MemoryError:
        print("error: there is not enough memory", file=sys.stderr)
        return 1
    except Exception as err:  # whatever a part of ours, or a package, raises that nobody foresaw
        if os.environ.get(_SHOWS_FAULTS):
            raise
        text = f"{one_line(err)} (a fault of selfbyoc's; {_SHOWS_FAULTS}=1 shows where)"
        print(f"error: {shown(text)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130  # as a shell has it for SIGINT
    finally:
        warnings.formatwarning = usual


def _fill_closed() -> None:
    """A file that is opened gets the first number that is free, and what is written to standard
    output or error would be in it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:  # else `print` takes standard output for it
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (until the end)


def _warning(message: Warning | str, *_: Any, **__: Any) -> str:
    """Without the line of this library that raised it."""
    return f"warning: {message}\n"


if __name__ == "__main__":
    sys.exit(main())
