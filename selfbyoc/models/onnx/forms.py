"""What TVM's ONNX frontends do not read, or read as something else than ONNX says: written so that
they read it right, or refused. Found with ONNX's own tests of its ops (docs/onnx.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...errors import InputError, MissingExtra
from . import (
    arithmetic,
    copies,
    counted,
    decoders,
    einsum,
    elementwise,
    few_bits,
    folds,
    fused,
    gathered,
    loops,
    norms,
    parts,
    places,
    qlinear,
    quantized,
    quantized_recurrent,
    recurrent,
    reductions,
    resampling,
    rotary,
    sampling,
    scans,
    spectra,
    training,
    trees,
    windows,
)
from .bodies import Given, as_model, free_names
from .branches import renamed
from .checks import IS_RELAY, why_not
from .claims import TooLarge
from .computing import computed
from .folding import folded
from .graph import Graph, is_of_onnx, nodes, op_name, where
from .inference import inferred

if TYPE_CHECKING:
    import onnx

# What stands for a node, in its place; None: it is read right as it is, or nothing is known that
# would be.
Form = Callable[[Any, Graph], Sequence[Any] | None]
_MODULES = (
    arithmetic, copies, counted, decoders, einsum, elementwise, folds, fused, gathered, loops,
    norms, parts, places, qlinear, quantized, reductions, resampling, rotary, sampling, scans,
    spectra, training, windows,
)  # fmt: skip
FORMS: dict[str, Form] = {op: form for module in _MODULES for op, form in module.FORMS.items()}
# Last of all: nobody but us can compute with what these write.
OURS: dict[str, Form] = {
    op: form
    for module in (few_bits, quantized_recurrent, recurrent, trees)
    for op, form in module.FORMS.items()
}
# Bodies of these are models of their own: a branch is looked at here, a loop's when it is read.
_LATER = frozenset(("If",)) if IS_RELAY else frozenset(("If", "Loop"))
_ROUNDS = 8  # a form may be of ops that have forms


def readable(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model in forms that TVM's frontend reads as ONNX means them; a new one if need be.

    Raises InputError for a node that it would read as something else, by name, op and reason: also
    for one that could not be written otherwise, in a branch or for want of a shape.
    """
    treated: set[tuple[str, str]] = set()
    for _ in range(_ROUNDS):
        changed = _rewritten(model, FORMS, treated)
        if changed is None:
            break
        model = _computed(changed)
    if (layered := _rewritten(model, OURS, treated)) is not None:
        model = _rewritten(layered, FORMS, treated) or layered
        _drop_unread(model)
    model = _with_readable_branches(model, name)
    graph = Graph(model)
    for node in (n for each in model.graph.node for n in _looked_at(each)):
        if reason := is_of_onnx(node) and why_not(node, graph):
            text = f"TVM's ONNX frontend would compute something else: {reason}"
            raise InputError(f"{name}: {where(node.op_type, node.name)}: {text}")
    return model


def _looked_at(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """A node and those inside, but for what is read as a model of its own."""
    yield node
    if node.op_type not in _LATER:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from nodes(inner, _LATER)


def _with_readable_branches(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model with the branches of its Ifs as readable, each as a model of its own; itself where
    there are none.
    """
    if not any(node.op_type == "If" for node in model.graph.node):
        return model
    done = type(model)()
    done.CopyFrom(model)
    graph = Graph(model)
    for node in (node for node in done.graph.node if node.op_type == "If"):
        for attribute in (a for a in node.attribute if a.HasField("g")):
            attribute.g.CopyFrom(_readable_branch(attribute.g, graph, model, name))
    return done


def _readable_branch(
    branch: onnx.GraphProto, graph: Graph, model: onnx.ModelProto, name: str
) -> onnx.GraphProto:
    """What it makes has new names: TVM 0.17 takes values of a branch for those of the graph."""
    free = [n for n in free_names(branch) if graph.dtype_number(n)]
    constants = {n: value for n in free if (value := graph.constant(n)) is not None}
    given = [Given(n, str(graph.dtype(n)), graph.sizes(n)) for n in free if n not in constants]
    inner = as_model(branch, given, constants, model.opset_import)
    with suppress(ValueError, RuntimeError):  # what follows no rule of onnx's has no shape there
        inner = inferred(inner)
    made = readable(inner, name).graph
    done = type(branch)(name=branch.name)
    done.node.extend(made.node)
    done.output.extend(branch.output)
    done.initializer.extend(t for t in made.initializer if t.name not in constants)
    return renamed(done, graph.free_name)


def _rewritten(
    model: onnx.ModelProto, forms: Mapping[str, Form], treated: set[tuple[str, str]]
) -> onnx.ModelProto | None:
    """The model with these forms of its nodes, but of those treated already; None: none has any."""
    if not any(op_name(node) in forms for node in model.graph.node):
        return None
    changed = type(model)()
    changed.CopyFrom(model)
    graph, done, is_new = Graph(changed), list[Any](), False
    for node in changed.graph.node:
        key = (node.op_type, node.output[0] if node.output else "")
        form = forms.get(op_name(node)) if key not in treated else None
        found = form(node, graph) if form is not None else None
        if found is not None:
            treated.add(key)
        is_new |= found is not None
        done += [node] if found is None else found
    if not is_new:
        return None
    copies = [type(node).FromString(node.SerializeToString()) for node in done]
    del changed.graph.node[:]
    changed.graph.node.extend(copies)
    return changed


def _drop_unread(model: onnx.ModelProto) -> None:
    """Weights that others were made of: TVM's frontend reads all, of 4 bits wrongly."""
    read = Graph(model).read
    weights = model.graph.initializer
    for n in reversed([n for n, weight in enumerate(weights) if weight.name not in read]):
        del weights[n]


def _computed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without what depends on constants alone, and with the shapes that follow."""
    try:
        return folded(model)
    except TooLarge:
        raise
    except (InputError, MissingExtra):  # ONNX Runtime does not open it, or is not there
        return computed(model)
