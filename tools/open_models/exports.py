"""A model with open sizes by the three ways that people have: both ONNX exporters of PyTorch, and
torch.export.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Sequence
from typing import Any

from .catalogue import STATES, Model, inputs

LEGACY, DYNAMO, PROGRAM = WAYS = ("torch.onnx", "torch.onnx, dynamo", "torch.export")
BATCH, SEQUENCE = "batch", "sequence"
MOST = {BATCH: 64}


def module(model: Model, attention: str) -> Any:
    """The module with seeded weights, its inputs by place, its first result."""
    import torch

    torch.manual_seed(0)
    made = model.make(attention).eval()
    for part in made.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = made

        def forward(self, *given: Any) -> Any:
            if model.takes == STATES:
                out = self.inner(input_ids=given[0], encoder_hidden_states=given[1])
            elif len(given) == 2:
                out = self.inner(input_ids=given[0], attention_mask=given[1])
            else:
                out = self.inner(given[0])
            if isinstance(out, torch.Tensor):
                return out
            return getattr(out, "last_hidden_state", out[0])

    return First().eval()


def imported(model: Model, made: Any, way: str, opened: Sequence[str]) -> Any:
    """The model as an IRModule, these of its sizes open."""
    import torch

    import selfbyoc

    given = inputs(model, 2 if BATCH in opened else 1, 11)
    axes = {BATCH: 0, SEQUENCE: 1}
    names = {
        name: {axes[o]: o for o in opened if o == BATCH or name in ("ids", "mask")}
        for name in given
    }
    args = tuple(given.values())
    with torch.no_grad(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        if way == LEGACY:
            return selfbyoc.from_onnx(_by_tracing(made, args, names))
        most = {SEQUENCE: model.longest, **MOST}
        dims = {o: torch.export.Dim(o, min=1, max=most[o]) for o in opened}
        shapes = (tuple({axis: dims[o] for axis, o in at.items()} for at in names.values()),)
        if way == PROGRAM:
            return selfbyoc.from_torch(torch.export.export(made, args, dynamic_shapes=shapes))
        with contextlib.redirect_stderr(io.StringIO()):
            program = torch.onnx.export(
                made, args, input_names=list(names), output_names=["y"], dynamic_shapes=shapes,
                dynamo=True,
            )  # fmt: skip
        return selfbyoc.from_onnx(program.model_proto)


def _by_tracing(made: Any, args: Any, names: Any) -> Any:
    import onnx
    import torch

    file = io.BytesIO()
    torch.onnx.export(
        made, args, file, input_names=list(names), output_names=["y"], dynamic_axes=names,
        opset_version=17, dynamo=False,
    )  # fmt: skip
    return onnx.load_from_string(file.getvalue())
