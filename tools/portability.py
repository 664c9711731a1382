"""Built-in composites on CPUs that this machine is not: do they compile, are they right, and how
much of each CPU's multiply-adds do the main kernels' hot loops reach?

    python tools/portability.py                          all three parts (make portability)
    python tools/portability.py compile [--composite conv2d] [--cpu znver3]
    python tools/portability.py run [--composite conv2d] [--cpu neoverse-n1]
    python tools/portability.py mca [--kernel attention] [--cpu znver3] [--code] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

# After what is on the path: `PYTHONPATH=/another/checkout` looks at that one's kernels.
sys.path.append(str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from other_cpus.aarch64 import check_tools
from other_cpus.cpus import BY_NAME, CPU, CPUS
from other_cpus.kernels import MAIN
from other_cpus.mca import program
from other_cpus.runs import EMULATED, Result, chosen, compiled, run
from other_cpus.table import details, markdown, rows

import selfbyoc
from selfbyoc.errors import ToolError


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=["compile", "run", "mca"])
    parser.add_argument("--cpu", choices=BY_NAME, action="append")
    names = [composite.name for composite in selfbyoc.BUILTIN]
    parser.add_argument("--composite", choices=names, action="append")
    parser.add_argument("--kernel", choices=MAIN, action="append")
    parser.add_argument("--code", action="store_true", help="mca: print the hot loops' code")
    parser.add_argument("--json", action="store_true", help="mca: the table as JSON")
    return parser.parse_args()


def _told(results: Iterable[Result]) -> bool:
    """Print each result as it comes; whether all are good."""
    failed = 0
    for found in results:
        print(f"{found.composite:28} {found.cpu.name:16} {found.verdict}", flush=True)
        failed += found.is_failure
    return not failed


def _compile(args: argparse.Namespace, cpus: list[CPU]) -> bool:
    return _told(compiled(chosen(args.composite), cpus))


def _run(args: argparse.Namespace, cpus: list[CPU]) -> bool:
    if not args.cpu:
        cpus = [cpu for cpu in CPUS if not cpu.is_arm] + [EMULATED]
    if any(cpu.is_arm for cpu in cpus):
        check_tools()
    return _told(run(chosen(args.composite), cpus))


def _mca(args: argparse.Namespace, cpus: list[CPU]) -> bool:
    program()
    found = []
    for row in rows(args.kernel or MAIN, cpus):
        found.append(row)
        print(details(row, args.code), file=sys.stderr, flush=True)
    print(json.dumps([x.record() for x in found], indent=1) if args.json else markdown(found))
    return True  # a table to read: docs/makers/portability.md says what keeps a loop below the goal


PARTS = {"compile": _compile, "run": _run, "mca": _mca}


def main() -> int:
    """The exit status says whether everything compiled, was right, and could be looked at."""
    args = _arguments()
    cpus = [BY_NAME[name] for name in args.cpu] if args.cpu else list(CPUS)
    is_good = True
    for name in [args.part] if args.part else PARTS:
        try:
            is_good &= PARTS[name](args, cpus)
        except ToolError as err:
            print(f"{name}: {err}", file=sys.stderr)
            is_good = False
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
