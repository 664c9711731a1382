"""Small models, as many different ones as there are numbers, and how they are built and called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from selfbyoc import build, emit, op
from selfbyoc.codegen.target import host_target
from selfbyoc.ir.generation import ir
from selfbyoc.machine import host
from selfbyoc.runtime.library import Library
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.runtime.tolerance import first_wrong, longest_reduction
from selfbyoc.tvm import GENERATION, tvm

F32 = "float32"
TARGETS = [t for t in ("llvm", "llvm -mcpu=nehalem", "llvm -mcpu=haswell") if host.runs(t)]


@dataclass(frozen=True)
class Model:
    """A program of one input, and of a weight where it has one."""

    program: Callable[..., Any]
    shape: tuple[int, ...]
    weight: np.ndarray | None = None

    @property
    def mod(self) -> Any:
        """The weight is a constant."""
        return emit(self.program, self._types, {} if self.weight is None else {"w": self.weight})

    @property
    def _types(self) -> dict[str, Any]:
        found: dict[str, Any] = {"x": (self.shape, F32)}
        return found if self.weight is None else found | {"w": (self.weight.shape, F32)}

    def arrays(self, seed: int) -> list[np.ndarray]:
        """An input, by its seed."""
        return [np.random.default_rng(seed).standard_normal(self.shape).astype(F32)]

    def wrong(self, found: list[np.ndarray], arrays: list[np.ndarray]) -> str | None:
        """What differs from NumPy's meaning, if anything does."""
        graph = ir.read(emit(self.program, self._types)["main"])
        expected = evaluate(graph, arrays if self.weight is None else [*arrays, self.weight])
        reduction = longest_reduction(graph)
        texts = (first_wrong(f, e, F32, reduction) for f, e in zip(found, expected, strict=True))
        return next((text for text in texts if text), None)


def model(number: int) -> Model:
    """The model of a number: another number is another kernel."""
    family, size = number % 3, number // 3
    rows, depth = 3 + size % 11, 16 + size // 11
    rng = np.random.default_rng(number)
    if family == 0:
        weight = rng.standard_normal((17, depth)).astype(F32)
        return Model(lambda x, w: op.relu(op.dense(x, w)), (rows, depth), weight)
    if family == 1:
        return Model(lambda x: op.softmax(x), (rows, depth))
    weight = rng.standard_normal((5, 3, 3, 3)).astype(F32)
    return Model(_conv, (1, 3, 5 + rows, depth), weight)


def _conv(x: Any, w: Any) -> Any:
    return op.relu(op.conv2d(x, w, padding=1))


LARGE = Model(model(1).program, (64, 1024))  # softmax, which runs on all threads


def ours(found: Model, cache: bool | str = False) -> Library:
    """Built by this library."""
    return build(found.mod, "llvm", cache=cache)


def tvm_alone(found: Model) -> Library:
    """Built by TVM as it comes, with nothing of ours in it; the same call around it."""
    target = host_target()
    if GENERATION == "relay":
        from tvm import relay  # noqa: TID251

        with tvm.transform.PassContext(opt_level=3):
            native: Any = relay.build(found.mod, target="llvm")
    else:
        native = tvm.compile(found.mod, "llvm")
    return Library(native, (("x", found.shape, F32),), target=target)
