"""Packages of the optional extras, imported where they are needed."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from ..errors import MissingExtra, ToolError
from .probes import ask_python, once

# What packages of machine code are asked before they are imported, and what is right. Others are
# imported, and say themselves what they lack; PyTorch is the user's own, and takes seconds.
_QUESTIONS = {
    "onnxruntime": (
        r"""
import numpy, onnxruntime
model = (  # y = x + x, of 2 float32
    b'\x08\x08:7\n\x10\n\x01x\n\x01x\x12\x01y"\x03Add:\x00\x12\x01gZ\x0f\n\x01x\x12\n\n\x08\x08'
    b'\x01\x12\x04\n\x02\x08\x02b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x02B\x04\n\x00'
    b'\x10\x11'
)
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
print(session.run(None, {"x": numpy.array([1, 20], "float32")})[0])
""",
        r"\[ *2\. +40\.\]",
    ),
    "openvino": (
        """
import numpy, openvino
from openvino import opset8 as op
x = op.parameter([2], numpy.float32, "x")
run = openvino.Core().compile_model(openvino.Model([op.add(x, x)], [x]), "CPU")
print(run([numpy.array([1, 20], "float32")])[0])
""",
        r"\[ *2\. +40\.\]",
    ),
    "pygraphviz": (
        """
import pygraphviz
graph = pygraphviz.AGraph(directed=True)
graph.add_edge("a", "b")
print(graph.draw(format="svg", prog="dot").decode())
""",
        "(?s)<svg.*</svg>",
    ),
    "xgboost": (
        """
import numpy, xgboost
rows = numpy.arange(40, dtype="float32").reshape(20, 2)
trained = xgboost.train({"nthread": 1}, xgboost.DMatrix(rows, rows[:, 0]), 20)
errors = trained.predict(xgboost.DMatrix(rows)) - rows[:, 0]
print("largest error:", round(float(abs(errors).max())))
""",
        r"^largest error: [0-5]\n",  # of 38
    ),
}


def extra(module: str) -> Any:
    """Import a package of an extra. Raises MissingExtra where it is not installed or does not load,
    with how to install it, and ToolError where it does not answer right.
    """
    if why := does_not_serve(module):
        raise ToolError(why)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as err:
        raise MissingExtra(
            f"{module} is missing: pip install {module} (all for the demo: 'selfbyoc[demo]')"
        ) from err
    except ImportError as err:  # pip did its part: a library of the system is missing, or too old
        raise MissingExtra(f"{module} is installed and does not load: {err}") from err


def cannot_use(module: str) -> str:
    """Why a package is of no use here, or ''."""
    try:
        extra(module)
    except (MissingExtra, ToolError) as err:
        return str(err)
    return ""


def is_installed(package: str) -> bool:
    """Whether there is such a package, of use or not."""
    return _place(package) is not None


def folder_of(package: str) -> Path | None:
    """Where a package is, also one without a file that it begins with."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:  # of what it is in
        return None
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


def does_not_serve(package: str) -> str:
    """Why a package that is installed does not serve, or ''; of packages that are not, nothing."""
    place = _place(package)
    if place is None or package not in _QUESTIONS:
        return ""
    code, right = _QUESTIONS[package]
    return once(package, [place], lambda: ask_python(code, right).why_not)


def _place(package: str) -> str | None:
    """The file that a package begins with."""
    try:
        spec = importlib.util.find_spec(package)
    except (ModuleNotFoundError, ValueError):  # an importer refuses; a module that was made by hand
        return None
    return spec.origin if spec is not None else None
