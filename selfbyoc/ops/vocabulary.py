"""All op kinds by their names: those of the families, and those that a user declared."""

from __future__ import annotations

from ..errors import OpError, UnsupportedOp
from ..tvm import GENERATION
from ..tvm.types import Attr, Attrs
from . import (
    activations,
    conditions,
    elementwise,
    few_bits,
    half_weights,
    movement,
    normalization,
    pools,
    products,
    quantized,
    recurrent,
    reductions,
    requantized,
    resize,
    transposed,
    trees,
)
from . import attrs as A
from .kind import BROADCASTS, Compute, Evaluate, Form, OpKind

FAMILIES = (
    elementwise, activations, conditions, few_bits, half_weights, movement,
    normalization, pools, products, quantized, recurrent, reductions, requantized, resize,
    transposed, trees,
)  # fmt: skip

KINDS: dict[str, OpKind] = {}
_READ: dict[str, tuple[str, Form]] = {}  # ops of the TVM at hand by their names


def written() -> list[str]:
    """The kinds that stand in patterns and programs, sorted."""
    return sorted(name for name, kind in KINDS.items() if kind.is_written)


def elementwise_kinds() -> set[str]:
    """The kinds in patterns that are elementwise where an input has the shape of the result."""
    return set(filter(is_elementwise_kind, KINDS))


def is_elementwise_kind(name: str) -> bool:
    """Whether a kind is one of these."""
    kind = KINDS.get(name)
    told = ("elemwise", BROADCASTS)
    return kind is not None and kind.is_written and kind.fuses in told


def forms(kind: OpKind) -> tuple[Form, ...]:
    """The forms of a kind in the TVM at hand."""
    return kind.relay if GENERATION == "relay" else kind.relax


def add(kind: OpKind) -> None:
    """A kind in the vocabulary, in the place of one of the same name and of its forms."""
    for old in forms(KINDS[kind.name]) if kind.name in KINDS else ():
        del _READ[old.name]
    KINDS[kind.name] = kind
    _READ.update({form.name: (kind.name, form) for form in forms(kind)})


for _family in FAMILIES:
    for _kind in _family.KINDS:
        add(_kind)


def read_as(name: str) -> str:
    """The kind of an op of the TVM at hand; its own name where nobody declared it."""
    return _READ[name][0] if name in _READ else name


def read_op(name: str, raw: A.Raw) -> tuple[str, dict[str, Attr]]:
    """An op of the TVM at hand by its attributes -> its kind and the kind's attributes.

    With an attribute that no compute honours it is another kind, of which nobody knows more than
    the name: `batch_norm[training=True]`.
    """
    if name not in _READ:
        return name, {}
    kind, form = _READ[name]
    attrs, others = form.read(raw)
    told = ", ".join(f"{name}={value!r}" for name, value in others.items())
    return (f"{kind}[{told}]", {}) if told else (kind, attrs)


def attrs_of(name: str, raw: A.Raw) -> dict[str, Attr]:
    """The attributes of an op that is registered for a kind. Of one that the declaration does not
    name nobody knows the meaning, which is an OpError.
    """
    defaults = KINDS[name].attrs
    if unknown := sorted(set(raw) - set(defaults)):
        raise OpError(f"op {name}: the model's has attributes {unknown}; name them in attrs=")
    return A.like(defaults)(raw)


def is_declared(name: str) -> bool:
    """Whether an op of the TVM at hand is read as a kind."""
    return name in _READ


def complete(name: str, attrs: Attrs) -> dict[str, Attr]:
    """The attributes of an op in a program: the defaults, and what was given, in normal form."""
    merged = {**KINDS[name].attrs, **attrs}
    return {k: A.NORMALIZERS[k](v) if k in A.NORMALIZERS else v for k, v in merged.items()}


def compute_of(name: str) -> Compute:
    """The compute of an op kind, or an error that names those there are."""
    kind = KINDS.get(name)
    if kind is None or kind.compute is None:
        raise UnsupportedOp(f"no compute for {name!r}; known: {written()}")
    return kind.compute


def numpy_of(name: str, asked_by: str = "") -> Evaluate:
    """The meaning of an op kind in NumPy, or an error that names those there are."""
    kind = KINDS.get(name)
    if kind is None or kind.numpy is None:
        known = sorted(n for n, k in KINDS.items() if k.numpy is not None)
        raise UnsupportedOp(f"{asked_by or name}: no NumPy meaning of {name!r}; known: {known}")
    return kind.numpy
