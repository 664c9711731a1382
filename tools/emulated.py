"""Every built-in composite for older CPUs than this machine's, run under an emulator of each.

`make emulate`, or `python tools/emulated.py [--cpu NAME] [--composite NAME]`; needs qemu-user
(Debian: `apt install qemu-user`) and a C++ compiler. The first case of each composite is built and
exported here, for the CPU, and run there in one process: an instruction that the CPU lacks ends it.
The library must find that it may load each file, and the results must be NumPy's.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
from harness import expected, model, random_args  # type: ignore[import-not-found]

import selfbyoc
from selfbyoc.common.probes import program
from selfbyoc.errors import TargetError
from selfbyoc.ir.generation import ir
from selfbyoc.machine import host
from selfbyoc.runtime.tolerance import first_wrong, longest_reduction
from selfbyoc.tvm import GENERATION

# LLVM's -mcpu and the emulator's name: AVX2 with FMA, SSE4.2, SSE2. Code for SSE2 runs on a CPU
# with SSE4.2 too: on a lesser one NumPy's wheels end the process (they are built for x86-64-v2).
CPUS = {"haswell": "Haswell", "nehalem": "Nehalem", "x86-64": "Nehalem"}
EMULATOR = "qemu-x86_64"


def export(composite: selfbyoc.Composite, cpu: str, folder: Path) -> None:
    """Build a composite's first case, and write what running it needs."""
    case = next(c for c in composite.cases if GENERATION in c.generations)
    args, target = random_args(case), f"llvm -mcpu={cpu}"
    mod = model(composite, case, args)
    parted = selfbyoc.partition_for_tefuse(mod, target=target, composites=[composite])
    if composite.name not in selfbyoc.report(parted).counts:
        raise AssertionError(f"{composite.name}: its case {case.name} does not match")
    library = selfbyoc.build(parted, target)
    library.export_library(folder / f"{composite.name}.so")
    facts = {
        "reduction": longest_reduction(ir.read(mod["main"])),
        "outputs": len(wanted := expected(composite, case, args)),
    }
    (folder / f"{composite.name}.json").write_text(json.dumps(facts), encoding="utf-8")
    arrays = {f"in_{name}": args[name] for name, _, _ in library.inputs}
    arrays |= {f"out_{n}": array for n, array in enumerate(wanted)}
    np.savez(folder / f"{composite.name}.npz", **arrays)


def run(folder: Path) -> int:
    """Under the emulator: run what was exported; the exit status counts what is wrong."""
    failed = 0
    print(f"CPU: {host.cpu()}, {' '.join(sorted(host.features()))}", flush=True)
    for path in sorted(folder.glob("*.so")):
        print(f"{path.stem:32}", end=" ", flush=True)  # before it may end the process
        verdict = _verdict(path)
        failed += verdict != "right"
        print(verdict, flush=True)
    return min(failed, 100)


def _verdict(path: Path) -> str:
    """'right', or what is wrong with one library."""
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    try:
        library = selfbyoc.load(path)
    except TargetError as err:
        return f"REFUSED: {err}"
    with np.load(path.with_suffix(".npz")) as file:
        found = library(*(file[f"in_{name}"] for name, _, _ in library.inputs))
        wanted = [file[f"out_{n}"] for n in range(facts["outputs"])]
    wrong = (
        first_wrong(f, w, str(f.dtype), facts["reduction"])
        for f, w in zip(found, wanted, strict=True)
    )
    return next((f"WRONG: {text}" for text in wrong if text is not None), "right")


def cannot_emulate(cpu: str) -> str:
    """Why the emulator of a CPU does not serve, or ''."""
    if shutil.which(EMULATOR) is None:
        return f"{EMULATOR} is not installed (Debian, Ubuntu: apt install qemu-user)"
    command = [EMULATOR, "-cpu", CPUS[cpu], sys.executable, "-c", "print(6 * 7)"]
    return program(f"{EMULATOR} -cpu {CPUS[cpu]}", command, "^42\n")


def emulate(cpu: str, names: list[str] | None) -> int:
    """Export for a CPU, and run it there."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for composite in selfbyoc.BUILTIN:
            here = any(GENERATION in case.generations for case in composite.cases)
            if here and (names is None or composite.name in names):
                export(composite, cpu, folder)
        print(f"\n{cpu}, {GENERATION}: {len(list(folder.glob('*.so')))} composites", flush=True)
        command = [EMULATOR, "-cpu", CPUS[cpu], sys.executable, __file__, "--run", scratch]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        print(f"{cpu}: FAILED, the emulator ended with status {done.returncode}", flush=True)
    return done.returncode


def main() -> int:
    """The exit status says whether everything ran and was right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", choices=CPUS, action="append")
    parser.add_argument("--composite", action="append")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        return run(args.run)
    wanted = args.cpu or [cpu for cpu in CPUS if host.runs(f"llvm -mcpu={cpu}")]
    if why := next(filter(None, map(cannot_emulate, wanted)), ""):
        parser.error(why)
    return 1 if any([emulate(cpu, args.composite) for cpu in wanted]) else 0


if __name__ == "__main__":
    sys.exit(main())
