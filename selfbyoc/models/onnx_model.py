"""ONNX models: reading them, and the `light` ones of the onnx wheel with useful weights."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.files import opened
from ..common.optional import extra
from ..errors import InputError, one_line
from ..graph import OpGraph
from ..ir.generation import ir
from ..partition.generation import ir as partitioner
from ..tvm.types import IRModule
from .generation import tvm_road
from .onnx.beside import with_weights
from .onnx.forms import readable
from .onnx.fused import refuse_missing
from .onnx.sound import check_sound

if TYPE_CHECKING:
    import onnx


def load_onnx(path: str | Path) -> onnx.ModelProto:
    """An ONNX model file with its weights, as it is."""
    onnx = extra("onnx")
    with opened(Path(path)):  # a pipe would wait for its writer, a device has no end
        pass
    try:
        model = onnx.load(str(path), load_external_data=False)
        with_weights(model, Path(path))
    except InputError:
        raise
    except Exception as err:  # protobuf's, the system's, and onnx's for weights beside it
        raise InputError(f"{path} is no ONNX model that can be read: {one_line(err)}") from err
    check_sound(model, f"{path} is no ONNX model that can be read")
    if not model.graph.node and not model.graph.output:
        raise InputError(f"{path} is no ONNX model that can be read: it holds no graph")
    return model


def read_onnx(path: str | Path) -> onnx.ModelProto:
    """An ONNX model file, checked."""
    onnx, model = extra("onnx"), load_onnx(path)
    try:
        onnx.checker.check_model(str(path))  # by path: it asks where external weights lie
    except (TypeError, ValueError, RuntimeError, onnx.checker.ValidationError) as err:
        raise InputError(f"{path} is no ONNX model that can be read: {one_line(err)}") from err
    return model


def import_onnx(
    model: onnx.ModelProto, name: str = "the model", most: Mapping[str, int] = MappingProxyType({})
) -> IRModule:
    """An ONNX model as an IRModule of the TVM generation at hand, its weights as constants. `most`:
    the largest sizes of symbols that somebody promises.

    Raises InputError where TVM's frontend cannot read it, or would read something else.
    """
    model = readable(model, name)
    refuse_missing(model, tvm_road.onnx_ops(), name)
    try:
        with warnings.catch_warnings():  # these would print the names as they are
            warnings.filterwarnings("ignore", "Renaming name")
            return tvm_road.from_onnx(model, most)
    except InputError as err:
        raise InputError(f"{name}: {err}") from err
    except Exception as err:  # TVM's frontends raise errors of many kinds: KeyError for unknown ops
        raise InputError(f"TVM's ONNX frontend cannot import {name}: {one_line(err)}") from err


def light_model(name: str, seed: int = 0) -> onnx.ModelProto:
    """`inception_v1`, `squeezenet`, ... from the onnx wheel's test data, with random weights."""
    onnx = extra("onnx")
    folder = Path(onnx.__file__).parent / "backend/test/data/light"
    path = folder / f"light_{name}.onnx"
    if not path.exists():
        known = sorted(p.stem.removeprefix("light_") for p in folder.glob("light_*.onnx"))
        raise InputError(f"{name!r} is no light model of onnx {onnx.__version__}; known: {known}")
    return refill(onnx.load(str(path)), seed)


def refill(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """Replace the weights by seeded random ones that keep the activations near unit size.

    The light models make their weights with ConstantOfShape: with equal weights every channel is
    equal, and neither a wrong layout nor a wrong order of channels would show.
    Returns the model, changed.
    """
    onnx, rng, graph = extra("onnx"), np.random.default_rng(seed), model.graph
    old = {i.name: onnx.numpy_helper.to_array(i) for i in graph.initializer}
    filled = {
        n.output[0]: n for n in graph.node if n.op_type == "ConstantOfShape" and n.input[0] in old
    }
    shapes = {name: tuple(map(int, old[node.input[0]])) for name, node in filled.items()}
    shapes |= {name: a.shape for name, a in old.items() if a.dtype == np.float32}
    roles = _roles(graph)
    weights = {name: _random(rng, shape, roles.get(name, "")) for name, shape in shapes.items()}
    # Shapes that only the removed nodes read go with them.
    kept = {n: a for n, a in old.items() if n not in weights and not _only_reads(graph, n, filled)}
    nodes = [n for n in graph.node if n.output[0] not in filled]
    inputs = [i for i in graph.input if i.name not in old and i.name not in weights]
    arrays = [onnx.numpy_helper.from_array(a, n) for n, a in {**kept, **weights}.items()]
    for field, values in ((graph.node, nodes), (graph.initializer, arrays), (graph.input, inputs)):
        del field[:]
        field.extend(values)
    model.ir_version = max(model.ir_version, 4)  # before 4 an initializer had to be an input too
    onnx.checker.check_model(model)
    return model


def _only_reads(graph: onnx.GraphProto, name: str, filled: dict[str, onnx.NodeProto]) -> bool:
    return all(n.output[0] in filled for n in graph.node if name in n.input)


_RESHAPING = ("Reshape", "Unsqueeze")


def _roles(graph: onnx.GraphProto) -> dict[str, str]:
    """Weight -> what it is to its reader, as `Conv.1`; what only reshapes it is looked through."""
    roles: dict[str, str] = {}
    through = {n.output[0]: n.input[0] for n in graph.node if n.op_type in _RESHAPING}
    summed = {name for n in graph.node if n.op_type in ("Sum", "Add") for name in n.input}
    for node in graph.node:
        is_branch = node.op_type == "BatchNormalization" and node.output[0] in summed
        kind = "Branch" if is_branch else node.op_type
        for position, name in enumerate(node.input):
            roles[through.get(name, name)] = f"{kind}.{position}"
    return roles


def _random(rng: np.random.Generator, shape: tuple[int, ...], role: str) -> np.ndarray:
    values = rng.standard_normal(shape)
    if role in ("BatchNormalization.4", "Branch.4"):  # variances
        values = 0.5 + rng.random(shape)
    elif role in ("BatchNormalization.1", "Mul.1"):  # scales
        values = 1 + 0.1 * values
    elif role == "Branch.1":  # of what is added to: sixteen sums of equals grow to thousands
        values = 0.5 + 0.1 * values
    elif role == "Conv.1":
        values *= math.sqrt(
            2 / math.prod(shape[1:])
        )  # He: a ReLU halves the variance that it lets through
    elif role in ("Gemm.1", "MatMul.1"):
        values *= math.sqrt(1 / max(shape[-2:]))
    else:
        values *= 0.1
    return values.astype(np.float32)


def graph_of(mod: IRModule) -> OpGraph:
    """The graph that partitioning a module sees, with the same names of ops."""
    return ir.read_at_sizes(partitioner.prepare(mod, None)["main"])


def random_inputs(inputs: Iterable[tuple[str, Any, str]], seed: int = 1) -> dict[str, np.ndarray]:
    """Seeded inputs for a model of these (name, shape, dtype)."""
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(dtype) for name, shape, dtype in inputs}
