"""Pools on their own: TVM's build leaves them serial under Relax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tvm import dtype_of, te, tir
from ...codegen.info.op_info import Ops
from ...codegen.planned import bare
from ...compute.ops import compute_of
from ...language.case import Case
from ...language.composite import Composite, require
from ...language.pattern import op
from ...machine import machine, machine_at_hand
from ..default import schedule as default_schedule
from ..kernels.conv.kernel import schedule as schedule_windows
from ..kernels.conv.lanes import reader
from ..kernels.conv.pixels.compute import PixelStages, by_channel
from ..kernels.conv.pixels.plan import PixelPlan
from ..kernels.conv.plan import ConvPlans, plan_pool
from ..kernels.pool import rows as pool_rows
from ..steps.blocks import facts

_WHY = "parallel over channels, in vectors: rows first, then columns, or pixels as flat lanes"


def _plan(call: Any) -> PixelPlan | None:
    """The plan of a pool over padded rows, if that pays."""
    return plan_pool(next(iter(Ops([bare(call)]))), machine_at_hand())


def max_tiles(ins: Sequence[Any], call: Any) -> Any:
    """NCHW max_pool2d; the padding never wins."""
    (x,) = ins
    p = _plan(call)
    if p is None:
        return compute_of("max_pool2d")(ins, call)
    read, copy = reader(x, p.lanes, call.attrs, tir.min_value(dtype_of(x)), call.name)
    shape, size = call.outputs[0].shape, call.attrs["pool_size"]
    return by_channel(read, te.max, p, shape[:2], size, call.name, copy).result


def avg_tiles(ins: Sequence[Any], call: Any) -> Any:
    """NCHW avg_pool2d over the elements inside the image, or over all of the padding too."""
    (x,) = ins
    a, shape, name = call.attrs, call.outputs[0].shape, f"{call.name}_sum"
    if _is_whole(x, call):
        return _mean_of_image(x, call)
    p = _plan(call)
    if p is None:
        return compute_of("avg_pool2d")(ins, call)
    read, copy = reader(x, p.lanes, a, tir.const(0, dtype_of(x)), name)
    total = by_channel(read, te.sum, p, shape[:2], a["pool_size"], name, copy).result
    counted = _counts(x, call)

    def mean(n: Any, c: Any, y: Any, z: Any) -> Any:
        count = counted(y, 0) * counted(z, 1)
        return total(n, c, y, z) * (tir.const(1, dtype_of(x)) / count.astype(dtype_of(x)))

    return te.compute(shape, mean, name=call.name)


def _is_whole(x: Any, call: Any) -> bool:
    """Whether there is one window, with the whole image in it."""
    pads, size, out = call.attrs["padding"], call.attrs["pool_size"], call.outputs[0].shape
    return all(out[2 + n] == 1 and size[n] - pads[n] >= int(x.shape[2 + n]) for n in (0, 1))


def _mean_of_image(x: Any, call: Any) -> Any:
    """Padding adds nothing, so that an image is summed as it lies (512x14x14: 26.5 us window by
    window, 4.9 so; two cores of Zen 5, Nov 2026).
    """
    dtype, counted = dtype_of(x), _counts(x, call)
    axes = [te.reduce_axis((0, int(x.shape[n])), name=f"r{n}") for n in (2, 3)]
    total = te.compute(
        call.outputs[0].shape,
        lambda n, c, y, z: te.sum(x(n, c, *axes), axis=axes),
        name=f"{call.name}_sum",
    )
    first = tir.const(0, "int32")
    share = tir.const(1, dtype) / (counted(first, 0) * counted(first, 1)).astype(dtype)
    return te.compute(total.shape, lambda *i: total(*i) * share, name=call.name)


def max_pool(ins: Sequence[Any], call: Any) -> Any:
    """NCHW max_pool2d: row by row where that pays, else as flat lanes."""
    (x,), shape = ins, call.outputs[0].shape
    if not pool_rows.chosen(*pool_rows.windows(x.shape, call), call.name):
        return max_tiles(ins, call)
    read = pool_rows.window(x, call, tir.Max, tir.min_value(dtype_of(x)), call.name)
    return te.compute(shape, read, name=call.name)


def avg_pool(ins: Sequence[Any], call: Any) -> Any:
    """NCHW avg_pool2d, likewise; what a window is divided by goes by row and column."""
    (x,), shape = ins, call.outputs[0].shape
    axes = pool_rows.windows(x.shape, call)
    if not pool_rows.chosen(*axes, call.name):
        return avg_tiles(ins, call)
    dtype = dtype_of(x)
    read = pool_rows.window(x, call, lambda a, b: a + b, tir.const(0, dtype), call.name)
    one, counts = tir.const(1, dtype), _counts(x, call)

    def share(at: Any, n: int) -> Any:
        return one / counts(at, n).astype(dtype)

    if not any(axis.is_padded for axis in axes):
        whole = tir.const(1 / (axes[0].size * axes[1].size), dtype)
        return te.compute(shape, lambda *i: read(*i) * whole, name=call.name)
    columns = te.compute(shape[3:], lambda z: share(z, 1), name=f"{call.name}_columns")
    return te.compute(
        shape, lambda n, c, y, z: read(n, c, y, z) * (share(y, 0) * columns(z)), name=call.name
    )


def _counts(x: Any, call: Any) -> Any:
    """How many elements a window is divided by, on axis n: (place of the result, n)."""
    a = call.attrs
    pads = a["padding"] if a["count_include_pad"] else (0, 0, 0, 0)

    def counted(at: Any, n: int) -> Any:
        first = at * a["strides"][n] - a["padding"][n]
        last = tir.Min(first + a["pool_size"][n], int(x.shape[2 + n]) + pads[2 + n])
        return last - tir.Max(first, -pads[n])

    return counted


def _schedule(sch: Any, ops: Any, target: Any) -> None:
    if pool_rows.is_made_of_rows(sch):
        pool_rows.schedule(sch, ops, target)
        return
    (pool,) = ops
    blocks = {block.name: block.block for block in facts(sch)}
    stem = next((n.removesuffix("_tiles") for n in blocks if n.endswith("_tiles")), "")
    found = plan_pool(pool, machine(target)) if stem else None
    if found is None:
        default_schedule(sch, ops, target)
        return
    stages = PixelStages(blocks[f"{stem}_tiles"], blocks[stem], blocks.get(f"{stem}_pad"))
    plans = ConvPlans(((pool.name, found),), machine(target))
    schedule_windows(sch, {pool.name: stages}, plans)


CPU = {"llvm": _schedule, "c": _schedule}


def _float_nchw(match: Any) -> None:
    (pool,) = match.ops
    dtype = pool.inputs[0].dtype
    require(dtype == "float32", f"only float32 is scheduled, found {dtype}")
    layout, dilation = pool.attrs["layout"], pool.attrs.get("dilation", (1, 1))
    require(layout == "NCHW", f"only NCHW is scheduled, found {layout}")
    require(
        pool.kind == "max_pool2d" or tuple(dilation) == (1, 1),
        f"an average over a dilated window is not scheduled, found dilation {dilation}",
    )


def _max(**attrs: Any) -> Any:
    return lambda x: op.max_pool2d(x, **attrs)


def _avg(**attrs: Any) -> Any:
    return lambda x: op.avg_pool2d(x, **attrs)


max_pool2d = Composite(
    "max_pool2d",
    lambda x: op.max_pool2d(x),
    CPU,
    check=_float_nchw,
    compute={"max_pool2d": max_pool},
    why=_WHY,
    cases=(
        Case(
            _max(pool_size=3, strides=2, padding=(0, 0, 1, 1)),
            name="googlenet",
            x=(1, 64, 112, 112),
        ),
        Case(_max(pool_size=3, padding=1), name="same", x=(1, 192, 28, 28)),
        Case(
            _max(pool_size=(2, 3), strides=(2, 1), padding=(1, 0, 0, 2)),
            name="asymmetric",
            x=(2, 5, 13, 11),
        ),
        Case(_max(pool_size=3, strides=2, ceil_mode=True), name="ceil", x=(1, 3, 14, 17)),
    ),
)

avg_pool2d = Composite(
    "avg_pool2d",
    lambda x: op.avg_pool2d(x),
    CPU,
    check=_float_nchw,
    compute={"avg_pool2d": avg_pool},
    why=_WHY,
    cases=(
        Case(_avg(pool_size=3, strides=2, padding=1), name="googlenet", x=(1, 64, 56, 56)),
        Case(
            _avg(pool_size=3, padding=(1, 0, 1, 2), count_include_pad=True),
            name="padded",
            x=(2, 5, 9, 11),
        ),
        Case(_avg(pool_size=7), name="whole", x=(1, 1024, 7, 7)),
        Case(_avg(pool_size=(7, 6), padding=(0, 1, 1, 0)), name="reaching-out", x=(2, 37, 6, 5)),
    ),
)

global_avg_pool2d = Composite(
    "global_avg_pool2d",
    lambda x: op.global_avg_pool2d(x),
    check=_float_nchw,
    why="parallel over channels, vectors along the flat image",
    cases=(
        Case(x=(1, 1024, 7, 7)),
        Case(x=(2, 3, 13, 17)),
        Case(x=(1, 64, 56, 56)),
    ),
)
