"""ONNX models that come in the onnx package."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .model import Model, NotHere


def light() -> list[Model]:
    """The classics, with useful weights in place of the constant ones."""
    spec = find_spec("onnx")
    if spec is None or spec.origin is None:
        raise NotHere("onnx is not installed")
    folder = Path(spec.origin).parent / "backend" / "test" / "data" / "light"
    paths = sorted(folder.glob("light_*.onnx"))
    if not paths:
        raise NotHere("this onnx holds no light models")
    names = [path.stem.removeprefix("light_") for path in paths]
    return [Model(name, "onnx light", partial(_light, name), is_onnx=True) for name in names]


def _light(name: str, size: str) -> Any:
    from selfbyoc.models.onnx_model import light_model

    return _without_softmax(light_model(name))


def _without_softmax(model: Any) -> Any:
    """Scores, not probabilities: with random weights one class takes all, whatever the picture."""
    last, (output,) = model.graph.node[-1], model.graph.output
    if last.op_type == "Softmax" and list(last.output) == [output.name]:
        output.name = last.input[0]
        model.graph.node.remove(last)
    return model
