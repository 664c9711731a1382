"""TVM's frontend for torch.export, and what it converts to another op than PyTorch means."""

from __future__ import annotations

from typing import Any

from tvm import relax


def converted(program: Any) -> Any:
    """An exported program as an IRModule, its weights as constants."""
    from tvm.relax.frontend.torch import from_exported_program

    return from_exported_program(program, custom_convert_map=dict(_CONVERTERS))


def _cumsum(node: Any, importer: Any) -> Any:
    """Sums of bools and short integers are int64 in PyTorch. TVM keeps the type of the terms: a sum
    of bools does not compile, and one of int8 overflows.
    """
    x, axis = importer.env[node.args[0]], node.args[1] if len(node.args) > 1 else node.kwargs["dim"]
    wanted = node.meta["val"].dtype
    dtype = importer._convert_data_type(str(wanted), importer.env)
    if node.args[0].meta["val"].dtype != wanted:
        x = importer.block_builder.emit(relax.op.astype(x, dtype))
    return importer.block_builder.emit(relax.op.cumsum(x, axis, dtype))


_CONVERTERS = {"cumsum.default": _cumsum}
