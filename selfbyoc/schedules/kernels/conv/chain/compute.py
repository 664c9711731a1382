"""conv2d-relu-conv2d-relu melted by blocks of rows, or stage by stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .....codegen.info.ops import Ops, OpView
from .....tvm import te, tir
from .....tvm.types import PrimExpr, Tensor
from ....steps.tensors import extents, split_index
from ..form import Conv2d, in_floats
from ..kernel import convolution
from ..lanes import lane_of, reader
from ..pixels.compute import product
from ..plan import ConvPlans
from ..staged import StagedStages
from .plan import ChainPlan, Melted


@dataclass(frozen=True)
class MeltedStages:
    """The stages of a melted pair: tensors, and while scheduling their blocks."""

    tiles: Tensor  # of the first convolution, by blocks of rows of the second one
    between: Tensor  # a block of the padded intermediate
    second: Tensor  # tiles of the second convolution
    result: Tensor
    copy: Tensor | None = None  # the padded rows of the image
    floats_1: Tensor | None = None  # of weights of halves
    floats_2: Tensor | None = None


def compute(
    x: Tensor,
    w1: Tensor,
    w2: Tensor,
    ops: Ops,
    plan: ChainPlan,
    b1: Tensor | None = None,
    b2: Tensor | None = None,
) -> MeltedStages | StagedStages:
    """The whole composite."""
    if isinstance(plan, ConvPlans):
        return _staged(x, (w1, w2), (b1, b2), ops, plan)
    return _melted(x, (w1, w2), (b1, b2), ops, plan)


def _relu(value: PrimExpr, bias: Tensor | None, channel: PrimExpr) -> PrimExpr:
    value = value if bias is None else value + bias(channel)
    return tir.Max(value, tir.const(0, "float32"))


def _staged(
    x: Tensor,
    weights: tuple[Tensor, ...],
    biases: Sequence[Tensor | None],
    ops: Ops,
    plans: ConvPlans,
) -> StagedStages:
    """One convolution after the other."""
    found = {}
    names = ("relu", "relu_1")
    for conv, weight, bias, name in zip(
        (ops.conv2d, ops.conv2d_1), weights, biases, names, strict=True
    ):
        asked = Conv2d(x, weight, conv.attrs, conv.outputs[0][0], conv.name)
        made = convolution(asked, plans.of(conv.name))
        found[conv.name] = made
        x = _stage(made.result, bias, name)
    return StagedStages(x, found)


def _stage(y: Tensor, bias: Tensor | None, name: str) -> Tensor:
    return te.compute(y.shape, lambda n, c, h, w: _relu(y(n, c, h, w), bias, c), name=name)


def _melted(
    x: Tensor, weights: tuple[Tensor, ...], biases: Sequence[Tensor | None], ops: Ops, m: Melted
) -> MeltedStages:
    """Both convolutions by blocks of the second one's rows; the block's number is an axis."""
    zero, p, first = tir.const(0, "float32"), m.second.lanes, m.first.lanes
    (w1, floats_1), (w2, floats_2) = (
        in_floats(w, f"{name}_floats")
        for w, name in zip(weights, ("conv2d", "conv2d_1"), strict=True)
    )
    blocks, *_, rows1 = extents(w1)
    batch = ops.conv2d_1.outputs[0][0][0]
    hidden, (top, left) = ops.conv2d.outputs[0][0], ops.conv2d_1.attrs["padding"][:2]
    read, copy = reader(x, first, ops.conv2d.attrs, zero, "conv2d")
    term = product(read, w1, 1, hidden[1])

    def row_of(chunk: PrimExpr, q: PrimExpr) -> PrimExpr:
        return chunk * p.rows + q - top

    def tile(
        n: PrimExpr,
        chunk: PrimExpr,
        q: PrimExpr,
        b: PrimExpr,
        r: PrimExpr,
        t: PrimExpr,
        lane: PrimExpr,
    ) -> PrimExpr:
        # Rows outside of the intermediate repeat its border; what is computed there is not read.
        row = tir.Max(tir.Min(row_of(chunk, q), hidden[2] - 1), 0)
        return term(n, b, r, row * first.pitch + t * first.lanes + lane)

    shape = (batch, p.chunks, m.rows, blocks, rows1, first.tiles, first.lanes)
    tiles = te.compute(shape, tile, name="conv2d_tiles")

    def between(n: PrimExpr, chunk: PrimExpr, c: PrimExpr, lane: PrimExpr) -> PrimExpr:
        q, column = split_index(lane, p.pitch)
        row, column = row_of(chunk, q), column - left
        inside = tir.all(row >= 0, row < hidden[2], column >= 0, column < hidden[3], q < m.rows)
        value = tiles(n, chunk, q, *split_index(c, rows1), *split_index(column, first.lanes))
        return tir.if_then_else(inside, _relu(value, biases[0], c), zero)

    block = te.compute((batch, p.chunks, hidden[1], m.lanes), between, name="conv2d_1_pad")
    second, result = _second(block, w2, m, ops.conv2d_1, biases[1])
    return MeltedStages(tiles, block, second, result, copy, floats_1, floats_2)


def _second(
    block: Tensor, w2: Tensor, m: Melted, conv: OpView, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The second convolution on blocks of its input, and its relu."""
    p, (batch, channels, height, width) = m.second.lanes, conv.outputs[0][0]
    blocks, *_, rows = extents(w2)
    dilation = conv.attrs["dilation"]

    def read(n: PrimExpr, c: PrimExpr, at: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
        chunk, lane = at
        return block(n, chunk, c, lane + y * (dilation[0] * p.pitch) + z * dilation[1])

    term = product(read, w2, 1, channels)
    tiles = te.compute(
        (batch, p.chunks, blocks, rows, p.tiles, p.lanes),
        lambda n, chunk, b, r, t, lane: term(n, b, r, (chunk, t * p.lanes + lane)),
        name="conv2d_1_tiles",
    )

    def element(n: PrimExpr, o: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
        where = (tir.floordiv(y, p.rows), *split_index(o, rows))
        return _relu(tiles(n, *where, *lane_of(p, y, z)), bias, o)

    return tiles, te.compute((batch, channels, height, width), element, name="relu_1")
