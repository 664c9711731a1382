"""`torch.compile(model, backend="selfbyoc")`: from dynamo's graph to what computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import RestartAnalysis, ShortenTraceback, SkipFrame
from torch._guards import TracingContext

from ...errors import InputError, UnsupportedTVM, one_line
from ...tvm import GENERATION, tvm
from .eager import NEEDS_GRADIENTS, Compiled, eagerly, random_op, why_not
from .graph import Graph
from .options import options_of

if TYPE_CHECKING:
    import torch

# By these PyTorch has dynamo trace again (so a float that is only a scalar of an op becomes a
# constant), leave out a frame, or end: they are no failures of a graph.
CONTROL_FLOW = (RestartAnalysis, SkipFrame, ShortenTraceback)


def backend(
    module: torch.fx.GraphModule,
    inputs: Sequence[torch.Tensor | int],
    *,
    options: Mapping[str, object] | None = None,
    mode: str | None = None,
) -> Compiled:
    """A graph of dynamo as one that libraries compute; or, with a FallbackWarning that says why,
    itself, which PyTorch runs.
    """
    if GENERATION != "relax":
        raise UnsupportedTVM(
            f"torch.compile needs a TVM with Relax; this is TVM {tvm.__version__}, which reads "
            "traced modules: selfbyoc.from_torch"
        )
    if mode is not None:
        raise InputError(f"mode: expected none, found {mode!r}; this backend takes options")
    asked = options_of(options)
    reason = why_not(module, inputs)
    if reason:
        return eagerly(module, reason)

    def inference(functional: torch.fx.GraphModule, _: Sequence[torch.Tensor | int]) -> Compiled:
        drawn = random_op(functional)
        if drawn:
            return _boxed(eagerly(functional, f"{drawn} draws random numbers"))
        return Graph(functional, asked, _written_inputs())

    def forward(functional: torch.fx.GraphModule, _: Sequence[torch.Tensor | int]) -> Compiled:
        return _boxed(eagerly(functional, NEEDS_GRADIENTS))

    # It makes a graph functional: inputs that are written, and results that share memory with an
    # input or each other, are its work before and after ours.
    functional = aot_autograd(
        fw_compiler=forward,
        bw_compiler=lambda module, _: _boxed(module.forward),
        inference_compiler=inference,
    )
    try:
        compiled: Callable[..., Any] = functional(module, inputs)
    except (*CONTROL_FLOW, Warning):
        raise
    except Exception as err:  # PyTorch's tracing raises what it likes, of ops that it lacks
        return eagerly(module, f"PyTorch cannot trace it: {one_line(err)}")
    return compiled


def _written_inputs() -> frozenset[int]:
    """The inputs of the graph at hand that aot_autograd writes after it."""
    context = TracingContext.try_get()
    known = getattr(context, "fw_metadata", None)
    return frozenset(getattr(known, "mutated_inp_runtime_indices", ()))


def _boxed(compute: Compiled) -> Compiled:
    """By aot_autograd's convention: of one list, which is emptied."""

    def call(arguments: list[torch.Tensor]) -> Sequence[torch.Tensor | int]:
        given = tuple(arguments)
        arguments.clear()
        return compute(*given)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
