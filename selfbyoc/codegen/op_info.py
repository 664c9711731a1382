"""Op info: the ordered ops of a stacked function, as an attribute and as schedules see them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

OP_INFO = "tefuse.op_info"


@dataclass(frozen=True)
class OpInfo:
    """One op of a stacked function: what it was in the graph, and the names of its blocks, in
    order.
    """

    name: str
    kind: str
    attrs: dict[str, Any]
    inputs: tuple[tuple[tuple[int, ...], str], ...]  # (shape, dtype) of each
    outputs: tuple[tuple[tuple[int, ...], str], ...]
    blocks: tuple[str, ...] = ()


class Ops:
    """The ops as a schedule sees them: `ops.dense.attrs`, `ops.conv2d_1.block`, or in order by
    iteration.
    """

    def __init__(self, infos: Sequence[OpInfo], block: Callable[[str], Any] | None = None) -> None:
        self._views = {info.name: OpView(info, block) for info in infos}

    def __getattr__(self, name: str) -> OpView:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._views:
            raise AttributeError(f"no op {name!r} in this function; it has {list(self._views)}")
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

    def __init__(self, info: OpInfo, block: Callable[[str], Any] | None) -> None:
        self.info, self._get = info, block
        self.name, self.kind, self.attrs = info.name, info.kind, info.attrs
        self.inputs, self.outputs = info.inputs, info.outputs

    @property
    def blocks(self) -> list[Any]:
        """Its blocks that are still there (not inlined), in order."""
        assert self._get is not None, "blocks exist only while scheduling"
        return [self._get(name) for name in self.info.blocks]

    @property
    def block(self) -> Any:
        """The block that computes the op's result."""
        assert self._get is not None, "blocks exist only while scheduling"
        return self._get(self.info.blocks[-1])

    def __repr__(self) -> str:
        return f"{self.name}{self.attrs} -> {self.outputs}"


def with_op_info(func: Any, ops: Sequence[OpInfo]) -> Any:
    """The PrimFunc with its op info: JSON in an attribute, which survives scheduling and
    databases.
    """
    return func.with_attr(OP_INFO, json.dumps([asdict(op) for op in ops]))


def op_info(func: Any) -> tuple[OpInfo, ...]:
    """The ordered ops of a stacked PrimFunc; nothing for a function that we did not stack."""
    if func.attrs is None or OP_INFO not in func.attrs.keys():  # noqa: SIM118 (no Python dict)
        return ()
    return tuple(
        OpInfo(**{name: _tupled(value) for name, value in op.items()})
        for op in json.loads(str(func.attrs[OP_INFO]))
    )


def _tupled(value: Any) -> Any:
    """JSON has lists where there were tuples."""
    if isinstance(value, dict):
        return {name: _tupled(inner) for name, inner in value.items()}
    return tuple(map(_tupled, value)) if isinstance(value, list) else value
