"""A functional graph of ATen's ops, and the libraries that compute it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...errors import FallbackWarning, SelfbyocError
from ...language.known import is_builtin, listed
from .culprits import Culprits, culprits_of, said
from .eager import Compiled, boxed, described, eagerly, random_ops, warn_of
from .every_size import EverySize
from .functional import ByPyTorch, CannotRun
from .options import Options
from .parts import Parts, parts_of
from .sizes import Open, open_sizes
from .specialised import Specialised

MOST = 64  # libraries of a graph: each takes seconds to build, and holds its weights
FEW = 3  # libraries of integers that are not left open, without a word
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
        self._by_pytorch = ByPyTorch(module)
        self._eager: Compiled | None = None
        self._rebuilt = self._of_values = 0
        self._lock = threading.RLock()

    def __call__(self, arguments: list[torch.Tensor | int]) -> Sequence[torch.Tensor | int]:
        """Compute; the list is emptied."""
        given = tuple(arguments)
        arguments.clear()
        found = self._last
        is_by_size = self._is_symbolic and not isinstance(found, EverySize)
        if found is None or is_by_size or not found.serves(given):
            if self._eager is not None and not self._known:
                return self._eager(*given)
            with self._lock:
                found = self._serving(given)
            if found is None:
                return self._eager(*given)  # type: ignore[misc]
            self._last = found
        try:
            return found(given)
        except (CannotRun, Warning):
            raise
        except Exception as err:  # the library's, or PyTorch's own of an index of nothing
            return self._instead(given, err)

    def _instead(
        self, given: Sequence[torch.Tensor | int], err: Exception
    ) -> Sequence[torch.Tensor | int]:
        """What PyTorch computes where a library raised; from now on it does."""
        results = self._by_pytorch(*given)
        with self._lock:
            self._known, self._last = {}, None
            self._eager = self._left_to_pytorch(f"its library raised {said(err)}")
        return results

    def _serving(self, given: Sequence[torch.Tensor | int]) -> Specialised | None:
        """The library for these sizes and weights; None where PyTorch runs the graph."""
        if self._weights is None:
            self._weights = [
                n
                for n, v in enumerate(given)
                if self._options.freeze and _is_weight(v) and n not in self._written
            ]
            self._leave_open()
            if drawn := random_ops(self._module):
                reason = f"{next(iter(drawn)).target} draws random numbers"
                self._eager = self._cut(drawn) or self._left_to_pytorch(reason)
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
        except (CannotRun, Warning):
            raise
        except Exception as err:  # InputError, or whatever TVM raises in a call
            self._close(err)
            return self._serving(given)
        return found

    def _new(self, given: Sequence[torch.Tensor | int]) -> Specialised | None:
        """A library that was not there; what a user's function raises goes on."""
        if self._eager is None and len(self._known) >= MOST:
            text = f"{MOST} libraries were built for other inputs, and are used for those"
            self._eager = self._left_to_pytorch(text)
        if self._eager is not None:
            return None
        try:
            found = self._built(given)
        except (CannotRun, Warning):
            raise
        except Exception as err:  # ours and TVM's, of all kinds
            if self._is_of_ones_own(err):
                raise
            self._eager = self._without(given, said(err))
            return None
        if self._options.on_library is not None:
            self._options.on_library(found.library)
        self._known[self._key(given)] = found
        return found

    def _built(self, given: Sequence[torch.Tensor | int]) -> Specialised:
        asked = self._module, given, self._weights or (), self._options
        if self._open is not None and self._open.has_room(given):
            try:
                return EverySize(*asked, self._open)
            except (CannotRun, KeyboardInterrupt):
                raise
            except Exception as err:  # a user's own comes again, by size
                self._close(err)
                return self._built(given)
        if self._open is not None:
            self._of_values += 1
            if self._of_values == FEW:
                text = "each integer below 2 that is no size gets a library of its own"
                warn_of(self._module, text)
        return Specialised(*asked)

    def _is_of_ones_own(self, err: Exception) -> bool:
        """Whether it is a composite of the user's that raised, which is the user's to mend."""
        mine = [c.name for c in listed(self._options.composites) or () if not is_builtin(c)]
        return isinstance(err, SelfbyocError) and any(name in str(err) for name in mine)

    def _without(self, given: Sequence[torch.Tensor | int], reason: str) -> Compiled:
        """The graph without the ops that cannot be built, if it can be told which these are."""
        left = culprits_of(self._module, given, self._options, reason)
        if cut := self._cut(left):
            return cut
        op, why = next(((str(node.target), why) for node, why in left.items()), ("", reason))
        return self._left_to_pytorch(why if op in why else f"{op}: {why}")

    def _cut(self, left: Culprits) -> Compiled | None:
        """PyTorch runs these ops, and libraries compute what is around them."""
        parts = parts_of(self._module, left, self._weights or ()) if left else []
        if not parts:
            return None
        inputs = self._module.graph.find_nodes(op="placeholder")
        written = {inputs[place] for place in self._written}
        ops = ", ".join(dict.fromkeys(str(node.target) for node in left))
        text = f"PyTorch runs {ops}: {next(iter(left.values()))}; the ops around are compiled"
        warn_of(self._module, text)
        steps: list[tuple[Any, Callable[[list[Any]], Any]]] = []
        for part in parts:
            if part.is_ours:
                places = frozenset(n for n, node in enumerate(part.takes) if node in written)
                steps.append((part, Graph(part.module, self._options, places)))
            else:
                steps.append((part, boxed(ByPyTorch(part.module))))
        return Parts(self._module, steps)

    def _left_to_pytorch(self, reason: str) -> Compiled:
        eagerly(self._module, reason)
        return self._by_pytorch

    def _leave_open(self, has_counts: bool = True) -> None:
        """Whatever size a library can leave open; with integers that are none as well."""
        try:
            self._open = open_sizes(self._module, self._weights or (), has_counts)
        except Exception as err:  # InputError, or what PyTorch's arithmetic of sizes raises
            self._close(err)

    def _close(self, why: Exception) -> None:
        """From now on each integer has a library, or else each size."""
        had_counts = self._open is not None and self._open.counts
        self._open, self._known = None, {}
        what = "each value of an integer" if had_counts else "each size"
        text = f"{described(self._module)}: {what} gets a library of its own: {said(why)}"
        warnings.warn(FallbackWarning(text), stacklevel=5)
        if had_counts:
            self._leave_open(has_counts=False)

    def _key(self, given: Sequence[torch.Tensor | int]) -> tuple[object, ...]:
        weights = tuple(id(given[n]) for n in self._weights or ())  # which the libraries keep
        if not self._is_symbolic:
            return weights
        if self._open is not None and self._open.has_room(given):
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
