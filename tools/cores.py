"""Tasks a core of the seven named workloads on 8, 16 and 64 cores, as a Markdown table.

`python tools/cores.py [--cores 8,16,64] [--mcpu znver3] [WORKLOAD ...]`: each kernel is scheduled
for so many cores, nothing is run. Regions are `tasks (share of the work)`; `use` is the share of
the cores' time that they work, by `selfbyoc/analysis/melting/balance.py`.
"""

from __future__ import annotations

import argparse
from typing import Any

import selfbyoc
from selfbyoc.analysis.kernels import kernels
from selfbyoc.analysis.melting.balance import Balance, balance
from selfbyoc.analysis.melting.read_nest import loop_nest
from selfbyoc.commands.bench.suite import NAMED, suite
from selfbyoc.commands.bench.workload import Workload
from selfbyoc.models.onnx_model import import_onnx
from selfbyoc.tvm import make_target


def balances(workload: Workload, mcpu: str, cores: int) -> list[Balance]:
    """Of each kernel of a workload."""
    target = make_target({"kind": "llvm", "mcpu": mcpu, "num-cores": cores})
    mod: Any = selfbyoc.partition_for_tefuse(import_onnx(workload.model()), target=target)
    return [balance(loop_nest(k.schedule(target)[1].mod["main"])) for k in kernels(mod)]


def cell(found: list[Balance], cores: int) -> str:
    """Regions of a workload's kernels, and the use of the cores (of the least used kernel)."""
    regions = [r for b in found for r in b.regions if r.share >= 0.01]
    tasks = ", ".join(f"{r.tasks} ({r.share:.0%})" for r in regions) or "none"
    return f"{min(b.use(cores) for b in found):.0%}: {tasks}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="*", help="beginnings of names; none: the named seven")
    parser.add_argument("--cores", default="8,16,64")
    parser.add_argument("--mcpu", default="znver3")
    args = parser.parse_args()
    counts = [int(n) for n in args.cores.split(",")]
    starts = tuple(name.lower() for name in args.workloads)
    print(f"| workload | {' | '.join(f'{n} cores' for n in counts)} |")
    print(f"|---|{'---|' * len(counts)}")
    for w in suite():
        if w.name.lower().startswith(starts) if starts else w.group == NAMED:
            cells = [cell(balances(w, args.mcpu, n), n) for n in counts]
            print(f"| {w.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
