"""`torch.compile(model, backend="selfbyoc")`: from dynamo's graph to what computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import RestartAnalysis, ShortenTraceback, SkipFrame
from torch._guards import TracingContext

from ...errors import InputError, UnsupportedTVM, one_line
from ...tvm import GENERATION, tvm
from .eager import NEEDS_GRADIENTS, Compiled, boxed, eagerly, why_not
from .functional import ByPyTorch, CannotRun
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
        return Graph(functional, asked, _written_inputs())

    def forward(functional: torch.fx.GraphModule, _: Sequence[torch.Tensor | int]) -> Compiled:
        eagerly(functional, NEEDS_GRADIENTS)
        return boxed(ByPyTorch(functional))

    # It makes a graph functional: inputs that are written, and results that share memory with an
    # input or each other, are its work before and after ours.
    functional = aot_autograd(
        fw_compiler=forward,
        bw_compiler=lambda module, _: boxed(module.forward),
        inference_compiler=inference,
    )
    try:
        compiled: Callable[..., Any] = functional(module, inputs)
    except (*CONTROL_FLOW, Warning):
        raise
    except Exception as err:  # PyTorch's tracing raises what it likes, of ops that it lacks
        return eagerly(module, f"PyTorch cannot trace it: {one_line(err)}")
    return _or_as_it_is(module, compiled)


def _or_as_it_is(module: torch.fx.GraphModule, compiled: Compiled) -> Compiled:
    """What was compiled; or dynamo's graph, where PyTorch raises of the functional one: it may be
    what the user shall hear, or PyTorch's own fault. Inputs are written after that one is through.
    """
    raised: list[CannotRun] = []

    def call(*given: torch.Tensor | int) -> Sequence[torch.Tensor | int]:
        if not raised:
            try:
                return compiled(*given)
            except CannotRun as err:
                fault = err
        results: Sequence[torch.Tensor | int] = module.forward(*given)
        if not raised:
            raised.append(fault)
            reason = f"PyTorch cannot run what it makes of it: {one_line(fault.__cause__ or fault)}"
            eagerly(module, reason)
        return results

    return call


def _written_inputs() -> frozenset[int]:
    """The inputs of the graph at hand that aot_autograd writes after it."""
    context = TracingContext.try_get()
    known = getattr(context, "fw_metadata", None)
    return frozenset(getattr(known, "mutated_inp_runtime_indices", ()))
