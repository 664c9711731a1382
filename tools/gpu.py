"""`make gpu`: the built-in composites as kernels of a GPU, without one or on it.

    python tools/gpu.py --json build/gpu/relax.jsonl     goes on where it was interrupted
    python tools/gpu.py --smallest                       one case of each composite
    python tools/gpu.py --on cuda --part 2/16            on the GPU; every 16th case, from the third
    python tools/gpu.py --tables build/gpu/*.jsonl       what such files say, as Markdown

Each case is built as OpenCL and run on the CPU on edge inputs (`verify`), and built as CUDA, which
is read for mistakes and compiled by NVRTC; or it is built as CUDA and run on the GPU. First it is
said who runs kernels here, or why nobody does, and the same of NVRTC; what is not run or not
compiled is told as such, and is not wrong. The exit status counts what is wrong; it is 1 where
nothing was checked.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from gpu_tables import tables
from matrix_cells import smallest  # type: ignore[import-not-found]
from on_gpu import HERE, verified  # type: ignore[import-not-found]

from selfbyoc.analysis.gpu import cuda, opencl, runtimes
from selfbyoc.analysis.gpu.cases import made
from selfbyoc.analysis.gpu.checks import check
from selfbyoc.analysis.gpu.nvrtc import ARCHES, assembled, cannot_assemble
from selfbyoc.errors import one_line
from selfbyoc.tvm import GENERATION, make_target

# The others say as much on one CPU as on another, and POCL takes a minute for some of them.
KINDS = {"opencl": ("random", "borders"), "cuda": None}
RUNTIMES = {"opencl": runtimes, "cuda": cuda}
CUDA = {"kind": "cuda", "arch": ARCHES[0]}


def of_case(composite: Any, case: Any, on: str) -> dict[str, Any]:
    """All that is found out of a case, as data."""
    named = {"generation": GENERATION, "composite": composite.name, "case": case.name}
    found = {**named, **served(on)}
    if not found["not_run"] and _lacks_halves(case, on):
        found |= {"not_run": f"no float16: {found['ran_by']}", "ran_by": ""}
    wrong = [] if found["not_run"] else _run(composite, case, on)
    if on == "cuda":  # it is run, so nobody needs to read it
        return {**found, "kernels": [], "wrong": wrong}
    try:
        kernels = [_of_cuda(kernel) for kernel in made(composite, case, make_target(CUDA))]
    except Exception as err:  # a schedule, or TVM, raises what it likes; the sweep goes on
        return {**found, "kernels": [], "wrong": [*wrong, f"CUDA: {one_line(err)}"]}
    wrong += [text for kernel in kernels for text in kernel.pop("wrong")]
    return {**found, "kernels": kernels, "wrong": wrong}


def served(on: str) -> dict[str, str]:
    """Who runs kernels here, or why nobody does; why nothing is compiled as CUDA, or ''."""
    not_run = RUNTIMES[on].cannot_run()
    ran_by = "" if not_run else str(RUNTIMES[on].serving())
    return {"ran_by": ran_by, "not_run": not_run, "not_compiled": cannot_assemble()}


def told(served: dict[str, str]) -> str:
    """The same for people, a line each."""
    run = f"not run: {served['not_run']}" if served["not_run"] else ""
    compiled = served["not_compiled"] and f"not compiled as CUDA: {served['not_compiled']}"
    return "\n".join([run or f"run by {served['ran_by']}", compiled or "CUDA: NVRTC"])


def _lacks_halves(case: Any, on: str) -> bool:
    """Whether it is of float16, which nobody computes here."""
    halves = any(dtype == "float16" for _, dtype in case.args.values())
    return on == "opencl" and halves and not runtimes.serving().halves


def _run(composite: Any, case: Any, on: str) -> list[str]:
    """What is wrong with a case that is run."""
    target = cuda.serving().target if on == "cuda" else opencl.TARGET
    ran = verified(composite, case, KINDS[on], target)
    wrong = [str(verdict) for verdict in ran.failed]
    return wrong or ([] if set(ran.counts) == {"passed"} else [f"{on}: {ran.summary}"])


def _of_cuda(made: Any) -> dict[str, Any]:
    checked, source = check(made.lowered), made.lowered.source
    arches = () if cannot_assemble() else ARCHES
    return {
        "level": made.level,
        "launches": len(made.lowered.launches),
        "workspaces": sum(made.lowered.workspaces),
        "checked": [asdict(kernel) for kernel in checked.kernels],
        "assembled": {arch: [asdict(k) for k in assembled(source, arch)] for arch in arches},
        "slow": checked.slow,
        "wrong": checked.wrong,
    }


def found(args: argparse.Namespace, known: set[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """The cases that are asked for, one by one."""
    part, parts = map(int, args.part.split("/"))
    for composite, case in [*asked(args)][part::parts]:
        if (composite.name, case.name) not in known:
            yield of_case(composite, case, args.on)


def asked(args: argparse.Namespace) -> Iterator[tuple[Any, Any]]:
    """The cases of all parts."""
    for composite in HERE:
        if args.composite and composite.name not in args.composite:
            continue
        here = [case for case in composite.cases if GENERATION in case.generations]
        for case in [smallest(composite)] if args.smallest else here:
            yield composite, case


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a file; none of one that is not there."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _verdict(line: dict[str, Any], on: str) -> str:
    unknown = "not run" if on == "cuda" and line["not_run"] else ""  # nor read: nothing is known
    return "; ".join(line["wrong"]) or unknown or "right"


def main() -> int:
    """Run; -> how many cases are wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--composite", action="append", metavar="NAME")
    parser.add_argument("--smallest", action="store_true")
    parser.add_argument("--on", choices=sorted(RUNTIMES), default="opencl")
    parser.add_argument("--part", default="0/1", metavar="N/M")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--tables", type=Path, nargs="+", metavar="FILE")
    args = parser.parse_args()
    if args.tables:
        print(tables([line for path in args.tables for line in read(path)]))
        return 0
    print(told(served(args.on)), flush=True)
    before = read(args.json) if args.json else []
    failed, known = sum(bool(line["wrong"]) for line in before), list(before)
    for line in found(args, {(line["composite"], line["case"]) for line in before}):
        print(f"{line['composite']} {line['case']}: {_verdict(line, args.on)}", flush=True)
        failed += bool(line["wrong"])
        known.append(line)
        if args.json:
            args.json.parent.mkdir(parents=True, exist_ok=True)
            with args.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
    if all(args.on == "cuda" and line["not_run"] for line in known):
        print("nothing was checked")  # as of a name that no composite has
        return 1
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main())
