"""Every built-in composite for other CPUs: does it compile, is it right, and what is its code like?

`make portability`, or `python tools/portability.py [--target NAME] [--composite NAME]`. The first
case of each composite is built for each target. Where this machine can run the code it is compared
with NumPy; the assembly's longest run of vector multiply-adds is its hot block, and stores to the
stack there are spills.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from harness import assert_close, model, random_args, run_case  # type: ignore[import-not-found]

import selfbyoc
from selfbyoc import host
from selfbyoc._tvm import GENERATION, make_target, module_source
from selfbyoc.analysis.kernels import kernels
from selfbyoc.cache.kernels import using
from selfbyoc.codegen.lower import lower

TARGETS = {
    "skylake-avx512": "llvm -mcpu=skylake-avx512",
    "znver2": host.fitted("llvm -mcpu=znver2"),
    "x86-64-v3": "llvm -mcpu=x86-64-v3"
    if GENERATION == "relax"
    else "llvm -mattr=+avx2,+fma,+f16c,+bmi,+bmi2",  # LLVM 10 does not know the name
    "x86-64": "llvm -mcpu=x86-64",
    "aarch64": "llvm -mtriple=aarch64-linux-gnu -mattr=+neon",
}
_MULTIPLY = {
    "x86": re.compile(r"\s(vfn?m(add|sub)\w*p[sd]|v?mulps|v?pmaddwd|vpdpbusd)\s"),
    "arm": re.compile(r"\s(fmla|fmul|mla|smlal2?)\s+v"),
}
_SPILL = {
    "x86": re.compile(r"\sv?mov[au]p[sd]\s+%[xyz]mm\d+, -?\d*\(%r[sb]p\)"),
    "arm": re.compile(r"\s(str\s+q\d+|stp\s+q\d+, q\d+), \[(sp|x29)"),
}
_LABEL = re.compile(r"^(?!\.Ltmp)\.?\w+:")  # .Ltmp is of debug information, anywhere in a block


def assembly(composite: selfbyoc.Composite, case: selfbyoc.Case, target: str) -> str:
    """The code of the case's kernel."""
    built_for = make_target(target)
    mod = selfbyoc.partition_for_tefuse(
        model(composite, case, random_args(case)), target=built_for, composites=[composite]
    )
    with using(False):
        module = lower(kernels(mod)[0].source, built_for)
    return module_source(module, "asm")


def hot_block(text: str, kind: str) -> list[str]:
    """The basic block with the most vector multiplications, by lines."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if _LABEL.match(line):
            blocks.append([])
        blocks[-1].append(line)
    return max(blocks, key=lambda block: sum(bool(_MULTIPLY[kind].search(x)) for x in block))


def counts(text: str, name: str) -> tuple[int, int]:
    """Vector multiplications and spilled registers of the hot block."""
    kind = "arm" if name == "aarch64" else "x86"
    block = hot_block(text, kind)
    return tuple(  # type: ignore[return-value]
        sum(bool(pattern[kind].search(line)) for line in block) for pattern in (_MULTIPLY, _SPILL)
    )


def main() -> int:
    """Print a table; the exit status says whether everything compiled and was right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--composite", action="append")
    args = parser.parse_args()
    failed = 0
    print(f"{'composite':28} {'target':16} {'multiplies':>10} {'spills':>7}  result")
    for composite in selfbyoc.BUILTIN:
        if args.composite and composite.name not in args.composite:
            continue
        case = next((c for c in composite.cases if GENERATION in c.generations), None)
        if case is None:  # it exists on the other generation only
            continue
        for name in args.target or TARGETS:
            verdict, found = "compiles", (0, 0)
            try:
                found = counts(assembly(composite, case, TARGETS[name]), name)
                if host.runs(TARGETS[name]):
                    assert_close(run_case(composite, case, target=TARGETS[name]))
                    verdict = "right"
            except Exception as err:  # the table goes on, and the status tells
                verdict, failed = f"FAILED: {str(err).strip().splitlines()[-1][:60]}", failed + 1
            row = f"{composite.name:28} {name:16} {found[0]:>10} {found[1]:>7}  {verdict}"
            print(row, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
