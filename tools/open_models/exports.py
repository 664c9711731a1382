"""A model with open sizes by the three ways that people have: both ONNX exporters of PyTorch, and
torch.export.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from .catalogue import BATCH, HEIGHT, IMAGE, IMAGE_WIDTH, SEQUENCE, TYPED, Model
from .inputs import inputs

LEGACY, DYNAMO, PROGRAM = WAYS = ("torch.onnx", "torch.onnx, dynamo", "torch.export")
MOST = {BATCH: 64}
HALVED = 32  # a side of an image is a multiple of it
OPTIMUM = {BATCH: "batch_size", SEQUENCE: "sequence_length"}  # its names
Axes = Mapping[str, Mapping[int, str]]


def module(model: Model, attention: str) -> Any:
    """The module with seeded weights, its inputs by place, its first result."""
    import torch

    torch.manual_seed(0)
    made = model.make(attention).eval()
    for part in made.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    names = list(inputs(model, {}))

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = made

        def forward(self, *given: Any) -> Any:
            named = dict(zip(names, given, strict=True))
            out = self.inner(**named) if model.is_text else self.inner(*given)
            if isinstance(out, torch.Tensor):
                return out
            return getattr(out, "last_hidden_state", out[0])

    return First().eval()


def imported(model: Model, made: Any, way: str, opened: Sequence[str]) -> Any:
    """The model as an IRModule, these of its sizes open."""
    import torch

    import selfbyoc

    given = inputs(model, {BATCH: 2} if BATCH in opened else {})
    axes = {name: _axes(model, name, opened) for name in given}
    args = tuple(given.values())
    with torch.no_grad(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        if way == LEGACY:
            return selfbyoc.from_onnx(_by_tracing(model, made, args, axes))
        dims = {o: _dim(model, o) for o in opened}
        shapes = (tuple({axis: dims[o] for axis, o in at.items()} for at in axes.values()),)
        if way == PROGRAM:
            return selfbyoc.from_torch(torch.export.export(made, args, dynamic_shapes=shapes))
        with contextlib.redirect_stderr(io.StringIO()):
            program = torch.onnx.export(
                made, args, input_names=list(axes), output_names=["y"], dynamic_shapes=shapes,
                dynamo=True,
            )  # fmt: skip
        return selfbyoc.from_onnx(program.model_proto)


def _axes(model: Model, name: str, opened: Sequence[str]) -> Mapping[int, str]:
    sides = {2: HEIGHT, 3: IMAGE_WIDTH} if model.takes == IMAGE else {}
    text = {1: SEQUENCE} if model.is_text and name != "encoder_hidden_states" else {}
    return {axis: o for axis, o in {0: BATCH, **text, **sides}.items() if o in opened}


def _dim(model: Model, size: str) -> Any:
    """A Dim; PyTorch proves what it joins, so that it has to know of what a side is a multiple."""
    import torch

    if size in (HEIGHT, IMAGE_WIDTH):
        return HALVED * torch.export.Dim(f"{size}_{HALVED}", min=1, max=640 // HALVED)
    most = {SEQUENCE: model.longest, **MOST}
    name = OPTIMUM[size] if model.takes == TYPED else size
    return torch.export.Dim(name, min=1, max=most[size])


def _by_tracing(model: Model, made: Any, args: Any, axes: Axes) -> Any:
    import onnx
    import torch

    results: dict[str, Any] = {"y": {}}
    if model.takes == TYPED:  # optimum names the sizes of results, too
        axes = {name: {axis: OPTIMUM[o] for axis, o in at.items()} for name, at in axes.items()}
        results = {"last_hidden_state": axes["input_ids"]}
    file = io.BytesIO()
    torch.onnx.export(
        made, args, file, input_names=list(axes), output_names=list(results),
        dynamic_axes={**axes, **results}, opset_version=17, dynamo=False,
    )  # fmt: skip
    return onnx.load_from_string(file.getvalue())
