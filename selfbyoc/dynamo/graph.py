"""A functional graph of ATen's ops, and the libraries that compute it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..errors import FallbackWarning, InputError, UnsupportedOp
from .eager import described, eagerly
from .options import Options
from .specialised import Specialised

MOST = 64  # libraries of a graph: each takes seconds to build, and holds its weights
REBUILDS = 3  # after that many changes, weights are arguments


class Graph:
    """What aot_autograd calls with a list of tensors and of sizes, where those are symbolic.

    A library has static sizes and packed weights, so one is built when sizes or weights come for
    the first time. Dynamo calls one graph with the weights of several modules, if they are alike.
    """

    _boxed_call = True

    def __init__(self, module: Any, options: Options, written: frozenset[int]) -> None:
        self._module, self._options, self._written = module, options, written
        self._weights: list[int] | None = None if options.freeze else []
        values = [n.meta.get("val") for n in module.graph.find_nodes(op="placeholder")]
        self._is_symbolic = not all(isinstance(v, torch.Tensor) for v in values)
        self._known: dict[Any, Specialised] = {}
        self._last: Specialised | None = None
        self._eager: Callable[..., Any] | None = None
        self._rebuilt = 0
        self._lock = threading.RLock()

    def __call__(self, arguments: list[Any]) -> Any:
        """Compute; the list is emptied."""
        given = tuple(arguments)
        arguments.clear()
        found = self._last
        if found is None or not found.fits(given) or self._is_symbolic:
            if self._eager is not None and not self._known:
                return self._eager(*given)
            with self._lock:
                found = self._specialised(given)
            if found is None:
                return self._eager(*given)  # type: ignore[misc]
            self._last = found
        return found(given)

    def _specialised(self, given: Sequence[Any]) -> Specialised | None:
        """The library for these sizes and weights; None where PyTorch runs the graph."""
        if self._weights is None:
            self._weights = [
                n for n, v in enumerate(given) if _is_weight(v) and n not in self._written
            ]
        key = self._key(given)
        found = self._known.get(key)
        if found is not None and found.fits(given):
            return found
        if found is not None:
            self._forget_changed()
            key = self._key(given)
        if self._eager is None and len(self._known) < MOST:
            try:
                self._known[key] = Specialised(self._module, given, self._weights, self._options)
            except (InputError, UnsupportedOp) as err:  # what a user's composite raises goes on
                self._eager = eagerly(self._module, str(err))
        elif self._eager is None:
            text = f"{MOST} libraries were built for other inputs, and are used for those"
            self._eager = eagerly(self._module, text)
        return self._known.get(key)

    def _key(self, given: Sequence[Any]) -> Any:
        weights = tuple(id(given[n]) for n in self._weights or ())  # which the libraries keep
        if not self._is_symbolic:
            return weights
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


def _is_weight(value: Any) -> bool:
    """Whether a tensor is a parameter or a buffer of a module, and tells when it is written."""
    if not isinstance(value, torch.Tensor) or value.is_inference():
        return False
    marked = getattr(value, "_dynamo_static_input_type", None) == "unguarded"
    return marked or isinstance(value, torch.nn.Parameter)
