"""The plan of a pool: row by row, the image as it lies, or padded rows as flat lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....codegen.info.ops import Ops, OpView
from ....language.decisions import choose
from ....machine import Machine
from ....tvm import tir
from ....tvm.types import PrimExpr
from ...steps.faults import Faults, outside, uncovered, unlike
from ..conv.pixels.plan import PixelPlan
from ..conv.plan import plan_pool, pool_layer

MOST_TAPS = 8  # terms are written one by one; a larger window is a reduction
LEAST_VECTORS = 2  # vectors of an image; narrower ones without a stride are faster as flat lanes
IMAGES_A_CORE = 4  # as tasks these are even enough; fewer are cut into rows


@dataclass(frozen=True)
class Window:
    """One axis of a pool."""

    extent: int  # of the image
    out: int
    size: int
    stride: int
    dilation: int
    before: int  # padding

    @property
    def reach(self) -> int:
        """From the first to the last tap."""
        return (self.size - 1) * self.dilation

    @property
    def used(self) -> int:
        """Places, padding included, that some window reads."""
        return (self.out - 1) * self.stride + self.reach + 1

    @property
    def is_padded(self) -> bool:
        """Whether a window reads outside the image."""
        return self.before > 0 or self.used > self.extent

    @property
    def is_whole(self) -> bool:
        """Whether there is one window, with the whole image in it."""
        return self.out == 1 and self.size - self.before >= self.extent

    def columns(self, lanes: int) -> int:
        """Places that are computed: whole vectors, if the image has as many."""
        whole = -(-self.used // lanes) * lanes
        return self.used if self.is_padded or whole > self.extent else whole

    def read(self, at: PrimExpr, value: Callable[[PrimExpr], PrimExpr], fill: PrimExpr) -> PrimExpr:
        """`value` at a place that counts from the padding, or `fill` outside; for whole vectors.

        Both sides of a select are computed. Of `at >= 0 and at < extent` TVM's simplifier would
        conclude that the place need not be clamped, and read outside the image; not of "clamped is
        the same".
        """
        if not self.is_padded:
            return value(at)
        at = at - self.before
        near = tir.Min(tir.Max(at, 0), self.extent - 1)
        return tir.Select(near == at, value(near), fill)


@dataclass(frozen=True)
class RowPlan:
    """The rows of a window into one, then along that one."""

    down: Window
    along: Window
    lanes: int  # of a vector
    columns: int  # of a row that are computed
    images: int
    by_image: bool  # a task is an image; else a row of the result

    def __str__(self) -> str:
        task = "an image" if self.by_image else "a row"
        return f"row by row, {self.columns} columns of a row, a task is {task}"

    def faults(self, pool: OpView, cpu: Machine) -> Faults:
        """Of a pool by rows."""
        out = pool.outputs[0][0]
        yield from unlike("windows", (self.down, self.along), windows_of(pool))
        yield from unlike("a vector", self.lanes, cpu.lanes("float32"))
        yield from uncovered("columns", self.along.used, self.columns)
        if not self.along.is_padded:
            yield from outside("columns", self.columns, 1, self.along.extent)
        yield from unlike("images", self.images, out[0] * out[1])


@dataclass(frozen=True)
class WholePlan:
    """One window over the whole image, which is summed as it lies."""

    def __str__(self) -> str:
        return "the image as it lies"


Form = RowPlan | PixelPlan | WholePlan | None


@dataclass(frozen=True)
class PoolPlan:
    """The form of one pool; None is TVM's compute and the default schedule."""

    name: str
    form: Form
    machine: Machine  # for what has no form

    def __str__(self) -> str:
        return "the default schedule" if self.form is None else str(self.form)

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of the form."""
        pool = pool_of(ops)
        if isinstance(self.form, PixelPlan):
            yield from self.form.faults(pool_layer(pool), cpu)
        if isinstance(self.form, RowPlan):
            yield from self.form.faults(pool, cpu)


def plan(ops: Ops, machine: Machine) -> PoolPlan:
    """The plan of a composite with one pool."""
    pool = pool_of(ops)
    return PoolPlan(pool.name, _form(pool, machine), machine)


def pool_of(ops: Ops) -> OpView:
    """The pool among the ops: of levels, their dequantize is beside it."""
    (pool,) = [op for op in ops if op.kind.endswith("_pool2d")]
    return pool


def _form(pool: OpView, machine: Machine) -> Form:
    if pool.kind == "global_avg_pool2d":
        return WholePlan()
    down, along = windows_of(pool)
    fits = down.size <= MOST_TAPS and along.size <= MOST_TAPS and along.out > 1
    # Rows of bytes in as many lanes as floats have: few rows fill a register of 64 (13 to 112 wide,
    # stride 2, Zen 4: 16 lanes are as fast as 64, or twice).
    lanes, whole = machine.lanes("float32"), machine.lanes(pool.inputs[0][1])
    usual = fits and (along.stride > 1 or along.extent >= LEAST_VECTORS * whole)
    if choose(f"{pool.name}.by_rows", (True, False) if fits else (False,), usual):
        images = pool.outputs[0][0][0] * pool.outputs[0][0][1]
        alone = images >= IMAGES_A_CORE * machine.cores
        return RowPlan(down, along, lanes, along.columns(lanes), images, alone)
    if pool.kind == "avg_pool2d" and down.is_whole and along.is_whole:
        return WholePlan()
    return plan_pool(pool, machine)


def windows_of(pool: OpView) -> tuple[Window, Window]:
    """The vertical and the horizontal window of an NCHW pool, an op in a plan."""
    attrs, image, out = pool.attrs, pool.inputs[0][0], pool.outputs[0][0]

    def of(n: int) -> Window:
        size, stride = attrs["pool_size"][n], attrs["strides"][n]
        dilation = tuple(attrs.get("dilation", (1, 1)))[n]
        return Window(image[2 + n], out[2 + n], size, stride, dilation, attrs["padding"][n])

    return of(0), of(1)
