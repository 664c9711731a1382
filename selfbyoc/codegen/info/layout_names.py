"""Which attributes name the layouts of an op's tensors."""

from __future__ import annotations

from ...tvm.types import Attrs

# Kind -> the attributes that name the layouts of its inputs and outputs; other kinds define none.
_NAMED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "adaptive_avg_pool2d": (("layout",), ("layout",)),
    "avg_pool2d": (("layout",), ("layout",)),
    "conv1d_transpose": (("data_layout", "kernel_layout"), ("out_layout",)),
    "conv2d": (("data_layout", "kernel_layout"), ("out_layout",)),
    "conv2d_transpose": (("data_layout", "kernel_layout"), ("out_layout",)),
    "global_avg_pool2d": (("layout",), ("layout",)),
    "max_pool2d": (("layout",), ("layout",)),
    "resize2d": (("layout",), ("layout",)),
}


def layout_attrs(kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The attributes that name the layouts of an op's inputs, and of its outputs."""
    return _NAMED.get(kind, ((), ()))


def layouts_of(kind: str, attrs: Attrs, count: int, side: str) -> tuple[str | None, ...]:
    """The layout of each input or output by the op's own attributes; None where it defines none."""
    names = layout_attrs(kind)[side == "outputs"]
    found = [attrs.get(name) for name in names][:count]
    return (*found, *(None for _ in range(count - len(found))))
