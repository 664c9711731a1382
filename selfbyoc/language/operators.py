"""Python's operators and NumPy's functions on the values of a pattern: what is an op of the
vocabulary becomes that op, all else is an error that says what to write.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

from ..errors import CompositeError
from ..ops.vocabulary import written
from ..tvm.types import Attrs

Value = TypeVar("Value")  # of a pattern: a node

_PRODUCTS = (
    "write op.dense(x, weight) for x @ weight.T, or op.batch_matmul(x, y) for x @ y of batches"
)
_COMPARES = (
    "a pattern compares nothing: what a match must be is asked in its check, and clipping is "
    "op.relu, op.clip, op.maximum or op.minimum"
)
_TRUTH = (
    "a pattern runs once, without data, so that its values are neither true nor false; write "
    "either(a, b) for alternatives, and check= for conditions"
)
_NO_NUMBER = "a pattern runs once, without data, so that its values are no numbers yet"
_NO_OP = "no op of the vocabulary; selfbyoc.declare adds one (docs/own-ops.md)"
_UFUNCS = {"absolute": "abs", "true_divide": "divide"}  # the others have the vocabulary's names
_IS_OP = (
    "abs", "add", "divide", "exp", "left_shift", "log", "maximum", "minimum", "multiply",
    "negative", "power", "right_shift", "sqrt", "subtract", "tanh",
)  # fmt: skip
# NumPy's functions and an array's methods that are ops, under other names than the vocabulary's.
_CALLED = {
    "add.reduce": "sum", "maximum.reduce": "max",
    "amax": "max", "around": "round", "astype": "cast", "average": "mean", "flatten": "reshape",
    "permute_dims": "transpose", "ravel": "reshape", "squeeze": "reshape", "stack": "concatenate",
    "swapaxes": "transpose", "T": "transpose", "expand_dims": "reshape",
}  # fmt: skip
_METHODS = (*_CALLED, "clip", "dot", "max", "mean", "min", "reshape", "round", "sum", "transpose")


def _advice(name: str) -> str:
    """What to write for a function of NumPy's or a method of an array."""
    if name in ("matmul", "dot", "inner", "einsum", "tensordot"):
        return _PRODUCTS
    if name not in written() and name in (
        "greater",
        "less",
        "greater_equal",
        "less_equal",
        "equal",
        "not_equal",
        "where",
    ):
        return _COMPARES
    kind = _CALLED.get(name, _UFUNCS.get(name, name))
    return f"write op.{kind}(...), see help(op.{kind})" if kind in written() else _NO_OP


def _refused(what: str, advice: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *others: object) -> NoReturn:
        raise CompositeError(f"`{what}` in a pattern: {advice}")

    return refuse


def _compared(what: str, kind: str) -> Callable[..., Any]:
    """An op where the vocabulary has comparisons."""

    def compare(self: Any, other: Any) -> Any:
        if kind not in written():
            raise CompositeError(f"`{what}` in a pattern: {_COMPARES}")
        return self._made(kind, self, other)

    return compare


class Operators(ABC, Generic[Value]):
    """What a value of a pattern does where Python or NumPy computes with it."""

    @abstractmethod
    def _made(self, kind: str, *inputs: object) -> Value:
        """An op of the vocabulary over these."""

    def __add__(self, other: Value | float) -> Value:
        return self._made("add", self, other)

    def __radd__(self, other: Value | float) -> Value:
        return self._made("add", other, self)

    def __sub__(self, other: Value | float) -> Value:
        return self._made("subtract", self, other)

    def __rsub__(self, other: Value | float) -> Value:
        return self._made("subtract", other, self)

    def __mul__(self, other: Value | float) -> Value:
        return self._made("multiply", self, other)

    def __rmul__(self, other: Value | float) -> Value:
        return self._made("multiply", other, self)

    def __truediv__(self, other: Value | float) -> Value:
        return self._made("divide", self, other)

    def __rtruediv__(self, other: Value | float) -> Value:
        return self._made("divide", other, self)

    def __pow__(self, other: Value | float) -> Value:
        return self._made("power", self, other)

    def __rpow__(self, other: Value | float) -> Value:
        return self._made("power", other, self)

    def __lshift__(self, other: Value | int) -> Value:
        return self._made("left_shift", self, other)

    def __rshift__(self, other: Value | int) -> Value:
        return self._made("right_shift", self, other)

    def __neg__(self) -> Value:
        return self._made("negative", self)

    def __abs__(self) -> Value:
        return self._made("abs", self)

    __matmul__ = __rmatmul__ = _refused("x @ y", _PRODUCTS)
    __lt__ = _compared("x < y", "less")
    __le__ = _compared("x <= y", "less_equal")
    __gt__ = _compared("x > y", "greater")
    __ge__ = _compared("x >= y", "greater_equal")
    __floordiv__ = __rfloordiv__ = _refused("x // y", _NO_OP)
    __mod__ = __rmod__ = _refused("x % y", _NO_OP)
    __and__ = __rand__ = _refused("x & y", _NO_OP)
    __or__ = __ror__ = _refused("x | y", "write either(x, y) for alternatives")
    __xor__ = __rxor__ = _refused("x ^ y", _NO_OP)
    __invert__ = _refused("~x", _NO_OP)
    __bool__ = _refused("if x", _TRUTH)
    __float__ = _refused("float(x)", _NO_NUMBER)
    __int__ = __index__ = _refused("int(x)", _NO_NUMBER)

    def __eq__(self, other: object) -> bool:
        """Values are the same or not; a number is none of them."""
        if isinstance(other, (int, float, np.generic, np.ndarray)):
            raise CompositeError(f"`x == {other!r}` in a pattern: {_advice('equal')}")
        return self is other

    def __ne__(self, other: object) -> bool:
        if isinstance(other, (int, float, np.generic, np.ndarray)):
            raise CompositeError(f"`x != {other!r}` in a pattern: {_advice('not_equal')}")
        return self is not other

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> NoReturn:
        if name in _METHODS:
            raise CompositeError(f"`x.{name}` in a pattern: {_advice(name)}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __array_ufunc__(
        self, function: Callable[..., object], method: str, *inputs: object, **options: object
    ) -> Value:  # of np.exp(x), np.float32(2) * x
        name = str(function.__name__)
        kind = _UFUNCS.get(name, name)
        if kind not in _IS_OP or method != "__call__" or options:
            if method != "__call__":
                name = f"{name}.{method}"
            raise CompositeError(f"`np.{name}` in a pattern: {_advice(name)}")
        return self._made(kind, *inputs)

    def __array_function__(
        self,
        function: Callable[..., object],
        types: Sequence[type],
        inputs: Sequence[object],
        options: Attrs,
    ) -> NoReturn:  # of np.mean(x), np.concatenate([x, y])
        name, module = str(function.__name__), str(function.__module__)
        raise CompositeError(
            f"`{module.replace('numpy', 'np')}.{name}` in a pattern: {_advice(name)}"
        )
