"""Every case of every built-in composite: our build against TVM's default build of the same module.

    python benchmarks/cases.py [--json FILE] [--quick] [composite ...]

Same target, same threads, weights constant. Windows of the two builds take turns, and only those
count in which the process was not interrupted (a busy neighbour doubles what is statically split);
the medians are compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

for _folder in (".", "tests/support"):  # the harness makes a model of a case
    sys.path.insert(0, str(Path(__file__).parents[1] / _folder))

import numpy as np
from harness import model, random_args
from rich.console import Console
from rich.table import Table

import selfbyoc
from selfbyoc.language.case import Case
from selfbyoc.language.composite import Composite
from selfbyoc.models.generation import tvm_road
from selfbyoc.runtime.generation import runtime
from selfbyoc.runtime.timing import latency
from selfbyoc.tvm import GENERATION, TVMError, tvm


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one case; `default` is None where TVM cannot build it by itself."""

    composite: str
    case: str
    default: float | None
    ours: float

    @property
    def ratio(self) -> float | None:
        """How often faster ours is."""
        return None if self.default is None else self.default / self.ours


def default_build(mod: Any, target: Any) -> Any | None:
    """What TVM makes of the module by itself, in the same target; None where it cannot.

    relay.build of 0.17 fails on nn.dense of three axes (AlterOpLayout).
    """
    try:
        return tvm_road.default_build(mod, target)
    except (TVMError, ValueError):
        if GENERATION == "relax":
            raise
        return None


def runner(native: Any, names: Sequence[str], arrays: Sequence[np.ndarray]) -> Callable[[], Any]:
    """A call without the copying in and out."""
    tensors = [runtime.to_tensor(a) for a in arrays]
    return runtime.calling(runtime.session(native), names, tensors)[0]


def measure(composite: Composite, case: Case, target: Any, rounds: int) -> Timing:
    """Build a case twice and time both."""
    args = random_args(case)
    mod = model(composite, case, args)
    library = selfbyoc.build(mod, target, composites=[composite])
    names = [name for name, _, _ in library.inputs]
    arrays = [args[name] for name in names]
    builds = {"ours": library.native, "default": default_build(mod, target)}
    calls = {n: runner(native, names, arrays) for n, native in builds.items() if native is not None}
    found = {n: time.milliseconds for n, time in latency(calls, rounds, budget=2.0).items()}
    return Timing(composite.name, case.name, found.get("default"), found["ours"])


def table(timings: Sequence[Timing]) -> Table:
    """Losses are shown as they are."""
    found = Table(title=f"TVM {tvm.__version__} ({GENERATION}), milliseconds")
    found.add_column("composite", no_wrap=True)
    found.add_column("case", no_wrap=True)
    for name in ("TVM default", "selfbyoc", "times faster"):
        found.add_column(name, justify="right")
    for t in timings:
        if t.default is None or t.ratio is None:
            found.add_row(t.composite, t.case, "does not build", f"{t.ours:.4f}", "-")
            continue
        style = "" if t.ratio >= 1 else "red"
        numbers = (f"{t.default:.4f}", f"{t.ours:.4f}", f"{t.ratio:.2f}")
        found.add_row(t.composite, t.case, *numbers, style=style)
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("composites", nargs="*", metavar="composite", help="default: all")
    parser.add_argument("--json", type=Path, help="also write the numbers there")
    parser.add_argument("--quick", action="store_true", help="few windows")
    options = parser.parse_args()
    known = {c.name: c for c in selfbyoc.BUILTIN}
    unknown = sorted(set(options.composites) - set(known))
    if unknown:
        parser.error(f"unknown {unknown}; known: {list(known)}")
    target, console = selfbyoc.host_target(), Console()
    timings = []
    for name in options.composites or known:
        for case in (c for c in known[name].cases if GENERATION in c.generations):
            timings.append(measure(known[name], case, target, 5 if options.quick else 25))
            console.print(f"{name} {case.name}: {timings[-1].ours:.4f} ms", style="dim")
    console.print(table(timings))
    if options.json:
        rows = [{**asdict(t), "ratio": t.ratio} for t in timings]
        found = {"generation": GENERATION, "tvm": tvm.__version__, "cases": rows}
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
