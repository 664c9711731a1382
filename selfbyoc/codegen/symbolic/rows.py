"""Several leading axes as one: of a batch and a length, a product of rows knows only how many rows
there are.

Where all ops of a kernel treat leading axes alike, it is learnt for the number of its rows: one
symbol in place of several, or of one after fixed axes, each row in its tile whatever the batch is.
Fixed axes after an open one are rows too (`inner`), where no kernel can be learnt of the open one:
with 17 rows a picture, each batch has a plan of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ...errors import ReadingError, SymbolicError
from ...graph import OpCall, OpGraph, Symbol, Value
from ...ops.vocabulary import is_elementwise_kind
from ...tvm import param_buffers
from ...tvm.types import Attrs, PrimExpr, PrimFunc
from ..attributes import OF_INNER_ROWS, OF_ROWS, READING
from ..external import RANGES, External, match_of
from ..tuning_record import TUNED_AT
from .ranges import tuned_by

ROWS = "rows"
ALONG_AXIS = ("bias_add", "layer_norm", "log_softmax", "rms_norm", "softmax")


def of_rows(source: External, *, inner: bool = False) -> External | None:
    """The same kernel of one symbol, the number of its rows; None where there is no such one."""
    told = source.attrs.get(OF_INNER_ROWS if inner else OF_ROWS)
    found = None if told is False else _of_rows(source, inner)
    return found if found is None or told or _is_read(found) else None


def is_of_rows(source: External, *, inner: bool = False) -> bool:
    """Whether there is such a kernel, by the composite's pattern."""
    found = _of_rows(source, inner)
    return found is not None and _is_read(found)


def number_of_rows(signature: PrimFunc, flat: PrimFunc) -> PrimExpr:
    """How many there are, from the leading extents that are one in the function of rows, `flat`."""
    pairs = zip(param_buffers(signature), param_buffers(flat), strict=True)
    ranks = ((list(buffer.shape), len(of_rows.shape)) for buffer, of_rows in pairs)
    return next(math.prod(s[: len(s) - rank + 1]) for s, rank in ranks if rank < len(s))


def _is_read(found: External) -> bool:
    """Whether the pattern fits; not where it asks for an axis that is gone."""
    attrs = {name: value for name, value in found.attrs.items() if name != READING}
    try:
        match_of(replace(found, attrs=attrs))
    except ReadingError:
        return False
    return True


def _of_rows(source: External, inner: bool) -> External | None:
    open_ones = [_is_open(value) for value in _values(source.graph)]
    leads = _leads(source.graph, inner)
    lead = next((n for n in leads if _all_of_rows(source.graph, n)), 0)
    if not lead:
        return None
    *others, main = source.symbols

    def read_at(sizes: Mapping[str, int]) -> OpGraph:
        assert source.read_at is not None, "it has symbols"
        rows = sizes[ROWS]
        read = source.read_at({**dict.fromkeys(others, 1), main: rows})
        return _merged(read, open_ones, lead, rows)

    def count(sizes: Mapping[str, int]) -> int:
        values = _values(source.at(sizes).graph)
        shape = next(v.shape for v, is_open in zip(values, open_ones, strict=True) if is_open)
        return math.prod(extent or 0 for extent in shape[:lead])

    sizes = {ROWS: Symbol(source.sizes[main], ROWS)}
    attrs = {**source.attrs, TUNED_AT: tuned_by(source, ROWS, count)}
    return replace(
        source, graph=read_at(sizes), symbols=(ROWS,), sizes=sizes, read_at=read_at,
        attrs={**attrs, RANGES: {ROWS: _counted(source, count)}},
    )  # fmt: skip


def _counted(source: External, count: Callable[[Mapping[str, int]], int]) -> tuple[int, int | None]:
    """The least and the largest number of rows."""
    ends = {name: source.range_of(name) for name in source.symbols}
    least = count({name: max(each.least, 1) for name, each in ends.items()})
    most = {name: each.most for name, each in ends.items() if each.most is not None}
    return (least if least > 1 else 0), (count(most) if len(most) == len(ends) else None)


def _values(graph: OpGraph) -> Iterator[Value]:
    """Each use of a value, in an order that is the same at all sizes."""
    yield from graph.inputs
    for call in graph.ops:
        yield from (*call.inputs, *call.outputs)


def _is_open(value: Value) -> bool:
    return any(isinstance(extent, Symbol) for extent in value.shape)


def _leads(graph: OpGraph, inner: bool) -> Iterator[int]:
    """How many leading axes may be rows: those to the last open one, or (`inner`) beyond, the most
    first. All open values have them in common, and one of them is not the only one to count; none
    where other axes are open, or the open ones are those of one size.
    """
    shapes = [value.shape for value in _values(graph) if _is_open(value)]
    first = shapes[0]
    opened = max(n for n, extent in enumerate(first, 1) if isinstance(extent, Symbol))
    symbols = [str(extent) for extent in first if isinstance(extent, Symbol)]
    closed = all(not isinstance(e, Symbol) for shape in shapes for e in shape[opened:])
    if not closed or len(set(symbols)) < len(symbols):
        return
    # The last axis is of each row.
    counts = range(min(map(len, shapes)) - 1, opened, -1) if inner else (opened,)
    for lead in counts:
        axes = list(map(str, first[:lead]))
        others = sum(isinstance(e, Symbol) or e != 1 for e in first[:lead]) - 1
        if others and all(list(map(str, shape[:lead])) == axes for shape in shapes):
            yield lead


def _all_of_rows(graph: OpGraph, lead: int) -> bool:
    return all(_is_of_rows(call, lead) for call in graph.ops)


def _is_of_rows(call: OpCall, lead: int) -> bool:
    """Whether an op does the same in every row, and what is no row is for all of them: a weight,
    transposed in the kernel, too.
    """
    if not any(_is_open(value) for value in (*call.inputs, *call.outputs)):
        return True
    out, first = call.outputs[0], call.inputs[0]
    if len(call.outputs) > 1 or not _is_open(out):
        return False
    closed = [value for value in call.inputs if not _is_open(value)]
    if is_elementwise_kind(call.kind) and call.kind not in ALONG_AXIS:
        return all(value.ndim <= out.ndim - lead for value in closed)
    if not _is_open(first) or len(closed) < len(call.inputs) - 1:
        return False
    if call.kind in ALONG_AXIS:
        axis = call.attrs["axis"]
        return isinstance(axis, int) and axis % out.ndim >= lead
    return call.kind == "dense" and first.ndim == lead + 1


def _merged(graph: OpGraph, open_ones: list[bool], lead: int, rows: int) -> OpGraph:
    """The graph with one axis in place of the leading ones of its open values."""
    values = list(_values(graph))
    if len(values) != len(open_ones):
        raise SymbolicError("its graphs of some sizes differ in more than sizes")
    new: dict[Value, Value] = {}
    for value, is_open in zip(values, open_ones, strict=True):
        if is_open and value not in new:
            new[value] = replace(value, shape=(rows, *value.shape[lead:]))

    def swapped(found: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(new.get(value, value) for value in found)

    ops = tuple(
        replace(
            call, inputs=swapped(call.inputs), outputs=swapped(call.outputs),
            attrs=_attrs(call, lead),
        )
        for call in graph.ops
    )  # fmt: skip
    return OpGraph(swapped(graph.inputs), ops, swapped(graph.outputs), graph.absorbed)


def _attrs(call: OpCall, lead: int) -> Attrs:
    axis = call.attrs.get("axis") if call.kind in ALONG_AXIS else None
    return call.attrs if axis is None or axis < 0 else {**call.attrs, "axis": axis - lead + 1}
