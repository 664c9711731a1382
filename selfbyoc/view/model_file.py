"""The model of a command: `MODEL.onnx --shape images=1x3x224x224`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..models.from_onnx import from_onnx
from ..models.shapes import parse_shapes


def add_model(parser: Any, **options: Any) -> None:
    """The arguments that say which model, and of what size."""
    parser.add_argument("model", type=Path, metavar="MODEL.onnx", **options)
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1x3x224x224",
        help="the shape of an input whose sizes are open; may be given again",
    )


def imported(model: Path, shape: Sequence[str]) -> Any:
    """The file as an IRModule."""
    return from_onnx(model, parse_shapes(shape))
