"""Named shapes that a composite is tested, timed and tuned on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import CompositeError
from ..tvm import tvm
from .nodes import Program

# TVM 0.17 takes any number of bits.
_DTYPE = re.compile(r"bool|u?int(1|2|4|8|16|32|64)|float(16|32|64)|bfloat16|float[48]_\w+")


class Case:
    """One named set of shapes that a composite is tested, timed and tuned on.

    `Case(x=(3, 5), weight=(4, 5))` instantiates the composite's own pattern. Where the pattern has
    alternatives or attributes matter, the first argument is a straight function of the vocabulary:
    `Case(lambda x, w: op.relu(op.conv2d(x, w, strides=(2, 2))), x=(1, 3, 15, 17), w=(8, 3, 3, 3))`.

    program      None: the composite's own pattern
    constants    the arguments that are weights
    name         in the tests' names; by default made of the shapes
    generations  the TVMs on which the case exists, where only one of them has an op
    args         the others by name: a shape, or (shape, dtype); float32 by default

    Raises CompositeError for what is none of these.
    """

    def __init__(
        self,
        program: Program | None = None,
        /,
        *,
        constants: Sequence[str] = (),
        name: str = "",
        generations: Sequence[str] = ("relay", "relax"),
        **args: Any,
    ) -> None:
        if program is not None and not callable(program):
            raise CompositeError(
                f"Case: expected a function of the vocabulary, or shapes by name as in "
                f"Case(x=(3, 5)), found {program!r}"
            )
        for what, names in {"constants": constants, "generations": generations}.items():
            if isinstance(names, str):
                raise CompositeError(f"Case: {what}: expected names, as in ({names!r},), found one")
        self.program = program
        self.generations = tuple(generations)
        self.constants = tuple(constants)
        self.args = {key: typed(key, value) for key, value in args.items()}
        self.name = name or "-".join("x".join(map(str, s)) for s, _ in self.args.values())
        _check_names("constants", self.constants, list(self.args))
        _check_names("generations", self.generations, ["relay", "relax"])

    def __repr__(self) -> str:
        return f"Case({self.name})"


def _check_names(what: str, found: Sequence[str], known: Sequence[str]) -> None:
    """A name that does not exist would leave a case out, or a weight an input, without a word."""
    unknown = [name for name in found if name not in known]
    if unknown:
        raise CompositeError(f"Case: {what} names {unknown}; expected some of {list(known)}")


def typed(name: str, value: Any) -> tuple[tuple[int, ...], str]:
    """`(2, 3)` or `((2, 3), "int8")` as (shape, dtype)."""
    shape, dtype = value, "float32"
    is_pair = isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[1], str)
    if is_pair:
        shape, dtype = value
    if not _DTYPE.fullmatch(dtype):
        raise CompositeError(f"argument {name!r}: {dtype!r} is no dtype; expected one as 'float32'")
    if isinstance(shape, (tuple, list)) and all(map(_is_extent, shape)):
        return tuple(shape), dtype
    raise CompositeError(
        f"argument {name!r}: expected a shape or (shape, dtype), a shape's extents from 0 to "
        f"2^63 - 1 or variables of TVM's, found {value!r}"
    )


def _is_extent(extent: object) -> bool:
    """A number, or what TVM has for one that is not known; for None, TVM 0.27 ends the process."""
    if isinstance(extent, (int, np.integer)) and not isinstance(extent, bool):
        return bool(0 <= extent < 1 << 63)
    return isinstance(extent, tvm.ir.Node)
