"""What a compute returned against the compiler's type inference, before anything is lowered."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ComputeError
from ..graph import OpGraph, Value, type_text
from ..tvm import te
from ..tvm.types import Tensor


def check_types(owner: str, tensors: Sequence[Tensor], values: Sequence[Value]) -> None:
    """Raises ComputeError where they differ; `owner` is the compute in question."""
    if len(tensors) != len(values):
        raise ComputeError(f"{owner}: computes {len(tensors)} outputs, expected {len(values)}")
    for tensor, value in zip(tensors, values, strict=True):
        is_tensor = isinstance(tensor, te.Tensor)
        found = _type(tensor) if is_tensor else f"a {type(tensor).__name__}"
        # In numbers: a symbol's extent has a name in texts.
        if found != type_text([int(extent) for extent in value.shape], value.dtype):
            raise ComputeError(
                f"{owner}: computes {found}, but type inference expects {value.type}"
            )


def check_shapes(composite: str, graph: OpGraph) -> None:
    """Raises ComputeError for an extent that nobody knows: of such a one TE ends the process."""
    for value in (*graph.inputs, *(v for call in graph.ops for v in call.outputs)):
        if None in value.shape:
            text = f"{value.name or 'a value'} is {value.type}; expected extents that are known"
            raise ComputeError(f"composite {composite}: {text}")


def _type(tensor: Tensor) -> str:
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"
