"""The ops of a composite as its plan, its compute and its schedule see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...errors import did_you_mean
from ...tvm.types import Block
from .op_record import OpInfo


@dataclass(frozen=True)
class Packing:
    """How an argument comes to a kernel: packed ahead of time (then in this shape; None while the
    plan decides it), or as it is; whether it is a constant of bytes that have 7 bits; the dtype of
    the halves that floats are stored in, and whether a product may be one of that dtype.
    """

    arg: str
    ahead: bool = False
    shape: Sequence[int] | None = None
    seven_bits: bool = False
    held: str = ""
    as_held: bool = False


class Ops:
    """The ops as a schedule sees them: `ops.dense.attrs`, `ops.conv2d_1.block`, or in order by
    iteration. `block` finds a block by its name, or None.
    """

    def __init__(
        self,
        infos: Sequence[OpInfo],
        block: Callable[[str], Block] | None = None,
        operands: Mapping[tuple[str, int], Packing] | None = None,
    ) -> None:
        self._views = {info.name: OpView(info, block) for info in infos}
        self._operands = operands or {}

    def packing(self, op: OpView, index: int) -> Packing:
        """How input `index` of an op comes to the kernel. For plans."""
        return self._operands.get((op.name, index), Packing(""))

    def __getattr__(self, name: str) -> OpView:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._views:
            known = list(self._views)
            meant = did_you_mean(name, known)
            raise AttributeError(f"no op {name!r} in this function; it has {known}{meant}")
        return self._views[name]

    def __contains__(self, name: str) -> bool:
        return name in self._views

    def __iter__(self) -> Iterator[OpView]:
        return iter(self._views.values())

    def of(self, kind: str) -> list[OpView]:
        """The ops of one kind, in order."""
        return [view for view in self if view.kind == kind]


class OpView:
    """One op: its info, and its blocks in the schedule at hand."""

    def __init__(self, info: OpInfo, block: Callable[[str], Block] | None) -> None:
        self.info, self._get = info, block
        self.name, self.kind, self.attrs = info.name, info.kind, info.attrs
        self.inputs, self.outputs = info.inputs, info.outputs
        self.pattern = info.pattern

    @property
    def layout_sensitive(self) -> tuple[str, ...]:
        """The attributes whose meaning depends on a layout."""
        return self.info.layout_sensitive

    @property
    def blocks(self) -> list[Block]:
        """Its blocks that are still there (not inlined), in order."""
        assert self._get is not None, "blocks exist only while scheduling"
        found = map(self._get, self.info.blocks)
        return [block for block in found if block is not None]

    @property
    def block(self) -> Block:
        """The block that computes the op's result."""
        assert self._get is not None, "blocks exist only while scheduling"
        *_, name = self.info.blocks or ("",)
        block = self._get(name)
        if block is None:
            raise AttributeError(f"the result of {self.name} has no block here, or none any more")
        return block

    def __repr__(self) -> str:
        return f"{self.name}{self.attrs} -> {self.outputs}"
