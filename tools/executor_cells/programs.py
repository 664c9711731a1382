"""The programs of the matrix: how composites lie in a model, and what goes in and out of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from selfbyoc import Composite, op

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Program:
    """A model in the vocabulary, and how often each composite is to be taken in it."""

    name: str
    function: Callable[..., Any]
    shapes: Mapping[str, tuple[int, ...]]
    counts: Mapping[str, int]
    constants: tuple[str, ...] = ()
    open_extents: tuple[str, ...] = ()  # inputs of which the first extent is not known
    composites: tuple[Composite, ...] | None = None  # the built-in ones
    dtypes: Mapping[str, str] = field(default_factory=dict)

    @property
    def types(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Shape and dtype of each argument."""
        return {n: (shape, self.dtypes.get(n, "float32")) for n, shape in self.shapes.items()}

    def arrays(self, seed: int = 0) -> Arrays:
        """Numbers for all arguments."""
        rng = np.random.default_rng(seed)
        return {n: _numbers(rng, shape, dtype) for n, (shape, dtype) in self.types.items()}


def _numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype == "int8":
        return rng.integers(-128, 127, shape, endpoint=True).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _both(x: Any) -> tuple[Any, Any]:
    positive = op.relu(x)
    return positive, op.tanh(positive)


# A kernel of several outputs, one of which the other is made of.
both = Composite("both", _both, why="a kernel of two outputs")


def _both_twice(x: Any) -> Any:
    first, second = _both(op.exp(x))
    third, fourth = _both(second)
    return op.add(op.add(first, third), fourth)


def _dense(x: Any, w: Any) -> Any:
    return op.relu(op.dense(x, w))


def _two(x: Any, w: Any) -> tuple[Any, Any]:
    y = op.dense(x, w)
    return y, op.tanh(op.softmax(y))


def _clipped(x: Any, w: Any, v: Any) -> Any:
    six = op.clip(op.conv2d(x, w, padding=1), a_min=0.0, a_max=6.0)
    return op.subtract(six, op.clip(op.conv2d(x, v, padding=1), a_min=-5.0, a_max=5.0))


def _network(x: Any, w1: Any, w2: Any, w3: Any) -> Any:
    y = op.max_pool2d(op.relu(op.conv2d(x, w1, padding=1)), pool_size=2, strides=2)
    y = op.relu(op.add(op.conv2d(y, w2, padding=1), y))
    y = op.reshape(op.global_avg_pool2d(y), shape=(1, 5))
    return op.softmax(op.dense(y, w3))


def _narrowed(x: Any, w: Any) -> Any:
    sums = op.right_shift(op.conv2d(x, w, out_dtype="int32"), 7)
    return op.cast(op.clip(sums, a_min=-128, a_max=127), dtype="int8")


def _same(x: Any) -> tuple[Any, Any]:
    y = op.softmax(x)
    return y, y


ROWS, SQUARE = {"x": (5, 17)}, (17, 17)
WEIGHT = {**ROWS, "w": (9, 17)}
IMAGE = {"x": (2, 5, 9, 11), "w": (5, 5, 3, 3)}

PROGRAMS = (
    Program("one composite", lambda x: op.softmax(x), ROWS, {"softmax": 1}),
    Program("weights at run time", _dense, WEIGHT, {"dense": 1}),
    Program("weights that are constants", _dense, WEIGHT, {"dense": 1}, ("w",)),
    Program(
        "a constant weight and one at run time",
        lambda x, w, v: op.relu(op.dense(_dense(x, w), v)),
        {**WEIGHT, "v": (4, 9)},
        {"dense": 2},
        ("w",),
    ),
    Program(
        "neighbours before, between and after",
        lambda x, w: op.tanh(op.softmax(op.exp(op.dense(op.tanh(x), w)))),
        WEIGHT,
        {"dense": 1, "softmax": 1},
        ("w",),
    ),
    Program(
        "two equal composites",
        lambda x, w, v: _dense(_dense(x, w), v),
        {**ROWS, "w": SQUARE, "v": SQUARE},
        {"dense": 2},
        ("w", "v"),
    ),
    Program(
        "two equal composites side by side",
        lambda x, w, v: op.subtract(_dense(x, w), _dense(x, v)),
        {**ROWS, "w": SQUARE, "v": SQUARE},
        {"dense": 2},
        ("w", "v"),
    ),
    Program("equal shapes, other constants", _clipped, {**IMAGE, "v": (5, 5, 3, 3)}, {"conv2d": 2}),
    Program("one value in two roles", lambda x: op.dense(x, x), ROWS, {"dense": 1}),
    Program(
        "a residual that is also the image",
        lambda x, w: op.relu(op.add(op.conv2d(x, w, padding=1), x)),
        IMAGE,
        {"conv2d_add": 1},
        ("w",),
    ),
    Program("a result that is returned and read", _two, WEIGHT, {"dense": 1, "softmax": 1}),
    Program(
        "two results, a kernel each",
        lambda x, w: (op.softmax(x), op.dense(x, w)),
        WEIGHT,
        {"softmax": 1, "dense": 1},
        ("w",),
    ),
    Program(
        "a kernel of two outputs",
        _both,
        ROWS,
        {"both": 1},
        composites=(both,),
    ),
    Program(
        "a kernel of two outputs between others",
        _both_twice,
        ROWS,
        {"both": 2},
        composites=(both,),
    ),
    Program("one result twice", _same, ROWS, {"softmax": 1}),
    Program("an input that is a result", lambda x: (x, op.softmax(x)), ROWS, {"softmax": 1}),
    Program(
        "a constant that is a result",
        lambda x, w: (op.softmax(x), w),
        WEIGHT,
        {"softmax": 1},
        ("w",),
    ),
    Program(
        "constants alone",
        lambda x, w: op.add(x, op.softmax(w)),
        {"x": (9, 17), "w": (9, 17)},
        {"softmax": 1},
        ("w",),
    ),
    Program(
        "an input of no axes",
        lambda x, s: op.softmax(op.multiply(x, s)),
        {**ROWS, "s": ()},
        {"softmax": 1},
    ),
    Program("no composite at all", lambda x: op.tanh(op.exp(x)), ROWS, {}),
    Program(
        "an image network",
        _network,
        {"x": (1, 3, 12, 14), "w1": (5, 3, 3, 3), "w2": (5, 5, 3, 3), "w3": (7, 5)},
        {
            "conv2d": 1,
            "max_pool2d": 1,
            "conv2d_add": 1,
            "global_avg_pool2d": 1,
            "dense": 1,
            "softmax": 1,
        },
        ("w1", "w2", "w3"),
    ),
    Program(
        "large enough for all cores",
        lambda x, w: (_dense(x, w), op.softmax(x)),
        {"x": (130, 257), "w": (515, 257)},
        {"dense": 1, "softmax": 1},
        ("w",),
    ),
    Program(
        "int8",
        _narrowed,
        {"x": (1, 7, 6, 5), "w": (9, 7, 3, 3)},
        {"conv2d_narrowed": 1},
        ("w",),
        dtypes={"x": "int8", "w": "int8"},
    ),
    Program("dynamic batch", _dense, WEIGHT, {}, ("w",), open_extents=("x",)),
    Program(
        "dynamic batch beside a composite",
        lambda x, w: op.dense(op.tanh(x), op.softmax(w)),
        WEIGHT,
        {"softmax": 1},
        open_extents=("x",),
    ),
)
BY_NAME = {program.name: program for program in PROGRAMS}
