"""A functional graph of ATen's ops, and the libraries that compute it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...errors import FallbackWarning, InputError, SelfbyocError, UnsupportedOp
from .eager import described, eagerly
from .every_size import EverySize
from .options import Options
from .sizes import Open, open_sizes
from .specialised import Specialised

MOST = 64  # libraries of a graph: each takes seconds to build, and holds its weights
REBUILDS = 3  # after that many changes, weights are arguments


class Graph:
    """What aot_autograd calls with a list of tensors and of sizes, where those are symbolic.

    A library has packed weights, so one is built when weights come for the first time. Dynamo calls
    one graph with the weights of several modules, if they are alike. Where some size cannot stay
    open in a library, there is one for each.
    """

    _boxed_call = True

    def __init__(
        self, module: torch.fx.GraphModule, options: Options, written: frozenset[int]
    ) -> None:
        self._module, self._options, self._written = module, options, written
        self._weights: list[int] | None = None
        values = [n.meta.get("val") for n in module.graph.find_nodes(op="placeholder")]
        self._is_symbolic = not all(isinstance(v, torch.Tensor) for v in values)
        self._open: Open | None = None  # the sizes that a library leaves open
        self._known: dict[Any, Specialised] = {}
        self._last: Specialised | None = None
        self._eager: Callable[..., Any] | None = None
        self._rebuilt = 0
        self._lock = threading.RLock()

    def __call__(self, arguments: list[torch.Tensor | int]) -> Sequence[torch.Tensor | int]:
        """Compute; the list is emptied."""
        given = tuple(arguments)
        arguments.clear()
        found, is_by_size = self._last, self._is_symbolic and self._open is None
        if found is None or is_by_size or not found.serves(given):
            if self._eager is not None and not self._known:
                return self._eager(*given)
            with self._lock:
                found = self._serving(given)
            if found is None:
                return self._eager(*given)  # type: ignore[misc]
            self._last = found
        return found(given)

    def _serving(self, given: Sequence[torch.Tensor | int]) -> Specialised | None:
        """The library for these sizes and weights; None where PyTorch runs the graph."""
        if self._weights is None:
            self._weights = [
                n
                for n, v in enumerate(given)
                if self._options.freeze and _is_weight(v) and n not in self._written
            ]
            self._leave_open()
        found = self._known.get(self._key(given))
        if found is not None and not found.fits(given):
            self._forget_changed()
            found = None
        if found is None:
            found = self._new(given)
        if not isinstance(found, EverySize):
            return found
        try:
            found.learn(given)
        except InputError as err:
            self._close(err)
            return self._serving(given)
        return found

    def _new(self, given: Sequence[torch.Tensor | int]) -> Specialised | None:
        """A library that was not there; what a user's function raises goes on."""
        if self._eager is None and len(self._known) >= MOST:
            text = f"{MOST} libraries were built for other inputs, and are used for those"
            self._eager = eagerly(self._module, text)
        if self._eager is not None:
            return None
        try:
            found = self._built(given)
        except (InputError, UnsupportedOp) as err:
            self._eager = eagerly(self._module, str(err))
            return None
        if self._options.on_library is not None:
            self._options.on_library(found.library)
        self._known[self._key(given)] = found
        return found

    def _built(self, given: Sequence[torch.Tensor | int]) -> Specialised:
        asked = self._module, given, self._weights or (), self._options
        if self._open is not None:
            try:
                return EverySize(*asked, self._open)
            except (SelfbyocError, FallbackWarning) as err:  # a user's own comes again, by size
                self._close(err)
        return Specialised(*asked)

    def _leave_open(self) -> None:
        """Whatever size a library can leave open."""
        try:
            self._open = open_sizes(self._module, self._weights or ())
        except InputError as err:
            self._close(err)

    def _close(self, why: Exception) -> None:
        """From now on each size has a library."""
        self._open, self._known = None, {}
        text = f"{described(self._module)}: each size gets a library of its own: {why}"
        warnings.warn(FallbackWarning(text), stacklevel=5)

    def _key(self, given: Sequence[torch.Tensor | int]) -> tuple[object, ...]:
        weights = tuple(id(given[n]) for n in self._weights or ())  # which the libraries keep
        if not self._is_symbolic:
            return weights
        if self._open is not None:
            return weights, self._open.numbers_in(given)
        sizes = [v.shape if isinstance(v, torch.Tensor) else v for v in given]
        return weights, tuple(sizes)

    def _forget_changed(self) -> None:
        """Weights were written since they were packed: pack them again, or not any more."""
        self._rebuilt += 1
        self._known = {k: v for k, v in self._known.items() if not v.is_changed()}
        if self._rebuilt > REBUILDS:
            text = (
                f"{described(self._module)}: weights changed {self._rebuilt} times; from now on "
                "they are arguments, packed at each call"
            )
            warnings.warn(FallbackWarning(text), stacklevel=4)
            self._weights, self._known = [], {}
            if self._open is not None:
                self._leave_open()


def _is_weight(value: object) -> bool:
    """Whether a tensor is a parameter or a buffer of a module, and tells when it is written."""
    if not isinstance(value, torch.Tensor) or value.is_inference():
        return False
    marked = getattr(value, "_dynamo_static_input_type", None) == "unguarded"
    return marked or isinstance(value, torch.nn.Parameter)
