"""What an op kind is. Built-in ops and those that a user declares are the same value.

A family's file (elementwise.py, products.py, ...) declares its kinds; vocabulary.py holds them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph import OpCall
from ..tvm import te, tir
from ..tvm.types import Attr, PrimExpr
from .attrs import Needs, Noted, Raw, ReadAttrs, is_empty, none, plain

if TYPE_CHECKING:
    from ..tvm.types import PrimExpr, Tensor

Array = np.ndarray
OWN = "selfbyoc."  # before the names of ops that TVM has from this library
Typed = tuple[tuple[Any, ...], str]  # shape and dtype; an open size is an expression of TVM's
# From tensors, and the op with its attributes and result types, to its tensor or tensors.
Compute = Callable[[Sequence["Tensor"], "OpCall"], Any]
# The same in NumPy. Floating-point ops compute in float64 and keep it; integers in the op's dtype.
Evaluate = Callable[[Sequence[Array], "OpCall"], Any]


@dataclass(frozen=True)
class Form:
    """An op of one TVM that is read as a kind.

    name    as that TVM registers it; Relax's without its prefix "relax."
    attrs   reads its attributes as the kind's, which its compute honours
    needs   attributes that no compute honours, and the values at which that is right
    idle    attributes that never matter, or follow from the types
    by_type  all of them follow from the types
    """

    name: str
    attrs: ReadAttrs = none
    needs: Needs = field(default_factory=dict)
    idle: tuple[str, ...] = ()
    by_type: bool = False

    def read(self, raw: Raw) -> tuple[dict[str, Attr], dict[str, Attr]]:
        """-> the kind's attributes, and those that stand at a value which no compute honours. An
        attribute that nobody named is one of these, unless it is empty.
        """
        noted = Noted(raw)
        attrs = self.attrs(noted)
        if self.by_type:
            return attrs, {}
        left = {name: plain(raw[name]) for name in raw if name not in (*noted.names, *self.idle)}
        return attrs, {
            name: value
            for name, value in left.items()
            if not (self.needs[name](value, raw) if name in self.needs else is_empty(value))
        }


# Relay registers what an op may do; Relax looks at whether one operand is read in place.
BROADCASTS = ("broadcast", "elemwise")


@dataclass(frozen=True)
class OpKind:
    """One kind of op.

    `doc` is what it computes, in a formula or a sentence, of the inputs that `takes` names.
    `spelled` says how a generation writes it where that has no such op ({"relax": "..."}).
    `inputs` is None where an op takes one list of tensors. `attrs` are the attributes of a program
    and their defaults, `read_attrs` those without one, or that only a reader sets; the compute and
    the NumPy meaning honour all of them. The first form is how an op is written. `fuses` is the
    pattern kind by which TVM's own fusion sees the op
    (codegen/info/pattern_kind.py): one name, or Relay's and Relax's.
    """

    name: str
    compute: Compute | None = None
    numpy: Evaluate | None = None
    inputs: int | None = 1
    attrs: Mapping[str, Any] = field(default_factory=dict)
    read_attrs: tuple[str, ...] = ()
    relay: tuple[Form, ...] = ()
    relax: tuple[Form, ...] = ()
    fuses: str | tuple[str, str] = "opaque"
    is_commutative: bool = False
    means: Callable[..., Any] | None = None  # a program of other ops that is read as this one
    # Of an op that TVM has from this library: its results' types by its inputs' and attributes
    types: Callable[[Sequence[Typed], Mapping[str, Any]], list[Typed]] | None = None
    primfunc: str = ""  # of a Relax module, a call of which is read as this op
    doc: str = ""
    takes: str = ""
    # The dtypes of inputs by position where a program gives numbers; of others that of the tensors
    numbers: Mapping[int, str] = field(default_factory=dict)
    spelled: Mapping[str, str] = field(default_factory=dict)
    # Numbers that differ from layer to layer and change nothing else, as scales: kernels are passed
    # them, so that equal layers are one. By position, the values that they know nevertheless.
    passed: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    is_folded: bool = True  # of constants alone it is computed once; else it is a kernel's to read

    @property
    def is_written(self) -> bool:
        """Whether it stands in patterns; else it is only ever read as another."""
        return self.compute is not None


def form(name: str, attrs: ReadAttrs = none, **others: Any) -> tuple[Form, ...]:
    """One form; `others` are further fields of it."""
    return (Form(name, attrs, **others),)


def in_both(name: str, attrs: ReadAttrs = none, **others: Any) -> dict[str, Any]:
    """An op with one name in both TVMs."""
    return {"relay": form(name, attrs, **others), "relax": form(name, attrs, **others)}


def broadcast(tensor: Tensor, out_index: Sequence[PrimExpr], own: int = 0) -> PrimExpr:
    """Read a tensor at an index of a shape that it broadcasts to, but for so many of its last axes:
    these are its own.
    """
    index = out_index[len(out_index) - len(tensor.shape) :]
    last = len(index) - own
    read = (
        0 if n < last and is_one(extent) else i
        for n, (extent, i) in enumerate(zip(tensor.shape, index, strict=True))
    )
    return tensor(*read)


def is_one(extent: PrimExpr) -> bool:
    """Whether an extent is the number 1, along which a tensor is broadcast."""
    return isinstance(extent, (int, tir.IntImm)) and int(extent) == 1


def elementwise(function: Callable[..., PrimExpr]) -> Compute:
    """An op on elements, its inputs broadcast to the result's shape."""

    def compute(ins: Sequence[Tensor], call: OpCall) -> Tensor:
        shape = call.outputs[0].shape
        if None in shape:  # open sizes: there is one input then
            shape = ins[0].shape
        return te.compute(
            shape, lambda *i: function(*(broadcast(t, i) for t in ins)), name=call.name
        )

    return compute


def with_attrs(function: Callable[..., PrimExpr]) -> Compute:
    """An op on elements that also reads attributes."""

    def compute(ins: Sequence[Tensor], call: OpCall) -> Tensor:
        (x,) = ins
        return te.compute(
            call.outputs[0].shape, lambda *i: function(x(*i), call.attrs), name=call.name
        )

    return compute


def pure(function: Callable[..., Array]) -> Evaluate:
    """A NumPy function of the inputs alone."""
    return lambda ins, call: function(*ins)


def along(vector: Array, axis: int, ndim: int) -> Array:
    """A vector as an array that lies along one axis of `ndim`."""
    return vector.reshape([-1 if i == axis % ndim else 1 for i in range(ndim)])
