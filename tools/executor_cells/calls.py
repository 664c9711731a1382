"""Calls that are out of the ordinary: of TVM's executors, of a Library and of a Session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import selfbyoc
from selfbyoc import op
from selfbyoc.runtime.tolerance import first_wrong

from .reload import reloaded

SHAPES = {"x": (5, 17), "w": (9, 17)}
OURS = ("Library", "Session")  # this package's own, beside TVM's executors

Args = Mapping[str, np.ndarray]
Run = Callable[[Args], list[np.ndarray]]


def _model(x: Any, w: Any) -> Any:
    return op.relu(op.dense(x, w))


def meaning(args: Args) -> np.ndarray:
    """What the model computes, in NumPy, whatever the inputs are."""
    x, w = (args[name].astype(np.float64) for name in SHAPES)
    return np.maximum(x @ w.T, 0)


def usual(seed: int = 0) -> dict[str, np.ndarray]:
    """Inputs as they are declared."""
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(s).astype("float32") for name, s in SHAPES.items()}


def _unaligned(array: np.ndarray) -> np.ndarray:
    space = np.zeros(array.nbytes + 128, "uint8")
    start = -space.ctypes.data % 64 + array.itemsize
    found = np.frombuffer(space.data, array.dtype, array.size, start).reshape(array.shape)
    found[:] = array
    return found


def _strided(array: np.ndarray) -> np.ndarray:
    return np.repeat(array, 2, axis=1)[:, ::2]


# What is done to x.
CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "as declared": lambda x: x,
    "not contiguous": _strided,
    "in column order": np.asfortranarray,
    "not aligned": _unaligned,
    "float64 for float32": lambda x: x.astype("float64"),
    "int8 for float32": lambda x: (100 * x).astype("int8"),
    "another batch": lambda x: np.ones((7, 17), "float32"),
    "another width": lambda x: np.ones((5, 3), "float32"),
    "another rank": lambda x: np.ones(85, "float32"),
}


def _judged(args: Args, found: list[np.ndarray]) -> str:
    """'' where this is what the model computes of these inputs."""
    try:
        wanted = meaning(args)
    except ValueError:
        return f"answered {[f.shape for f in found]}, though NumPy cannot compute it"
    (result,) = found
    return first_wrong(result, wanted, "float32", 17) or ""


def _changed(run: Run, change: str) -> str:
    args = usual()
    args["x"] = CHANGES[change](args["x"])
    return _judged(args, run(args))


def _twice(make: Callable[[], Run]) -> str:
    """Two calls; the first results are looked at last."""
    run = make()
    first = run(usual(1))
    second = run(usual(2))
    return _judged(usual(1), first) or _judged(usual(2), second)


def _two_executors(make: Callable[[], Run]) -> str:
    one, other = make(), make()
    found = [one(usual(1)), other(usual(2)), one(usual(3))]
    return next(filter(None, (_judged(usual(n), f) for n, f in enumerate(found, 1))), "")


def _in_thread(make: Callable[[], Run]) -> str:
    run, said = make(), []
    thread = threading.Thread(target=lambda: said.append(_judged(usual(), run(usual()))))
    thread.start()
    thread.join()
    return said[0] if said else "the thread raised"


TOGETHER: dict[str, Callable[[Callable[[], Run]], str]] = {
    "two calls; the first results stay": _twice,
    "two executors of one library, in turns": _two_executors,
    "in another thread": _in_thread,
}
CALLS = (*CHANGES, *TOGETHER)


def called(call: str, executor: str, roads: Any, is_alone: bool) -> str:
    """Make a call: '' where the answer is right, or what is wrong with it; errors are raised."""
    make = _ours(executor) if executor in OURS else _tvms(executor, roads, is_alone)
    return _changed(make(), call) if call in CHANGES else TOGETHER[call](make)


def _module() -> Any:
    return selfbyoc.emit(_model, {name: (s, "float32") for name, s in SHAPES.items()})


def _tvms(executor: str, roads: Any, is_alone: bool) -> Callable[[], Run]:
    mod = _module() if is_alone else selfbyoc.partition_for_tefuse(_module())
    built = roads.build(executor, mod, selfbyoc.host_target(), 3, {})
    if executor == "aot":
        built = reloaded(roads, executor, built)

    def make() -> Run:
        machine = roads.session(executor, built)
        return lambda args: roads.run_as_they_lie(executor, machine, args)

    return make


def _ours(kind: str) -> Callable[[], Run]:
    library = selfbyoc.build(_module())
    if kind == "Library":
        return lambda: lambda args: library(**args)

    def make() -> Run:
        session = library.session()
        return lambda args: [
            np.array(f.numpy()) for f in session(*(session.tensor(a) for a in args.values()))
        ]

    return make
