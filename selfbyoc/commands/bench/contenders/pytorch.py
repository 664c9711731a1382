"""PyTorch, eager and compiled by inductor, on the same weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ....common.optional import extra
from ..setting import Setting
from .contender import Built, Contender, Inputs
from .torch_graph import graph_module

if TYPE_CHECKING:
    import torch


def module(path: str, threads: int) -> torch.nn.Module:
    """A model as PyTorch has it, on so many threads."""
    torch, model = extra("torch"), extra("onnx").load(path)
    torch.set_num_threads(threads)
    return graph_module(model).eval()


def _built(function: Callable[..., Sequence[torch.Tensor]], inputs: Inputs) -> Built:
    torch = extra("torch")
    last: list[Any] = []
    args = [torch.from_numpy(array) for array in inputs.values()]

    def run() -> None:
        with torch.inference_mode():
            last[:] = function(*args)

    return Built(run, lambda: [tensor.numpy() for tensor in last])


def _eager(path: str, inputs: Inputs, setting: Setting) -> Built:
    return _built(module(path, setting.threads), inputs)


def _inductor(path: str, inputs: Inputs, setting: Setting) -> Built:
    """With freezing, which makes the weights constants, as they are for all others."""
    torch = extra("torch")
    found = _built(torch.compile(module(path, setting.threads), options={"freezing": True}), inputs)
    found.run()  # compiles
    return found


def _zentorch(path: str, inputs: Inputs, setting: Setting) -> Built:
    """AMD's, with ZenDNN's kernels and frozen weights."""
    torch, zentorch = extra("torch"), extra("zentorch")
    compiled = torch.compile(module(path, setting.threads), backend="zentorch")
    found = _built(compiled, inputs)
    with zentorch.freezing_enabled():
        found.run()  # compiles
    return found


TORCH = Contender("torch", _eager, True, ("torch",), ("torch",))
INDUCTOR = Contender("inductor", _inductor, True, ("torch",), ("torch",))
ZENTORCH = Contender("zentorch", _zentorch, True, ("zentorch", "torch"), ("zentorch",))
