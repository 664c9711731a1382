"""How exact each runtime is on each quantised layer of a model, on the levels that reach it.

    python tools/exactness.py model.int8.onnx ... [--markdown docs/reports/exactness.md]

A layer is what lies between tensors of levels: DequantizeLinear, Conv, Gemm or MatMul, what
follows, QuantizeLinear. It is computed in float64: the levels that the real numbers have. Beside it
stand this package, ONNX's definition in float32 (ONNX Runtime without optimisation) and
ONNX Runtime as people run it, which multiplies bytes by what saturates where the CPU has no VNNI.
Inputs of layers are those of one run of the whole model on seeded inputs. Of whole models the
signal to noise is told, in dB beside the definition: the mean of some inputs, over all outputs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import selfbyoc
from selfbyoc.commands.bench.inputs import inputs_of
from selfbyoc.machine import host

PRODUCTS = ("Conv", "Gemm", "MatMul")
INPUTS = 4  # of a whole model
NAMES = ("ours", "definition in float32", "ONNX Runtime")
Arrays = dict[str, np.ndarray]


@dataclass
class Differences:
    """Of one runtime from the exact levels: how many, and by how much at most."""

    count: int = 0
    most: int = 0
    layers: int = 0  # with a difference of more than one level

    def add(self, found: np.ndarray, exact: np.ndarray) -> None:
        """One layer's."""
        off = np.abs(found.astype("int64") - exact.astype("int64"))
        self.count += int((off > 0).sum())
        self.most = max(self.most, int(off.max()))
        self.layers += bool(off.max() > 1)


@dataclass
class Found:
    """What was compared of one model."""

    model: str
    layers: int = 0
    levels: int = 0
    by_name: dict[str, Differences] = field(
        default_factory=lambda: {name: Differences() for name in NAMES}
    )
    noise: dict[str, float] = field(default_factory=dict)


def layers(model: onnx.ModelProto) -> Iterator[tuple[list[onnx.NodeProto], list[str]]]:
    """The nodes of each layer with a product, the last one first, and its inputs of levels."""
    makers = {name: node for node in model.graph.node for name in node.output}
    constants = {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "QuantizeLinear":
            continue
        inside, inputs = _between(node, makers, constants)
        if any(n.op_type in PRODUCTS for n in inside):
            yield inside, sorted(inputs)


def _between(
    last: onnx.NodeProto, makers: dict[str, onnx.NodeProto], constants: set[str]
) -> tuple[list[onnx.NodeProto], set[str]]:
    """The nodes up to levels that are no constants, and these."""
    inside, inputs, left = [last], set[str](), [last.input[0]]
    while left:
        node = makers.get(left.pop())
        if node is None or node in inside:
            continue
        inside.append(node)
        if node.op_type == "DequantizeLinear":
            inputs |= {node.input[0]} - constants
        else:
            left += [name for name in node.input if name not in constants]
    return inside, inputs


def alone(
    model: onnx.ModelProto, inside: Sequence[onnx.NodeProto], given: Arrays, shape: Sequence[int]
) -> onnx.ModelProto:
    """A layer as a model, whose result has this shape."""
    outputs = {node.output[0] for node in inside}
    nodes = [node for node in model.graph.node if node.output[0] in outputs]
    read = {name for node in nodes for name in node.input}
    constants = [t for t in model.graph.initializer if t.name in read]
    as_value, types = onnx.helper.make_tensor_value_info, onnx.helper.np_dtype_to_tensor_dtype
    zero = next(t for t in constants if t.name == inside[0].input[2])
    inputs = [as_value(name, types(x.dtype), x.shape) for name, x in given.items()]
    result = as_value(inside[0].output[0], zero.data_type, shape)
    graph = onnx.helper.make_graph(nodes, "layer", inputs, [result], constants)
    return onnx.helper.make_model(
        graph, opset_imports=model.opset_import, ir_version=model.ir_version
    )


def in_float64(layer: onnx.ModelProto) -> onnx.ModelProto:
    """The same with scales in float64, up to its levels before they are rounded: what the real
    numbers give, to 53 bits. The last node is left out.
    """
    made = onnx.ModelProto()
    made.CopyFrom(layer)
    makers = {name: node for node in made.graph.node for name in node.output}
    last = makers[made.graph.output[0].name]
    values = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
    nodes, constants = [], dict[str, np.ndarray]()
    for node in made.graph.node:
        if node is last:
            continue
        if node.op_type != "DequantizeLinear":
            nodes.append(node)
            continue
        nodes += _dequantised(node, values, constants)
    del (
        made.graph.node[:],
        made.graph.initializer[:],
        made.graph.output[:],
        made.graph.value_info[:],
    )
    made.graph.node.extend(nodes)
    for name, value in (values | constants).items():
        wide = value.astype("float64") if value.dtype == np.float32 else value
        made.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(wide), name))
    made.graph.output.append(
        onnx.helper.make_tensor_value_info(last.input[0], onnx.TensorProto.DOUBLE, None)
    )
    return made


def _dequantised(node: onnx.NodeProto, values: Arrays, constants: Arrays) -> list[onnx.NodeProto]:
    """(levels - zero) * scale in float64: by nodes, and of constants at once."""
    scale = values[node.input[1]].astype("float64")
    zero = values[node.input[2]].astype("float64") if len(node.input) > 2 else np.zeros_like(scale)
    if node.input[0] in values:
        levels = values[node.input[0]].astype("float64")
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
        if scale.ndim:
            shape = [-1 if n == axis % max(1, levels.ndim) else 1 for n in range(levels.ndim)]
            scale, zero = scale.reshape(shape), zero.reshape(shape)
        constants[node.output[0]] = (levels - zero) * scale
        return []
    name = node.output[0]
    constants |= {f"{name}_scale": scale.reshape(()), f"{name}_zero": zero.reshape(())}
    make = onnx.helper.make_node
    return [
        make("Cast", [node.input[0]], [f"{name}_wide"], to=onnx.TensorProto.DOUBLE),
        make("Sub", [f"{name}_wide", f"{name}_zero"], [f"{name}_off"]),
        make("Mul", [f"{name}_off", f"{name}_scale"], [name]),
    ]


def exact_levels(layer: onnx.ModelProto, given: Arrays) -> np.ndarray:
    """The levels of the real numbers, halves to even."""
    values = {t.name: numpy_helper.to_array(t) for t in layer.graph.initializer}
    output = layer.graph.output[0].name
    last = next(n for n in layer.graph.node if output in n.output)
    (real,) = ReferenceEvaluator(in_float64(layer)).run(None, given)
    scale, zero = values[last.input[1]].astype("float64"), values[last.input[2]]
    limits = np.iinfo(zero.dtype)
    return np.clip(np.rint(real / scale) + zero, limits.min, limits.max).astype(zero.dtype)


Run = Callable[[Arrays], list[np.ndarray]]


def runs(model: onnx.ModelProto) -> dict[str, Run]:
    """What computes a layer or a model, by name."""
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    constants = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in constants]

    def by_onnxruntime(level: onnxruntime.GraphOptimizationLevel) -> Run:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        return lambda given: list(session.run(None, given))

    levels = onnxruntime.GraphOptimizationLevel
    return dict(
        zip(
            NAMES,
            (
                lambda given: library(*(given[name] for name in names)),
                by_onnxruntime(levels.ORT_DISABLE_ALL),
                by_onnxruntime(levels.ORT_ENABLE_ALL),
            ),
            strict=True,
        )
    )


def noise(model: onnx.ModelProto) -> dict[str, float]:
    """Signal to noise of the whole model in dB, by name."""
    _, definition, _ = NAMES
    by_name = runs(model)
    found: dict[str, list[float]] = {name: [] for name in by_name if name != definition}
    for seed in range(1, 1 + INPUTS):
        given = inputs_of(model, seed)
        wanted = by_name[definition](given)
        for name, each in found.items():
            pairs = zip(by_name[name](given), wanted, strict=True)
            sides = [
                (np.sum(np.square(w, dtype="float64")), np.sum((f - w) ** 2.0)) for f, w in pairs
            ]
            signal, off = (float(sum(side)) for side in zip(*sides, strict=True))
            each.append(10 * np.log10(signal / off) if off else np.inf)
    return {name: float(np.mean(each)) for name, each in found.items()}


def compared(path: Path) -> Found:
    """All layers of a model."""
    model = onnx.load(str(path))
    asked = list(layers(model))
    ends = {inside[0].output[0] for inside, _ in asked}
    names = sorted({name for _, inputs in asked for name in inputs} | ends)
    given = inputs_of(model, 0)
    known = {value.name for value in [*model.graph.input, *model.graph.output]}
    told = onnx.ModelProto()
    told.CopyFrom(model)
    added = [name for name in names if name not in known]
    told.graph.output.extend(onnx.ValueInfoProto(name=name) for name in added)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(told.SerializeToString(), options)
    wanted = [value.name for value in told.graph.output]
    reached = given | dict(zip(wanted, session.run(wanted, given), strict=True))
    found = Found(path.stem)
    for inside, inputs in asked:
        own = {name: reached[name] for name in inputs}
        layer = alone(model, inside, own, reached[inside[0].output[0]].shape)
        exact = exact_levels(layer, own)
        found.layers, found.levels = found.layers + 1, found.levels + exact.size
        for name, run in runs(layer).items():
            found.by_name[name].add(run(own)[0], exact)
        print(f"{path.stem}: {found.layers} of {len(asked)}", end="\r", file=sys.stderr)
    found.noise = noise(model)
    return found


def markdown(found: Sequence[Found]) -> str:
    """The table of a report."""
    head = ["model", "layers", "levels"]
    for name in NAMES:
        head += [f"{name}: differ", "at most by"]
    head += [f"{name}: whole model, dB" for name in found[0].noise]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for each in found:
        cells = [each.model, str(each.layers), f"{each.levels:,}"]
        for d in each.by_name.values():
            share = f"{d.count / each.levels:.4%}"
            cells += [f"{d.count:,} ({share})" if d.count else "0", str(d.most)]
        cells += ["equal" if np.isinf(dB) else f"{dB:.1f}" for dB in each.noise.values()]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    told = markdown([compared(path) for path in asked.models])
    text = f"""# Levels of quantised models

Made by `python tools/exactness.py`, which says what is compared. On {host.cpu()}, onnxruntime
{onnxruntime.__version__}; of each runtime how many levels differ from those of the real numbers,
and by how many at most.

{told}
"""
    print(text)
    if asked.markdown:
        asked.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
