"""The open sizes of a graph: where they are in its inputs, and what of its results they decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from ...errors import InputError
from .storage import Layout

Symbol: TypeAlias = Any  # or an expression: of sympy, as PyTorch has them
# An input of the graph, and an axis: 0 of an integer that is no extent, a count.
Place = tuple[int, int]
Sizes = tuple[int, ...]  # of each symbol, in order

_LARGEST = 2**62

# PyTorch raises for an index beyond these; a library cannot, where the extent is open.
_INDEXING = (
    "embedding", "gather", "index", "index_put", "index_select", "scatter", "scatter_add", "take",
)  # fmt: skip
# That leave integers what they are, or are looked at.
_IN_PLACE = ("_to_copy", "add", "alias", "clone", "expand", "reshape", "slice", "unsqueeze", "view")


@dataclass(frozen=True)
class Open:
    """What is symbolic in a graph.

    places   symbol -> where it is the extent of a tensor
    bounds   symbol -> the least and the largest size that dynamo calls the graph with
    sizes    an integer among the inputs -> the extent that it is
    numbers  integers among the inputs that are no extent: a library is of their values
    counts   integers that are none either, and are left open as the extent of an empty tensor: a
             library's sizes are those of its inputs
    """

    places: Mapping[Any, tuple[Place, ...]]
    bounds: Mapping[Any, tuple[int, int | None]]
    sizes: Mapping[int, Place]
    numbers: tuple[int, ...]
    counts: tuple[int, ...] = ()

    def of(self, given: Sequence[Any]) -> Sizes:
        """The sizes of these inputs."""
        return tuple([
            given[n] if n in self.counts else given[n].shape[axis]
            for (n, axis), *_ in self.places.values()
        ])  # fmt: skip

    def sized(self, given: Sequence[Any]) -> Sequence[torch.Tensor]:
        """What a library is given: an empty tensor of so many rows for a count."""
        if not self.counts:
            return given
        done: list[Any] = list(given)
        for place in self.counts:
            done[place] = torch.empty((done[place], 0))
        return done

    def has_room(self, given: Sequence[torch.Tensor | int]) -> bool:
        """Whether every count is one of many: what is traced with a count holds from 2 on, as it
        does of a size.
        """
        return all(given[place] > 1 for place in self.counts)

    def numbers_in(self, given: Sequence[torch.Tensor | int]) -> tuple[object, ...]:
        """The values of these inputs that a library is of."""
        return tuple([given[n] for n in self.numbers])

    def dims(self, live: Sequence[int]) -> list[dict[int, torch.export.Dim] | None]:
        """What torch.export is to leave open of these inputs."""
        found: dict[int, dict[int, Any]] = {}
        for symbol, places in self.places.items():
            least, most = self.bounds[symbol]
            # By a name of ours it would have to fit these bounds: `x[1:]` is of 3 rows or more.
            dim = torch.export.Dim.AUTO(min=least, max=most)
            for position, axis in places:
                found.setdefault(position, {})[axis] = dim
        return [found.get(n) for n in live]


def open_sizes(
    module: torch.fx.GraphModule, weights: Sequence[int], has_counts: bool = True
) -> Open | None:
    """Those of a functional graph; None where it has none. Raises InputError where a library for
    all of them cannot do as PyTorch does.
    """
    values = [n.meta.get("val") for n in module.graph.find_nodes(op="placeholder")]
    places: dict[Any, list[Place]] = {}
    for position, value in enumerate(values):
        if isinstance(value, torch.Tensor) and position not in weights:
            for axis, extent in enumerate(value.shape):
                if isinstance(extent, torch.SymInt):
                    places.setdefault(_symbol(extent), []).append((position, axis))
    integers = {n: v.node.expr for n, v in enumerate(values) if isinstance(v, torch.SymInt)}
    counts = tuple(n for n, e in integers.items() if has_counts and e.is_Symbol and e not in places)
    for position in counts:
        places[integers[position]] = [(position, 0)]
    if not places:
        return None
    _check_indices(module)
    return Open(
        {symbol: tuple(found) for symbol, found in places.items()},
        {symbol: _bounds(symbol, values) for symbol in places},
        {n: places[symbol][0] for n, symbol in integers.items() if symbol in places},
        tuple(
            n
            for n, value in enumerate(values)
            if not isinstance(value, torch.Tensor) and integers.get(n) not in places
        ),
        counts,
    )


def _symbol(extent: torch.SymInt) -> Symbol:
    expression = extent.node.expr
    if not expression.is_Symbol:
        raise InputError(f"an input has the extent {expression}, which is no size by itself")
    return expression


def _bounds(symbol: Symbol, values: Sequence[object]) -> tuple[int, int | None]:
    known = _environment(values).var_to_range[symbol]
    # What has no bound ends at an infinity of sympy's, PyTorch's own, or the largest number.
    is_bound = known.upper.is_Integer and int(known.upper) < _LARGEST
    least = int(known.lower) if known.lower.is_Integer else 0
    return max(least, 0), int(known.upper) if is_bound else None


def _environment(values: Sequence[object]) -> Any:
    for value in values:
        if isinstance(value, torch.SymInt):
            return value.node.shape_env
    tensor = next(v for v in values if isinstance(v, torch._subclasses.FakeTensor))
    return tensor.fake_mode.shape_env


def _check_indices(module: torch.fx.GraphModule) -> None:
    for node in module.graph.nodes:
        name = _op(node)
        if name not in _INDEXING:
            continue
        data = node.args[0].meta.get("val")
        extents = getattr(data, "shape", ())
        if all(isinstance(extent, int) for extent in extents):
            continue
        indices = node.args[1] if name == "index" else ()
        if not indices or not all(map(_is_within, indices, extents)):
            raise InputError(f"{node.target} has indices of an open size")


def _op(node: torch.fx.Node) -> str:
    """The name of an ATen op that is called; none for anything else."""
    packet = getattr(node.target, "overloadpacket", None)
    return getattr(packet, "__name__", "") if node.op == "call_function" else ""


def _is_within(index: torch.fx.Node | None, extent: int | torch.SymInt) -> bool:
    """Whether an index is one of 0, 1, ... up to an extent, by how it was made: masks are read so;
    None takes all.
    """
    while index is not None and _is_counted(index) and _op(index) in _IN_PLACE:
        moved, *others = index.args
        if _op(index) == "add" and (others != [0] or index.kwargs):
            return False
        index = moved
    if index is None or not _is_counted(index) or _op(index) != "arange":
        return index is None
    start, end, step = (0, *index.args, 1)[-3:] if len(index.args) == 1 else (*index.args, 1)[:3]
    end = getattr(end, "meta", {}).get("val", end)
    return (start, step) == (0, 1) and bool(_expression(end) == _expression(extent))


def _is_counted(index: torch.fx.Node) -> bool:
    """Whether it is of integers that hold any size: of bools or bytes an index is a mask."""
    return getattr(index.meta.get("val"), "dtype", None) in (torch.int32, torch.int64)


def _expression(extent: int | torch.SymInt) -> int | Symbol:
    return extent.node.expr if isinstance(extent, torch.SymInt) else extent


def results_at(module: torch.fx.GraphModule, symbols: Mapping[Symbol, int]) -> list[int | Layout]:
    """What a graph returns at some sizes: of a tensor shape and strides, else the number."""
    (last,) = module.graph.find_nodes(op="output")
    values = [getattr(node, "meta", {}).get("val", node) for node in last.args[0]]
    return [
        (_numbers(v.shape, symbols), _numbers(v.stride(), symbols))
        if isinstance(v, torch.Tensor)
        else _number(v, symbols)
        for v in values
    ]


def layout_at(traced: torch.Tensor, symbols: Mapping[Symbol, int]) -> Layout | None:
    """Shape and strides at some sizes; None where data decide them."""
    try:
        return _numbers(traced.shape, symbols), _numbers(traced.stride(), symbols)
    except TypeError:  # a symbol that none of these sizes is
        return None


def _numbers(
    extents: Sequence[int | torch.SymInt], symbols: Mapping[Symbol, int]
) -> tuple[int, ...]:
    return tuple(_number(extent, symbols) for extent in extents)


def _number(value: int | torch.SymInt, symbols: Mapping[Symbol, int]) -> int:
    if not isinstance(value, torch.SymInt):
        return value
    return int(value.node.expr.xreplace(symbols))
