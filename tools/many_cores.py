"""What many cores would gain whole models, simulated on two.

    python tools/many_cores.py build FOLDER       each model for 2 to 64 cores (some 20 minutes)
    python tools/many_cores.py measure FOLDER     their kernels on 1 thread, and on 2 (2 minutes;
                                                  nothing else may run)
    python tools/many_cores.py tables FOLDER      the tables of docs/makers/many-cores.md

The schedule for so many cores runs on one: its time is that of all the work, with the halos and
small tiles that many cores need. It is shared out as the schedule's tasks can be, and what launches
and memory take is added (tools/simulated_cores/timing.py). How far off that is, the same for two
cores shows, which are measured too. Relax.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

# After what is on the path: `PYTHONPATH=/another/checkout` looks at that one.
sys.path.append(str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

CORES = (2, 4, 8, 16, 64)
CHECKED = (2, 16, 64)  # schedules that are measured on two threads, too


def _build(folder: Path, only: str) -> None:
    from simulated_cores.building import build, models

    folder.mkdir(parents=True, exist_ok=True)
    for cores in CORES:
        for name, workload in models(only).items():
            build(name, workload, cores, folder)
            print(name, cores, flush=True)


def _measure(folder: Path, threads: list[int]) -> None:
    """In a process each: TVM's threads are those of a process."""
    for count in threads:
        code = "import sys; from pathlib import Path; from simulated_cores.measuring import measure"
        wanted = [f".{cores}.so" for cores in (CORES if count == 1 else CHECKED)]
        run = f"{code}; measure(Path(sys.argv[1]), {count}, {wanted})"
        path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
        env = {**os.environ, "TVM_NUM_THREADS": str(count), "PYTHONPATH": path}
        subprocess.run([sys.executable, "-c", run, str(folder)], check=True, env=env)


def main() -> None:
    """One step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("step", choices=("build", "measure", "tables"))
    add("folder", type=Path)
    add("--only", default="", help="models whose names contain this")
    add("--threads", default="1,2", help="to measure on; default: 1,2")
    args = parser.parse_args()
    if args.step == "build":
        _build(args.folder, args.only)
    elif args.step == "measure":
        _measure(args.folder, [int(n) for n in args.threads.split(",")])
    else:
        from simulated_cores.tables import tables

        print("\n".join(tables(args.folder, CORES, CHECKED)))


if __name__ == "__main__":
    main()
