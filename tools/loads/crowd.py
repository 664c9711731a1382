"""Threads that build and call at once: different models for different targets, and one for all.

    python -m loads.crowd THREADS ROUNDS

One line of JSON at the end.
"""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from selfbyoc import build

from .models import TARGETS, model, ours

CALLS = 50  # of each library that a thread built


def different(number: int, turn: int) -> str | None:
    """A model of this thread's own, which a neighbour builds too, for another target."""
    found = model(3 * turn + number // 2)
    library = build(found.mod, TARGETS[(number + turn) % len(TARGETS)], cache=False)
    arrays = found.arrays(number)
    first = library(*arrays)
    for _ in range(CALLS):
        if not (library(*arrays)[0] == first[0]).all():
            return "a call gives something else"
    return found.wrong(first, arrays)


def threaded(threads: int, rounds: int) -> dict[str, object]:
    """All threads begin at once; then they call one library."""
    start = threading.Barrier(threads)
    shared = ours(model(2))

    def one(number: int) -> list[str]:
        start.wait()
        wrong = [different(number, turn) for turn in range(rounds)]
        for turn in range(rounds * CALLS):
            arrays = model(2).arrays(number * 1000 + turn % 10)
            found = shared(*arrays)
            if turn < 10:
                wrong.append(model(2).wrong(found, arrays))
        return [text for text in wrong if text]

    with ThreadPoolExecutor(threads) as pool:
        found = [text for texts in pool.map(one, range(threads)) for text in texts]
    calls = threads * rounds * CALLS
    return {"threads": threads, "builds": threads * rounds, "calls": 2 * calls,
            "problems": found}  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(threaded(int(sys.argv[1]), int(sys.argv[2]))))
