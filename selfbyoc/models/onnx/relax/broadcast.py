"""Open sizes that have to be equal, as TVM has to see it: what has another expression is cast; and
an axis that has to have as many elements as a TopK is asked for.

What casts say of inputs' sizes is read a second time as their shapes (algebra.py), and a
call with others is an error: if it computes the node. In a branch the cast alone says so. Of two
sizes that may be equal or 1, ONNX would take the 1 for the other; here that is an error of the
call, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relax

from ....ir.relax import Constant
from ....tvm import constant_numpy, tir
from ....tvm.types import Attrs, BlockBuilder, Expr
from ...relax.algebra import Algebra, Extent
from ...relax.one_size import with_sizes

_ELEMENTWISE = frozenset(
    ("Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater",
     "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu",
     "Pow", "Sub", "Sum", "Where", "Xor")
)  # fmt: skip


def agreed(
    builder: BlockBuilder, algebra: Algebra, op: str, inputs: Any, attributes: Attrs
) -> Sequence[Expr]:
    """A node's inputs, cast to one size where it wants them to have one."""
    given = {n: x for n, x in enumerate(inputs) if _extents(x) is not None}
    wanted: list[list[tuple[int, int]]] = []  # places (input, axis) of one size each
    if op in _ELEMENTWISE:
        wanted = _aligned({n: _rank(x) for n, x in given.items()}, 0)
    elif op == "MatMul" and len(given) == 2 and min(_rank(x) for x in given.values()) > 1:
        wanted = _aligned({n: _rank(x) for n, x in given.items()}, 2)
        wanted.append([(0, _rank(given[0]) - 1), (1, _rank(given[1]) - 2)])
    elif op == "Concat" and given:
        rank = _rank(next(iter(given.values())))
        axis = attributes.get("axis", 0) % rank
        wanted = [[(n, a) for n in given] for a in range(rank) if a != axis]
    if op == "TopK":
        _at_least(algebra, inputs, attributes)
    for n, changes in _casts(algebra, given, wanted, op == "Concat").items():
        shape = [changes.get(axis, extent) for axis, extent in enumerate(_extents(given[n]))]
        inputs[n] = with_sizes(builder, given[n], shape)
    return inputs


def _aligned(ranks: dict[int, int], left: int) -> list[list[tuple[int, int]]]:
    """Axes that are broadcast against one another, but for this many last ones."""
    most = max(ranks.values(), default=0)
    return [
        [(n, rank - back) for n, rank in ranks.items() if rank >= back]
        for back in range(left + 1, most + 1)
    ]


def _casts(
    algebra: Algebra,
    given: dict[int, Expr],
    wanted: Sequence[Sequence[tuple[int, int]]],
    ones: bool,
) -> dict[int, dict[int, Extent]]:
    """Of each input the axes that are to have another size; `ones`: an axis of 1, too."""
    found: dict[int, dict[int, Extent]] = {}
    for places in wanted:
        extents = {p: _extents(given[p[0]])[p[1]] for p in places}
        open_ones = {p: e for p, e in extents.items() if ones or not _is_one(e)}
        if not open_ones or all(isinstance(e, int) for e in open_ones.values()):
            continue
        size = min(open_ones.values(), key=_complexity)
        for (n, axis), extent in open_ones.items():
            if not algebra.are_equal(extent, size):
                algebra.promise(extent, size)
                found.setdefault(n, {})[axis] = size
    return found


def _at_least(algebra: Algebra, inputs: Sequence[Expr], attributes: Attrs) -> None:
    """The axis of a TopK has to have as many elements as are asked for."""
    extents, axis = _extents(inputs[0]), attributes.get("axis", -1)
    least = attributes.get("k")  # before opset 10
    if least is None and isinstance(inputs[1], Constant):
        least = int(constant_numpy(inputs[1]).ravel()[0])
    if least is not None and extents and not isinstance(extents[axis], int):
        algebra.demand(extents[axis], least)


def _is_one(extent: Extent) -> bool:
    return isinstance(extent, int) and extent == 1


def _complexity(extent: Extent) -> int:
    """Numbers first, then symbols: the others are checked against these."""
    return 0 if isinstance(extent, int) else 1 if isinstance(extent, tir.Var) else 2


def _rank(x: Expr) -> int:
    return len(_extents(x) or ())


def _extents(x: Expr) -> Any:
    shape = getattr(getattr(x, "ty", None), "shape", None)
    if not isinstance(shape, relax.ShapeExpr):
        return None
    return [int(e) if isinstance(e, tir.IntImm) else e for e in shape.values]


def with_extents(builder: BlockBuilder, x: Expr) -> Expr:
    """A tensor whose sizes data decide, with new symbols for them; others as they are."""
    ty = getattr(x, "ty", None)
    if not isinstance(ty, relax.TensorType) or ty.ndim < 0 or _extents(x) is not None:
        return x
    made = [tir.Var(f"size_{n}", "int64") for n in range(ty.ndim)]
    return builder.match_cast(builder.emit(x), relax.TensorType(made, ty.dtype))
