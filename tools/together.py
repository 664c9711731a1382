"""Calls a second where a model has company: several processes, several libraries in one process.

    python tools/together.py MODEL.onnx ... [--peers onnxruntime,openvino] [--seconds 3] [--json F]

Each row of a table is one arrangement: processes, the libraries that each calls at once from a
thread each, and the threads of a call. Everybody's processes run by themselves, in turns; the
numbers are the calls a second of all libraries together.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from selfbyoc.commands.bench.contenders import CONTENDERS, Built
from selfbyoc.commands.bench.contenders.contender import Inputs
from selfbyoc.commands.bench.contenders.runtimes import on_compiled, ov_compiled
from selfbyoc.commands.bench.inputs import inputs_of
from selfbyoc.commands.bench.process import Process
from selfbyoc.commands.bench.setting import Setting, make_setting
from selfbyoc.commands.bench.worker import Answers
from selfbyoc.commands.bench.worker import main as serve
from selfbyoc.common.optional import extra

OURS = "selfbyoc"
TURNS = 3
HEADER = "processes x libraries x threads"


def _openvino(path: str, inputs: Inputs, setting: Setting) -> Built:
    """Not bound to cores: those of two processes would be the same."""
    return on_compiled(ov_compiled(path, setting, {"ENABLE_CPU_PINNING": False}), inputs)


SERVED = [replace(c, build=_openvino) if c.name == "openvino" else c for c in CONTENDERS]


@dataclass(frozen=True)
class Arrangement:
    """So many processes, with so many libraries in each, each called by a thread of its own and on
    so many threads.
    """

    processes: int
    libraries: int
    threads: int

    def __str__(self) -> str:
        return f"{self.processes} x {self.libraries} x {self.threads}"


ARRANGEMENTS = [
    Arrangement(1, 1, 2), Arrangement(2, 1, 1), Arrangement(4, 1, 1), Arrangement(2, 1, 2),
    Arrangement(1, 2, 1), Arrangement(1, 4, 1), Arrangement(1, 2, 2),
]  # fmt: skip


class Libraries(Answers):
    """A worker that has a model several times, and calls all at once."""

    def several(self, path: str, inputs: Inputs, setting: Setting, count: int) -> None:
        """Build them, and call each."""
        self._all: list[Built] = [self._build(path, inputs, setting) for _ in range(count)]
        for built in self._all:
            built.run()

    def calls(self, seconds: float) -> float:
        """Calls a second of all, each called by a thread of its own."""
        with ThreadPoolExecutor(len(self._all)) as pool:
            return sum(pool.map(lambda built: _rate(built, seconds), self._all))


def _rate(built: Built, seconds: float) -> float:
    start, spent, calls = time.perf_counter(), 0.0, 0
    while spent < seconds:
        built.run()
        calls += 1
        spent = time.perf_counter() - start
    return calls / spent


def rate(name: str, path: Path, inputs: Inputs, asked: Arrangement, seconds: float) -> float:
    """Calls a second of an arrangement of one contender."""
    setting = make_setting(asked.threads)
    worker = [str(Path(__file__).resolve()), "--serve"]
    with ExitStack() as stack, ThreadPoolExecutor(asked.processes) as pool:
        found = [stack.enter_context(closing(Process(name, asked.threads, worker)))
                 for _ in range(asked.processes)]  # fmt: skip
        for process in found:
            process.ask("several", str(path), inputs, setting, asked.libraries)
        list(pool.map(lambda process: process.ask("calls", seconds / 4), found))  # to warm up
        return sum(pool.map(lambda process: process.ask("calls", seconds), found))


def rates(path: Path, names: Sequence[str], asked: Arrangement, seconds: float) -> dict[str, float]:
    """Medians over turns, in calls a second."""
    onnx = extra("onnx")
    inputs = inputs_of(onnx.load(path, load_external_data=False))
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(TURNS):
        for name in names:
            found[name].append(rate(name, path, inputs, asked, seconds))
    return {name: statistics.median(each) for name, each in found.items()}


def row(asked: Arrangement, found: dict[str, float]) -> str:
    """A line of the Markdown table."""
    best = max(value for name, value in found.items() if name != OURS)
    numbers = [f"{value:.1f}" for value in found.values()]
    return " | ".join([f"| {asked}", *numbers, f"{found[OURS] / best:.2f} |"])


def main() -> None:
    """Print a table for each model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--peers", default="onnxruntime,openvino")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each turn")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers")
    args = parser.parse_args()
    names, written = [OURS, *args.peers.split(",")], []
    for path in args.models:
        print(f"\n{path}\n\n| {' | '.join([HEADER, *names])} | ours / best peer |")
        print("|---|" + "---:|" * (len(names) + 1))
        for asked in ARRANGEMENTS:
            found = rates(path, names, asked, args.seconds)
            print(row(asked, found), flush=True)
            written.append({"model": str(path), **asdict(asked), "rates": found})
    if args.json:
        args.json.write_text(json.dumps(written, indent=1))


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2], int(sys.argv[3]), SERVED, Libraries)
    else:
        main()
