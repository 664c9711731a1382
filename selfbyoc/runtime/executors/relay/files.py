"""Relay's graph executor of a file, by TVM's C API alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...alignment import lies_well
from . import capi


@dataclass(frozen=True)
class GraphFile:
    """A file that has a graph executor, and where it is."""

    path: str
    module: capi.Module


def opened(path: str) -> GraphFile | None:
    """None for what TVM as a whole has to load: the virtual machine's."""
    if capi.library() is None:
        return None
    module = capi.opened(path)
    try:
        module["default"]
    except KeyError:
        return None
    return GraphFile(path, module)


@dataclass
class Executor:
    """One executor: what runs it, its inputs and outputs, and what they are read from."""

    module: capi.Module
    names: Sequence[str]
    run: capi.Function = field(init=False)
    given: list[capi.Array] = field(init=False)
    found: list[capi.Array] = field(init=False)

    def __post_init__(self) -> None:
        place = self.module["get_input_index"]
        self.places = [int(place(name)) for name in self.names]  # type: ignore[arg-type]
        self.given = [_array(self.module["get_input"](n)) for n in self.places]
        count = int(self.module["get_num_outputs"]())  # type: ignore[arg-type]
        self.found = [_array(self.module["get_output"](n)) for n in range(count)]
        self.run, self._zero_copy = self.module["run"], self.module["set_input_zero_copy"]
        self._kept: dict[int, object] = {}
        outputs = {each.address for each in self.found}
        # Inputs that are outputs too: the executor hands out its own memory, which must be filled.
        self.passed = {n for n, each in enumerate(self.given) if each.address in outputs}

    def put(self, n: int, array: np.ndarray) -> None:
        """Have an input read where an array lies, which is kept alive."""
        tensor, kept = capi.tensor_of(array, self.given[n].tensor)
        self._kept[n] = kept
        self._zero_copy(self.places[n], tensor)


def _array(value: object) -> capi.Array:
    assert isinstance(value, capi.Array)
    return value


def executor(file: GraphFile, names: Sequence[str]) -> Executor:
    """An executor of its own."""
    return Executor(capi.on_cpu(file.module), names)


def bound_arrays(
    file: GraphFile, names: Sequence[str]
) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """An executor of its own, from arrays to views of its results. What lies well is read where it
    lies, all else is copied.
    """
    own = executor(file, names)
    views, results = ([each.view() for each in arrays] for arrays in (own.given, own.found))
    elsewhere: set[int] = set()

    def call(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        for n, array in enumerate(arrays):
            if n not in own.passed and lies_well(array):
                own.put(n, array)
                elsewhere.add(n)
                continue
            if n in elsewhere:
                own.put(n, views[n])
                elsewhere.remove(n)
            np.copyto(views[n], array)
        own.run()
        return results

    return call


def calling(
    file: GraphFile, names: Sequence[str], arrays: Sequence[np.ndarray]
) -> tuple[Callable[[], object], Callable[[], list[np.ndarray]]]:
    """An executor's call on arrays that are set once, and what reads its last result."""
    own = executor(file, names)
    for n, array in enumerate(arrays):
        np.copyto(own.given[n].view(), array)
    return own.run, lambda: [each.view().copy() for each in own.found]
