"""The command line: `selfbyoc` or `python -m selfbyoc`, with compile | run | show | demo |
composites | ops | explain | melting | verify | bounds | lint | op-info | bench | tune | records |
cache | fuzz. A wrong argument or a missing file is answered without TVM.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from . import __version__
from .errors import InputError, SelfbyocError
from .view.bench_options import add_bench
from .view.bounds_options import add_bounds
from .view.console import SafeConsole
from .view.fuzz_options import add_fuzz
from .view.library_options import add_compile, add_run, add_show
from .view.model_file import add_model
from .view.tune_options import add_records, add_tune


def _asked(args: argparse.Namespace) -> dict[str, Any]:
    """What a command's Request holds."""
    return {name: value for name, value in vars(args).items() if name != "run"}


def _demo(args: argparse.Namespace, console: Console) -> int:
    from .demo.run import demo

    return 0 if demo(console, args.output) else 1


def _composites(args: argparse.Namespace, console: Console) -> int:
    from .schedules import BUILTIN
    from .view import tables

    if args.markdown:
        print(tables.composites_markdown(BUILTIN), end="\n\n")
        print(tables.fusion_markdown(BUILTIN))
    else:
        console.print(tables.composites_table(BUILTIN))
    return 0


def _ops(args: argparse.Namespace, console: Console) -> int:
    from .errors import did_you_mean
    from .ops.vocabulary import written
    from .view import op_reference

    if args.op is not None and args.op not in written():
        raise InputError(f"no op {args.op!r}{did_you_mean(args.op, written())}")
    if args.markdown:
        print(op_reference.markdown())
    elif args.stub:
        print(op_reference.stub(), end="")
    else:
        print(op_reference.shown(args.op))
    return 0


def _add_ops(commands: Any) -> None:
    ops = commands.add_parser("ops", help="the ops that patterns are written in")
    ops.add_argument("op", nargs="?", metavar="OP", help="this op alone, as help(op.OP)")
    ops.add_argument("--markdown", action="store_true", help="as in docs/ops.md")
    ops.add_argument("--stub", action="store_true", help="as in language/typed_ops.pyi")
    ops.set_defaults(run=_ops)


def _explain(args: argparse.Namespace, console: Console) -> int:
    from .view.inspection import Question, inspect

    inspect(console, Question(**_asked(args)))
    return 0


def _add_explain(commands: Any) -> None:
    explain = commands.add_parser("explain", help="what matches in a model, what nearly does, why")
    add_model(explain)
    explain.add_argument("--composite", metavar="NAME", help="about this composite alone")
    explain.add_argument("--root", metavar="OP", help="every decision about this op")
    explain.add_argument("--all", action="store_true", help="every decision")
    explain.add_argument("--target", help="what to build for; default: this machine's CPU")
    explain.add_argument(
        "--guard", action="store_true", help="measure each kernel; leave out what does not pay"
    )
    explain.add_argument("--json", type=Path, metavar="FILE", help="also write all as data")
    explain.add_argument("--html", type=Path, metavar="FILE", help="also write a page")
    explain.set_defaults(run=_explain)


def _melting(args: argparse.Namespace, console: Console) -> int:
    from .view.melting_command import Request, show

    show(console, Request(**_asked(args)))
    return 0


def _add_melting(commands: Any) -> None:
    melting = commands.add_parser("melting", help="each kernel's loop nest, and what it saves")
    add_model(melting)
    melting.add_argument("--composite", metavar="NAME", help="about this composite alone")
    melting.add_argument("--target", help="what to build for; default: this machine's CPU")
    melting.add_argument("--time", action="store_true", help="also build and time each kernel")
    melting.add_argument("--json", type=Path, metavar="FILE", help="also write all as data")
    melting.set_defaults(run=_melting)


def _verify(args: argparse.Namespace, console: Console) -> int:
    from .view.verdicts import Request, run

    return 0 if run(console, Request(**_asked(args))) else 1


def _add_verify(commands: Any) -> None:
    verify = commands.add_parser("verify", help="each kernel on edge inputs, against references")
    add_model(verify)
    verify.add_argument("--target", help="what to build for; default: this machine's CPU")
    verify.add_argument("--kind", action="append", help="a kind of input; default: all of them")
    verify.add_argument("--seed", type=int, default=0, help="of the random inputs")
    verify.add_argument(
        "--timeout", type=float, default=300.0, help="seconds for one build or run; default: 300"
    )
    verify.add_argument("--json", type=Path, metavar="FILE", help="also write all as data")
    verify.set_defaults(run=_verify)


def _lint(args: argparse.Namespace, console: Console) -> int:
    from .analysis.lint.linter import lint_file
    from .view.verdicts import print_findings

    findings = lint_file(args.file, args.name)
    print_findings(console, findings, str(args.file))
    return 1 if findings else 0


def _add_lint(commands: Any) -> None:
    lint = commands.add_parser("lint", help="check the composites that a file declares")
    lint.add_argument("file", type=Path, metavar="FILE.py")
    lint.add_argument("name", nargs="?", metavar="NAME", help="this composite alone")
    lint.set_defaults(run=_lint)


def _op_info(args: argparse.Namespace, console: Console) -> int:
    from .view.op_info_command import Request, show

    show(console, Request(**_asked(args)))
    return 0


def _add_op_info(commands: Any) -> None:
    info = commands.add_parser("op-info", help="the ops of each kernel, stacked and scheduled")
    info.add_argument("composite", nargs="?", metavar="COMPOSITE", help="this composite alone")
    info.add_argument("--target", help="what to schedule for; default: this machine's CPU")
    info.add_argument("--json", type=Path, metavar="FILE", help="also write all as data")
    info.add_argument("--markdown", action="store_true", help="as in docs/reports/op-info.md")
    info.set_defaults(run=_op_info)


def _cache(args: argparse.Namespace, console: Console) -> int:
    from .view.cache_command import show

    show(console, args.clear)
    return 0


def _add_cache(commands: Any) -> None:
    cache = commands.add_parser("cache", help="the kernels that were compiled before, on disk")
    cache.add_argument("--clear", action="store_true", help="drop them all")
    cache.set_defaults(run=_cache)


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
    for add in (add_compile, add_run, add_show, _add_demo, _add_composites, _add_ops, _add_explain,
                _add_melting, _add_verify, add_bounds, _add_lint, _add_op_info, add_bench,
                add_tune, add_records, _add_cache, add_fuzz):  # fmt: skip
        add(commands)
    return parser


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser("demo", help="GoogLeNet: partition, build, check, time")
    demo.add_argument("--output", type=Path, default=Path("build/demo"), help="folder of the page")
    demo.set_defaults(run=_demo)


def _add_composites(commands: Any) -> None:
    composites = commands.add_parser("composites", help="list the built-in composites")
    composites.add_argument("--markdown", action="store_true", help="as in docs/composites.md")
    composites.set_defaults(run=_composites)


# The arguments that name files to read: a path, or several.
_READ = ("model", "file", "own", "input", "composites", "minilm", "replay")


def _check_files(args: argparse.Namespace) -> None:
    for name in _READ:
        value: Any = getattr(args, name, None) or []
        for given in value if isinstance(value, list) else [value]:
            path: Any = getattr(given, "path", given)
            if not path.exists():
                raise InputError(f"{path} cannot be read: No such file or directory")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; -> the exit status: 0, 1 for what went wrong, 2 for wrong arguments."""
    args = _parser().parse_args(argv)
    console = SafeConsole(width=None if sys.stdout.isatty() else WIDTH)
    try:
        _check_files(args)
        importlib.import_module("selfbyoc.api")  # TVM, and what the library sets up
        return args.run(args, console)
    except SelfbyocError as err:
        print(f"error: {err}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
