"""What PyTorch itself runs, and why: one FallbackWarning for a graph."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

from ...errors import FallbackWarning
from ...models.torch_checks import draws

NEEDS_GRADIENTS = (
    "its results need gradients, and only inference is compiled; call the model under "
    "torch.inference_mode() or torch.no_grad()"
)
_FAST_PATH = "; torch.backends.mha.set_fastpath_enabled(False) gives ops that can be compiled"
_HINTS = dict.fromkeys(
    ("_transformer_encoder_layer_fwd", "_native_multi_head_attention"), _FAST_PATH
)
_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
_INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool)
Compiled: TypeAlias = Callable[..., Sequence[torch.Tensor | int]]
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64, *_INTEGERS)


def eagerly(module: torch.fx.GraphModule, reason: str) -> Compiled:
    """The graph as PyTorch runs it, after the warning."""
    warn_of(module, f"PyTorch runs it: {reason}")
    run: Compiled = module.forward
    return run


def warn_of(module: torch.fx.GraphModule, text: str) -> None:
    """A FallbackWarning that says which graph it is of, and what helps."""
    hint = next((hint for op, hint in _HINTS.items() if op in text), "")
    warnings.warn(FallbackWarning(f"{described(module)}: {text}{hint}"), stacklevel=3)


def boxed(compute: Compiled) -> Compiled:
    """By aot_autograd's convention: of one list, which is emptied."""

    def call(arguments: list[torch.Tensor]) -> Sequence[torch.Tensor | int]:
        given = tuple(arguments)
        arguments.clear()
        return compute(*given)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def described(module: torch.fx.GraphModule) -> str:
    """`torch.compile: a graph of 3 ops from forward, model.py:12`."""
    calls = [n for n in module.graph.nodes if n.op.startswith("call_")]
    traces = [str(n.meta.get("stack_trace") or "") for n in calls]
    lines = [re.findall(r'File "(.*)", line (\d+), in (\w+)', trace) for trace in traces]
    place = next((found[-1] for found in lines if found), None)
    where = f" from {place[2]}, {place[0]}:{place[1]}" if place else ""
    return f"torch.compile: a graph of {len(calls)} op{'s' * (len(calls) != 1)}{where}"


def why_not(module: torch.fx.GraphModule, inputs: Sequence[object]) -> str:
    """Why nothing of a graph is compiled; empty where it may be."""
    for value in inputs:
        if isinstance(value, torch.Tensor) and (reason := _foreign(value)):
            return reason
        if not isinstance(value, (torch.Tensor, int, torch.SymInt)):
            return f"an input is no tensor and no size, but {type(value).__name__}"
    last = next(n for n in reversed(module.graph.nodes) if n.op == "output")
    results = [n.meta.get("example_value") for n in last.all_input_nodes]
    if any(isinstance(r, torch.Tensor) and r.requires_grad for r in results):
        return NEEDS_GRADIENTS
    return ""


def _foreign(value: torch.Tensor) -> str:
    """What about a tensor is not that of a plain one in the CPU's memory."""
    if value.device.type != "cpu":
        return f"an input is on {value.device}; expected the CPU"
    if type(value) not in _PLAIN and not isinstance(value, torch._subclasses.FakeTensor):
        return f"an input is a {type(value).__name__}; expected a plain tensor"
    if value.layout != torch.strided or value.is_quantized or value.is_nested:
        return f"an input is of layout {value.layout}; expected dense numbers"
    if value.is_neg():
        return "an input is a view that negates its memory"
    if value.dtype not in DTYPES:
        return f"an input is {value.dtype}; expected {_names(DTYPES)}"
    return ""


def _names(dtypes: Sequence[torch.dtype]) -> str:
    return ", ".join(str(d).removeprefix("torch.") for d in dtypes)


def random_ops(module: torch.fx.GraphModule) -> dict[torch.fx.Node, str]:
    """The ops of a functional graph that draw random numbers, and what is wrong with that."""
    why = "it draws random numbers, which TVM would draw once, or not at all"
    return {node: why for node in module.graph.nodes if draws(node)}
