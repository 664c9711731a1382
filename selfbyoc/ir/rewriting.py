"""A rewriting of main, said once for both generations: op by op, inputs first, a function of the op
that gives what stands for it.

    def without_casts(made: Made, to: Editor) -> Expr | None:
        is_same = made.kind == "cast" and dtype(to, made.args[0]) == made.attrs["dtype"]
        return made.args[0] if is_same else None

    mod = rewritten(mod, without_casts)

What an op reads may be anything of the IR at hand: a rewriting asks its editor, and writes by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeGuard

import numpy as np

from ..ops.vocabulary import read_as, read_op
from ..tvm import Analyzer
from ..tvm.types import Attr, Attrs, AttrsNode, Expr, PrimExpr


@dataclass(frozen=True, eq=False)
class Made:
    """A call, its inputs rewritten before it.

    name   the op as its TVM registers it, Relax's without its prefix; none of a function
    args   what it is called with; of Relax shapes and numbers, too
    given  the same, as they were before
    call   the IR's node
    read   how its TVM's attributes are read
    """

    name: str
    args: tuple[Expr, ...]
    given: tuple[Expr, ...]
    call: Expr
    read: Callable[[AttrsNode], Attrs]

    @property
    def kind(self) -> str:
        """What it is in the vocabulary; its own name, where nobody declared it."""
        return read_as(self.name)

    @cached_property
    def raw(self) -> Attrs:
        """Its attributes as TVM has them; most rewritings ask for those of few ops."""
        return self.read(self.call.attrs)

    @cached_property
    def attrs(self) -> dict[str, Attr]:
        """The attributes of its kind; none where one stands at a value that the kind has not."""
        return read_op(self.name, self.raw)[1]


class Editor(Protocol):
    """What a rewriting asks of expressions, and writes them by."""

    def made(self, x: Expr) -> Made | None:
        """The call that an expression is, or stands for; None of anything else."""

    def source(self, x: Expr) -> Made | None:
        """The same, or the call of several results of which it is the first."""

    def fields(self, x: Expr) -> list[Expr] | None:
        """Of a tuple that is written out; None of anything else."""

    def array(self, x: Expr) -> np.ndarray | None:
        """What a constant holds; None of anything else."""

    def shape(self, x: Expr) -> list[PrimExpr] | None:
        """A tensor's extents: numbers, Relax's expressions of open sizes, None where Relay knows
        nothing; None of what is no tensor, or has an unknown number of axes.
        """

    def is_tensor(self, x: Expr) -> bool:
        """Whether it is one tensor: a tuple of one is none."""

    def dtypes(self, x: Expr) -> list[str]:
        """Of a tensor, or of a tuple's tensors; none of what is neither."""

    def item(self, x: Expr, index: int) -> Expr:
        """One of several results."""

    def joined(self, fields: Sequence[Expr]) -> Expr:
        """A tuple."""

    def constant(self, array: np.ndarray) -> Expr:
        """A constant."""

    def emit(self, kind: str, *args: Expr, **attrs: Attr) -> Expr:
        """An op of the vocabulary, with all of its attributes."""

    def call(self, name: str, *args: Expr, **attrs: Attr) -> Expr:
        """An op by the name of a function that both TVMs have."""

    def again(self, made: Made, args: Sequence[Expr], **changed: Attr) -> Expr:
        """The same op of other inputs, some of its attributes changed."""


Rewriting = Callable[[Made, Editor], Expr | None]


def dtype(to: Editor, x: Expr) -> str:
    """Of one tensor; none of anything else."""
    return to.dtypes(x)[0] if to.is_tensor(x) else ""


def cast(to: Editor, x: Expr, wanted: str) -> Expr:
    """A tensor of another dtype; itself where it has that."""
    return x if dtype(to, x) == wanted else to.emit("cast", x, dtype=wanted)


def size_one(to: Editor, x: Expr) -> bool:
    """Whether a tensor has one element."""
    shape = to.shape(x)
    return shape is not None and all(extent == 1 for extent in shape)


def is_known(shape: list[PrimExpr] | None) -> TypeGuard[list[PrimExpr]]:
    """Whether a reshape can name all extents."""
    return shape is not None and None not in shape


def are_same(one: Sequence[PrimExpr], other: Sequence[PrimExpr]) -> bool:
    """Whether extents are equal at all sizes, as far as TVM can prove it."""
    if len(one) != len(other) or None in (*one, *other):
        return False
    equal = Analyzer().can_prove_equal
    return all(a == b if isinstance(a, int) and isinstance(b, int) else equal(a, b)
               for a, b in zip(one, other, strict=True))  # fmt: skip


def as_it_was(to: Editor, before: Expr, now: Expr) -> Expr:
    """A value of the dtypes that it had: casts where a rewriting changed them."""
    was, dtypes = to.dtypes(before), to.dtypes(now)
    if was == dtypes:
        return now
    fields, given = to.fields(now), to.fields(before)
    if fields is not None and given is not None:
        return to.joined([as_it_was(to, *each) for each in zip(given, fields, strict=True)])
    if to.is_tensor(now):
        return cast(to, now, was[0])
    items = [to.item(now, n) if fields is None else fields[n] for n in range(len(was))]
    return to.joined([cast(to, item, old) for item, old in zip(items, was, strict=True)])
