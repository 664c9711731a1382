"""How far rounding moves what a mutant gives: ONNX Runtime, with noise behind every op."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ....analysis.verify.rounding import Rounding
from ....common.optional import extra
from ....models.onnx.graph import Graph, attributes
from ....runtime.tolerance import ROUNDOFF
from ..oracle import moved_by_inputs
from .mutant import Array, Mutant
from .protos import replace_all, session

if TYPE_CHECKING:
    import onnx

_STEPS = 4  # roundoffs of the largest number of a value
_SUMS = {op: 16 for op in ("Conv", "ConvTranspose", "Gemm", "MatMul")}  # errors of sums add up


def moved(mutant: Mutant, given: Mapping[str, Array]) -> list[Rounding]:
    """For each output. Inputs move, too; but those that are integers cannot, and what is made of
    them in floats and then in steps has its own roundings.
    """
    exact = session(mutant.model)
    largest = _largest(mutant.proto, given)
    runs: list[Callable[..., list[Array]]] = [exact.run]

    def run(arrays: Mapping[str, Array]) -> list[Array]:
        found = runs[-1](None, dict(arrays))
        runs.append(session(_noisy(mutant.proto, largest, len(runs))).run)
        return found

    return moved_by_inputs(run, given)


def overflows(mutant: Mutant, given: Mapping[str, Array]) -> bool:
    """Whether a float is cast to an integer that cannot hold it: ONNX does not say what that is."""
    casts = [n for n in mutant.proto.graph.node if n.op_type == "Cast"]
    if not casts:
        return False
    largest = _largest(mutant.proto, given)
    largest |= {n: float(np.abs(a).max(initial=0)) for n, a in given.items() if a.dtype.kind == "f"}
    to_dtype = extra("onnx").helper.tensor_dtype_to_np_dtype
    dtypes = [(node.input[0], np.dtype(to_dtype(attributes(node)["to"]))) for node in casts]
    return any(
        dtype.kind in "iu" and largest.get(name, 0) > np.iinfo(dtype).max for name, dtype in dtypes
    )


def _floats(model: onnx.ModelProto) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """The values that ops give, if they are floats of known shape."""
    graph, found = Graph(model), {}
    for name in (name for node in model.graph.node for name in node.output if name):
        shape, dtype = graph.shape(name), graph.dtype(name)
        if shape is not None and dtype is not None and str(dtype) in ROUNDOFF:
            found[name] = (shape, dtype)
    return found


def _largest(model: onnx.ModelProto, given: Mapping[str, Array]) -> dict[str, float]:
    """The largest number of each."""
    names = list(_floats(model))
    copy = type(model)()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    for name in names:
        copy.graph.output.add(name=name)
    if not names:
        return {}
    arrays = session(copy.SerializeToString()).run(None, dict(given))
    pairs = zip(names, arrays, strict=True)
    return {name: float(np.abs(a[np.isfinite(a)]).max(initial=0)) for name, a in pairs}


def _noisy(model: onnx.ModelProto, largest: Mapping[str, float], draw: int) -> bytes:
    onnx, rng = extra("onnx"), np.random.default_rng(draw)
    copy = type(model)()
    copy.CopyFrom(model)
    known, nodes = _floats(model), []
    for node in copy.graph.node:
        after = []
        for n, name in enumerate(node.output):
            if name not in known:
                continue
            shape, dtype = known[name]
            step = _SUMS.get(node.op_type, _STEPS) * ROUNDOFF[str(dtype)] * largest[name]
            noise = np.asarray(step * rng.choice([-1.0, 1.0], shape), dtype)
            exact, by = f"{name}.exact", f"{name}.noise"
            copy.graph.initializer.append(onnx.numpy_helper.from_array(noise, by))
            node.output[n] = exact
            after.append(onnx.helper.make_node("Add", [exact, by], [name]))
        nodes += [node, *after]
    replace_all(copy.graph.node, nodes)
    return bytes(copy.SerializeToString())
