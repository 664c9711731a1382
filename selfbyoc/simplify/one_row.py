"""One axis of pixels is an image of one row: convolutions and pools of one axis as those of two,
with the elementwise ops that follow, so that every composite of images is theirs too.

    relu(conv1d(x) + b)  ->  reshape(relu(conv2d(reshape(x)) + reshape(b)))

Only views are added: the reshapes copy nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..ops.attrs import Raw, is_empty, pair, plain
from ..ops.vocabulary import is_declared, is_elementwise_kind, read_as

OF_TWO_AXES = {
    f"nn.{name}1d": f"{name}2d" for name in ("conv", "max_pool", "avg_pool", "adaptive_avg_pool")
}
_PAIRS = ("strides", "dilation", "pool_size", "kernel_size", "output_size")
_ADDED = {f"{of}_layout": "W" for of in ("data", "kernel", "out")} | {"layout": "W"}
NDIM = 3  # of an image of one axis, with batch and channels


@dataclass(frozen=True)
class OneRow:
    """Where the axis of rows, of one, is put: so many axes from the end are after it."""

    after: int

    @classmethod
    def of(cls, layout: str) -> OneRow:
        """Before the columns."""
        return cls(len(layout) - layout.index("W"))

    def put(self, shape: Sequence[int]) -> list[int]:
        """A tensor's shape with that axis; its own where broadcasting adds it."""
        at = len(shape) - self.after
        is_needed = at > 0 or len(shape) == NDIM
        return [*shape[:at], 1, *shape[at:]] if is_needed else list(shape)

    def axis(self, axis: int) -> int:
        """The place of an axis of the image with one axis."""
        at = axis % NDIM
        return at + (at >= NDIM - self.after)


def of_two_axes(name: str, raw: Raw) -> tuple[str, dict[str, Any], OneRow] | None:
    """A window of one axis by its op and attributes -> the function that makes the op of two axes,
    its attributes, and where the rows are. None of others, of blocked layouts, and of an op that a
    user declared.
    """
    if name not in OF_TWO_AXES or is_declared(name):
        return None
    layouts = {key: str(plain(raw[key]) or "") for key in raw if key in _ADDED}
    image = layouts.get("data_layout") or layouts["layout"]
    given = [text for text in layouts.values() if text]
    if any(len(text) != NDIM or "W" not in text for text in given):
        return None
    if layouts.get("out_layout") not in (None, "", image):
        return None
    attrs = {key: _of_two(key, raw[key]) for key in raw if not is_empty(plain(raw[key]))}
    return OF_TWO_AXES[name], attrs, OneRow.of(image)


def _of_two(key: str, value: Any) -> Any:
    if key in _PAIRS:
        return (1, pair(value)[-1])
    if key == "padding":
        left, right = pair(value)
        return (0, left, 0, right)
    return str(plain(value)).replace("W", "HW") if key in _ADDED else plain(value)


def is_elementwise(name: str) -> bool:
    """Whether an op of the TVM at hand computes each element by itself, whatever the axes."""
    return is_elementwise_kind(read_as(name))


def attrs_in_rows(attrs: Mapping[str, Any], row: OneRow) -> dict[str, Any]:
    """Of a bias_add or a batch norm: with the axis among those of two."""
    return {k: row.axis(int(v)) if k == "axis" else v for k, v in attrs.items()}
