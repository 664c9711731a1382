"""A process of tests/runtime/test_threads.py: threads that build and call models at once.

python many_threads.py THREADS ROUNDS    # exits with 1 and the errors, or with a signal
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from selfbyoc import build, emit, op
from selfbyoc.ir.generation import ir
from selfbyoc.machine import host
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.runtime.tolerance import first_wrong, longest_reduction

F32 = "float32"
MODELS: tuple[tuple[Any, dict[str, Any]], ...] = (
    (lambda x, w: op.relu(op.dense(x, w)), {"x": ((3, 19), F32), "w": ((17, 19), F32)}),
    (lambda x: op.softmax(x), {"x": ((5, 13), F32)}),
    (
        lambda x, w: op.relu(op.conv2d(x, w, padding=1)),
        {"x": ((1, 3, 9, 7), F32), "w": ((5, 3, 3, 3), F32)},
    ),
    (lambda x: op.relu(op.abs(x)), {"x": ((4, 11), F32)}),
)
TARGETS = [t for t in ("llvm", "llvm -mcpu=nehalem", "llvm -mcpu=haswell") if host.runs(t)]


def one(number: int, start: threading.Barrier, rounds: int) -> list[str]:
    """A thread's rounds; -> what went wrong. Neighbours share a model, not the target."""
    rng = np.random.default_rng(number)
    program, params = MODELS[number // 2 % len(MODELS)]
    start.wait()
    wrong = []
    for turn in range(rounds):
        mod = emit(program, params)
        library = build(mod, TARGETS[(number + turn) % len(TARGETS)], cache=False)
        arrays = [rng.standard_normal(s).astype(d) for s, d in params.values()]
        graph = ir.read(mod["main"])
        reduction = longest_reduction(graph)
        pairs = zip(library(*arrays), evaluate(graph, arrays), strict=True)
        wrong += [text for f, e in pairs if (text := first_wrong(f, e, F32, reduction))]
    return wrong


def main(threads: int, rounds: int) -> None:
    """All threads; what one raises is raised here."""
    start = threading.Barrier(threads)
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(lambda n: one(n, start, rounds), range(threads)))
    if any(found):
        sys.exit(str(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
