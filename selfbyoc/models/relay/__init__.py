"""Relay: TVM's ONNX frontend, and TVM's own build of the whole model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tvm import relay

from ...errors import InputError
from ...tvm import tvm
from ...tvm.types import Executable, Expr, IRModule, Target
from ..sizes import Asked, asked_range
from ..torch_checks import check_trace, nothing_kept
from .onnx_importer import imported

if TYPE_CHECKING:
    import onnx
    import torch

_OPSET = 18  # the newest that the frontend of 0.17 knows


def from_onnx(model: onnx.ModelProto, most: Mapping[str, int]) -> IRModule:
    """An ONNX model as an IRModule, its weights as constants. There are no names that `most` could
    be of.
    """
    return imported(model)


def onnx_ops() -> frozenset[str]:
    """The ops that the frontend has a converter of."""
    return frozenset(relay.frontend.onnx._get_convert_map(_OPSET))


def default_build(mod: IRModule, target: Target | str) -> Executable:
    """What a user without this library gets: relay.build with TOPI's schedules."""
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(mod, target=target)


def sized(mod: IRModule, shapes: Mapping[str, tuple[int, ...]], where: str) -> IRModule:
    """None: TVM 0.17 has no pass that puts a number for a `relay.Any`."""
    if not shapes:
        return mod
    raise InputError(f"--shape: {where} has the shapes that it was written with")


def limited(mod: IRModule, sizes: Mapping[str, Asked], where: str) -> IRModule:
    """None: what 0.17 does not know when compiling, it computes as data, and it has no name."""
    if not sizes:
        return mod
    text = ", ".join(f"{name}={asked_range(name, asked)}" for name, asked in sizes.items())
    raise InputError(
        f"size: TVM {tvm.__version__} (Relay) has no names for open sizes, so that {where} cannot "
        f"have {text}; expected apache-tvm 0.26 or newer (Relax), or shapes that fix all"
    )


def from_torch(
    module: torch.nn.Module | torch.jit.ScriptFunction, inputs: Sequence[torch.Tensor]
) -> IRModule:
    """A module of PyTorch, traced with these inputs, its weights as constants."""
    import torch

    if not isinstance(module, (torch.nn.Module, torch.jit.ScriptFunction)):
        raise InputError(
            f"module: TVM {tvm.__version__} reads a torch.nn.Module and its inputs, traced; found "
            f"{type(module).__name__}"
        )
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # one op for a layer, which TVM does not know
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tracing, that shapes are fixed
            with nothing_kept(module, inputs):
                traced = torch.jit.trace(module, tuple(inputs), check_trace=False)
            check_trace(traced.inlined_graph)
            given = [
                (f"x{n}", (tuple(x.shape), str(x.dtype).removeprefix("torch.")))
                for n, x in enumerate(inputs)
            ]
            mod, params = relay.frontend.from_pytorch(
                traced, given, custom_convert_map=dict(_CONVERTERS)
            )
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    return mod


def _cumsum(inputs: Sequence[torch.Tensor], types: Sequence[str]) -> Expr:
    """Sums of bools and short integers are int64 in PyTorch. TVM's frontend keeps the type of the
    terms, and finds that two places and two more are one.
    """
    from tvm.relay.frontend.pytorch import _convert_dtype_value

    x, axis, asked = inputs[:3]
    if asked is not None:
        dtype = _convert_dtype_value(asked)
    else:
        dtype = types[0] if types[0].startswith(("float", "bfloat")) else "int64"
    return relay.cumsum(relay.cast(x, dtype), axis=axis, dtype=dtype)


def _logsumexp(inputs: Sequence[torch.Tensor], types: Sequence[str]) -> Expr:
    """With 0 for a largest element that is infinite, as PyTorch has it: TVM's takes it from itself,
    which is NaN.
    """
    x, axis, keeps = inputs[:3]
    peak = relay.max(x, axis, keepdims=True)
    peak = relay.where(relay.isinf(peak), relay.zeros_like(peak), peak)
    logarithm = relay.log(relay.sum(relay.exp(x - peak), axis, keepdims=True)) + peak
    return logarithm if keeps else relay.squeeze(logarithm, axis)


_CONVERTERS = {"aten::cumsum": _cumsum, "aten::logsumexp": _logsumexp}
