"""Ops of one's own: declared in Python, known to the vocabulary and to TVM, on both generations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import ComputeError, OpError, SelfbyocError, did_you_mean
from ..graph import OpCall, Shape, type_text
from ..language.nodes import Arg, Node, Op, as_node, reachable
from ..language.pattern import op
from ..ops.attrs import like
from ..ops.kind import BROADCASTS, OWN, Array, Compute, Evaluate, OpKind, Typed, elementwise, form
from ..ops.reference import told_by
from ..ops.vocabulary import FAMILIES, KINDS, add, is_declared, read_as
from ..tvm.types import Attr, Attrs, PrimExpr, Tensor
from .generation import registrar

BUILTIN = frozenset(kind.name for family in FAMILIES for kind in family.KINDS)

for _kind in KINDS.values():
    if _kind.types is not None:
        registrar.register(OWN + _kind.name, _kind.name, _kind.types)

# What a user calls a kind -> TVM's pattern kind.
_FUSES: dict[str, str | tuple[str, str]] = {
    "elementwise": "elemwise",
    "injective": "injective",
    "reduction": "comm_reduce",
    "opaque": "opaque",
}


def declare(
    name: str,
    *,
    compute: Callable[..., PrimExpr],
    numpy: Callable[..., Array],
    inputs: int | None = 1,
    attrs: Attrs | None = None,
    kind: str = "elementwise",
    shape: Callable[..., Sequence[int]] | None = None,
    dtype: Callable[..., str] | None = None,
    commutes: bool = False,
    relay: str | None = None,
    relax: str | None = None,
    primfunc: str = "",
    means: Callable[..., Node] | None = None,
    doc: str = "",
) -> Callable[..., Node]:
    """Declare an op; -> `op.<name>`, which stands in patterns, cases and programs as the others do.

    compute       TensorIR: of an elementwise op a function of elements, else of `te` tensors
    numpy         the same of arrays, for `verify` and tests; floating-point ones come as float64
    inputs        how many tensors, None: a list; `commutes`: they may change places
    attrs         attributes with defaults: compute and numpy get them by name
    kind          "elementwise", "injective", "reduction" or "opaque", for TVM's own fusion
    shape, dtype  functions of the inputs' and the attributes -> the result's; by default the
                  shapes are broadcast, and the dtype is the first input's
    relay, relax  the op of these TVMs that models have it as (Relax's without "relax.")
    primfunc      the PrimFunc that a Relax model calls; attributes are their defaults then
    means         a program of the vocabulary that is read as this op, and written for it

    Without the last four TVM gets it as "selfbyoc.<name>". `help` says doc. Raises OpError.
    """
    made = OpKind(
        name,
        _compute(name, kind, compute),
        _numpy(name, numpy),
        inputs=inputs,
        attrs=_attrs(name, attrs),
        fuses=BROADCASTS if kind == "elementwise" and inputs != 1 else _FUSES.get(kind, "opaque"),
        is_commutative=commutes,
        means=means,
        primfunc=primfunc,
        **told_by(compute, inputs, doc),
    )
    _check(made, kind, compute, numpy, shape)
    forms = _forms(made, {"relay": relay, "relax": relax})
    add(replace(made, **forms))
    if any(told.name == OWN + name for told in forms.get(registrar.GENERATION, ())):
        registrar.register(OWN + name, name, _Rule(name, kind, shape, dtype))
    return getattr(op, name)


def _attrs(name: str, attrs: Attrs | None) -> dict[str, Attr]:
    if attrs is not None and not isinstance(attrs, Mapping):
        raise OpError(f"op {name}: attrs: expected {{name: default}}, found {attrs!r}")
    return dict(attrs or {})


def _forms(made: OpKind, named: Mapping[str, str | None]) -> dict[str, Any]:
    """The ops of both TVMs that are read as this kind; one that is registered here, if there is
    neither one in the TVM at hand nor a program.
    """
    reads, here = like(made.attrs), named[registrar.GENERATION]
    if here:
        _check_known(made.name, here)
    elif made.means is None:
        named = {**named, registrar.GENERATION: f"{OWN}{made.name}"}
    return {which: form(told, reads) for which, told in named.items() if told}


def line_for(name: str) -> str | None:
    """The line that would declare an op of the TVM at hand, by the name it has there; None for one
    that is declared, or is no op.
    """
    if name in KINDS or is_declared(name) or name not in registrar.known_ops():
        return None
    short = name.rpartition(".")[2]
    taken = "" if short not in KINDS else "_"
    return f'declare("{short}{taken}", {registrar.GENERATION}="{name}", compute=..., numpy=...)'


class _Rule:
    """The type of a declared op's result: from its inputs' types and attributes."""

    def __init__(
        self,
        name: str,
        kind: str,
        shape: Callable[..., Sequence[int]] | None,
        dtype: Callable[..., str] | None,
    ) -> None:
        self.name, self.kind, self.shape, self.dtype = name, kind, shape, dtype

    def __call__(self, ins: Sequence[Typed], attrs: Attrs) -> list[Typed]:
        """The result's; an elementwise op of one input may have open sizes."""
        shapes, dtypes = [shape for shape, _ in ins], [dtype for _, dtype in ins]
        try:
            dtype = str(self.dtype(*dtypes, **attrs) if self.dtype else dtypes[0])
            return [(self._shape(shapes, attrs), dtype)]
        except Exception as err:  # whatever a user's function raises is its own error
            told = ", ".join(type_text(s, d) for s, d in zip(shapes, dtypes, strict=True))
            text = f"op {self.name}: no type of a result of {told}"
            raise OpError(f"{text}: {type(err).__name__}: {err}") from err

    def _shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        if self.shape is not None:
            return tuple(int(e) for e in self.shape(*shapes, **attrs))
        if len(shapes) == 1:
            return shapes[0]
        if not all(isinstance(extent, int) for shape in shapes for extent in shape):
            raise TypeError("an op of several inputs takes no open sizes")
        return tuple(int(e) for e in np.broadcast_shapes(*shapes))


def _compute(name: str, kind: str, function: Callable[..., object]) -> Compute:
    def compute(ins: Sequence[Tensor], call: OpCall) -> Tensor:
        attrs = {key: call.attrs[key] for key in KINDS[name].attrs}
        try:
            if kind == "elementwise":
                return elementwise(lambda *elements: function(*elements, **attrs))(ins, call)
            return function(*ins, **attrs)
        except SelfbyocError:
            raise
        except Exception as err:  # whatever a user's function raises is its own error
            text = f"op {name}: its compute raised {type(err).__name__}: {err}"
            raise ComputeError(text) from err

    return compute


def _numpy(name: str, function: Callable[..., Array]) -> Evaluate:
    return lambda ins, call: function(*ins, **{key: call.attrs[key] for key in KINDS[name].attrs})


def _check(
    made: OpKind,
    kind: str,
    compute: Callable[..., PrimExpr],
    numpy: Callable[..., Array],
    shape: Callable[..., Sequence[int]] | None,
) -> None:
    name = made.name
    if not isinstance(name, str) or not name.isidentifier():
        raise OpError(f"op {name!r}: expected a name that Python can write after `op.`")
    if name in BUILTIN:
        raise OpError(f"op {name} is built in; declare yours under another name")
    if kind not in _FUSES:
        text = f"op {name}: kind={kind!r}; expected one of {list(_FUSES)}"
        raise OpError(text + did_you_mean(str(kind), _FUSES))
    if made.inputs is not None and (not isinstance(made.inputs, int) or made.inputs < 1):
        raise OpError(f"op {name}: inputs={made.inputs!r}; expected a number from 1, or None")
    if made.means is not None and made.inputs is None:
        raise OpError(f"op {name}: means= needs a number of inputs")
    if kind != "elementwise" and shape is None and made.means is None:
        raise OpError(
            f"op {name}: an op of kind {kind} needs shape=, the result's from the inputs'"
        )
    for what, function in (("compute", compute), ("numpy", numpy)):
        _check_signature(name, what, function, made)
    if made.means is not None:
        _check_program(made)


def _check_program(made: OpKind) -> None:
    """What an op means reads all of its inputs, and not the op itself."""
    assert made.means is not None
    assert made.inputs is not None
    _check_signature(made.name, "means", made.means, made)
    args = [Arg(f"x{n}") for n in range(made.inputs)]
    root = as_node(made.means(*args, **made.attrs))
    nodes = reachable(root)
    if any(isinstance(node, Op) and node.kind == made.name for node in nodes):
        raise OpError(f"op {made.name}: means= is of ops that there are; found the op itself")
    unread = [arg.name for arg in args if not any(arg is node for node in nodes)]
    if unread or not isinstance(root, Op):
        found = f"found one that does not read {unread}" if unread else f"found {root!r}"
        raise OpError(f"op {made.name}: means= is a program of all inputs; {found}")


def _check_signature(name: str, what: str, function: Callable[..., object], made: OpKind) -> None:
    if not callable(function):
        raise OpError(f"op {name}: {what}: expected a function, found {function!r}")
    count = made.inputs or 2
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a ufunc nothing is known
        return
    try:
        signature.bind(*range(count), **made.attrs)
    except TypeError as err:
        wanted = ", ".join([f"{count} inputs", *(f"{key}=" for key in made.attrs)])
        text = f"op {name}: {what}{signature} does not take {wanted}: {err}"
        raise OpError(text) from err


def _check_known(name: str, told: str) -> None:
    known = registrar.known_ops()
    if told not in known:
        which = registrar.GENERATION
        text = f"op {name}: {which}={told!r} is no op of this TVM{did_you_mean(told, known)}"
        raise OpError(text)
    kind = read_as(told)
    if is_declared(told) and kind != name:
        raise OpError(f"op {name}: {registrar.GENERATION}={told!r} is read as op {kind} already")
