"""The main kernels, each in a size of a real network, and how many loops of products it has."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

import selfbyoc
from selfbyoc import Case, Composite, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.cache.kernels import using
from selfbyoc.codegen.lower import lower
from selfbyoc.ir.emit import emit
from selfbyoc.tvm import GENERATION, make_target, module_source

from .loops import Loop, around_exp, hot

BUILTIN = {composite.name: composite for composite in selfbyoc.BUILTIN}


@dataclass(frozen=True)
class Kernel:
    """`loops` names what its hot loops compute, in the order of the code."""

    composite: str
    loops: tuple[str, ...]
    case: Callable[[], Case]
    settings: dict[str, str] = field(default_factory=dict, compare=False)
    is_of_words: bool = False  # of bytes, as a quantised model multiplies them, or of bfloat16


def _conv(*shape: int, units: int, kernel: int) -> Callable[[], Case]:
    def program(x: Any, weight: Any, bias: Any) -> Any:
        padding = (kernel // 2,) * 4
        return op.relu(op.bias_add(op.conv2d(x, weight, padding=padding), bias))

    weight = (units, shape[1], kernel, kernel)
    return lambda: Case(
        program, x=shape, weight=weight, bias=(units,), constants=["weight", "bias"]
    )


def _dense(rows: int, width: int, units: int) -> Case:
    return Case(
        lambda x, weight, bias: op.bias_add(op.dense(x, weight), bias, axis=-1),
        x=(rows, width), weight=(units, width), bias=(units,), constants=["weight", "bias"],
    )  # fmt: skip


def _dense_of_bfloat16() -> Case:
    return Case(
        lambda x, weight: op.dense(x, op.half_weight(weight)),
        x=(128, 768), weight=((768, 768), "bfloat16"), constants=["weight"],
        generations=("relax",),
    )  # fmt: skip


def _conv_of_bfloat16(*shape: int, units: int, kernel: int) -> Callable[[], Case]:
    padding = (kernel // 2,) * 4
    weight = (units, shape[1], kernel, kernel)
    return lambda: Case(
        lambda x, weight: op.conv2d(x, op.half_weight(weight), padding=padding),
        x=shape, weight=(weight, "bfloat16"), constants=["weight"], generations=("relax",),
    )  # fmt: skip


def _separable() -> Case:
    def program(x: Any, w_depth: Any, b_depth: Any, w_point: Any, b_point: Any) -> Any:
        y = op.conv2d(x, w_depth, padding=(1, 1, 1, 1), groups=128)
        y = op.relu(op.bias_add(y, b_depth))
        return op.relu(op.bias_add(op.conv2d(y, w_point), b_point))

    return Case(
        program, x=(1, 128, 56, 56), w_depth=(128, 1, 3, 3), b_depth=(128,),
        w_point=(128, 128, 1, 1), b_point=(128,),
        constants=["w_depth", "b_depth", "w_point", "b_point"],
    )  # fmt: skip


def _first(composite: str) -> Callable[[], Case]:
    return lambda: first_case(BUILTIN[composite])  # type: ignore[return-value]


def _levels(
    x: tuple[int, ...], weight: tuple[int, ...], product: Callable[[Any, Any], Any], axis: int = 1
) -> Callable[[], Case]:
    """A product of levels, with a scale for each output."""

    def program(x: Any, weight: Any, scale: Any, bias: Any) -> Any:
        y = product(op.dequantize(x, 2.0**-5, 7), op.dequantize(weight, scale, 0, axis=0))
        return op.bias_add(y, bias, axis=axis)

    return lambda: Case(
        program, x=(x, "uint8"), weight=(weight, "int8"), scale=weight[:1], bias=weight[:1],
        constants=["weight", "scale", "bias"],
    )  # fmt: skip


def _conv_of_levels(*shape: int, units: int, kernel: int, groups: int = 1) -> Callable[[], Case]:
    padding = (kernel // 2,) * 4
    weight = (units, shape[1] // groups, kernel, kernel)
    return _levels(shape, weight, lambda x, w: op.conv2d(x, w, padding=padding, groups=groups))


_NO_WINOGRAD = {"SELFBYOC_WINOGRAD": "0"}
_FLOATS = {
    "direct": Kernel(
        "conv2d", ("product",), _conv(1, 64, 56, 56, units=64, kernel=3), _NO_WINOGRAD
    ),
    "pointwise": Kernel("conv2d", ("product",), _conv(1, 256, 14, 14, units=256, kernel=1)),
    "winograd": Kernel("conv2d", ("product",), _conv(1, 64, 56, 56, units=64, kernel=3)),
    "dense": Kernel("dense", ("product",), lambda: _dense(128, 768, 768)),
    "attention": Kernel("attention", ("scores", "values"), _first("attention")),
    "depthwise_pointwise": Kernel("depthwise_pointwise", ("depthwise", "pointwise"), _separable),
    "inverted_residual": Kernel(
        "inverted_residual", ("expand", "depthwise", "project"), _first("inverted_residual")
    ),
}


def _of_words(composite: str, case: Callable[[], Case], **settings: str) -> Kernel:
    return Kernel(composite, ("product",), case, settings, is_of_words=True)


_SQUARES = _conv_of_levels(1, 64, 56, 56, units=64, kernel=3)
_LEVELS = {
    "int8_dense": _of_words("dense_int8", _levels((128, 768), (768, 768), op.dense, axis=-1)),
    "int8_pointwise": _of_words(
        "conv2d_int8", _conv_of_levels(1, 256, 14, 14, units=256, kernel=1)
    ),
    "int8_direct": _of_words("conv2d_int8", _SQUARES, **_NO_WINOGRAD),
    "int8_winograd": _of_words("conv2d_int8", _SQUARES),
    "int8_depthwise": _of_words(
        "conv2d_int8", _conv_of_levels(1, 144, 28, 28, units=144, kernel=3, groups=144)
    ),
}
# TVM 0.17's LLVM computes no bfloat16.
_HALVES = {
    "bfloat16_dense": _of_words("dense", _dense_of_bfloat16),
    "bfloat16_pointwise": _of_words(
        "conv2d", _conv_of_bfloat16(1, 256, 14, 14, units=256, kernel=1)
    ),
    "bfloat16_direct": _of_words(
        "conv2d", _conv_of_bfloat16(1, 64, 56, 56, units=64, kernel=3), **_NO_WINOGRAD
    ),
}
MAIN = {**_FLOATS, **_LEVELS, **(_HALVES if GENERATION == "relax" else {})}


def first_case(composite: Composite) -> Case | None:
    """The first case that exists on this TVM."""
    return next((case for case in composite.cases if GENERATION in case.generations), None)


@contextmanager
def environment(settings: dict[str, str]) -> Iterator[None]:
    """These variables for a while."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def emitted(composite: Composite, case: Case) -> Any:
    """The case as a model, with seeded constants."""
    rng = np.random.default_rng(0)
    arrays = {
        name: _made(rng, shape, dtype)
        for name, (shape, dtype) in case.args.items()
        if name in case.constants
    }
    return emit(case.program or composite.pattern, case.args, arrays)


def _made(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if "float" in dtype:
        return (rng.random(shape) + 0.1).astype(dtype)
    # Weights of 7 bits would be multiplied by other instructions.
    ends = (-128, 128) if dtype == "int8" else (0, 9)
    return rng.integers(*ends, shape).astype(dtype)


def module_of(composite: Composite, case: Case, target: str) -> Any:
    """The runtime module of the case's kernel for a target."""
    built_for = make_target(target)
    model = emitted(composite, case)
    parted = selfbyoc.partition_for_tefuse(model, target=built_for, composites=[composite])
    with using(False):
        return lower(kernels(parted)[0].source, built_for)


def assembly(composite: Composite, case: Case, target: str) -> str:
    """The code of the case's kernel for a target."""
    return module_source(module_of(composite, case, target), "asm")


@cache
def code_of(name: str, target: str) -> str:
    """The assembly of one of the main kernels."""
    kernel = MAIN[name]
    with environment(kernel.settings):
        return assembly(BUILTIN[kernel.composite], kernel.case(), target)


def hot_loops(name: str, target: str) -> list[Loop]:
    """The hot loops of one of the main kernels, in the order of their names."""
    text, count = code_of(name, target), len(MAIN[name].loops)
    return around_exp(text) if name == "attention" else hot(text, count)
