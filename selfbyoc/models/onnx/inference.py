"""ONNX's shape inference, which may end the process: at a Slice of an axis that has less than no
elements, behind a negative Pad or a window that is larger than its image (onnx 1.21 to 1.23,
github.com/onnx/onnx/issues/8481; ONNX Runtime 1.32 has a copy of it); at a window over no image
(onnx 1.18).

A model is therefore looked at in a fork first, 30 ms, unless ONNX Runtime has opened it and it has
no Slice. What has less than no elements is an error of ours, with or without a Slice behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...common.optional import extra
from ...common.probes import ask_beside
from ...errors import InputError
from .claims import TooLarge
from .extents import below_zero
from .graph import nodes, where
from .weights import without_weights

if TYPE_CHECKING:
    import onnx

# Ops at which a process was seen to end, and those that ONNX defines by functions with a Slice.
# Of one If inside another ONNX Runtime 1.32 ends (branches.py).
_MAY_END = frozenset(
    ("AffineGrid", "Attention", "CausalConvWithState", "CenterCropPad", "FlexAttention", "If",
     "LinearAttention", "NegativeLogLikelihoodLoss", "RotaryEmbedding", "Slice",
     "SoftmaxCrossEntropyLoss")
)  # fmt: skip


class BelowZero(InputError):
    """A value of the model would have less than no elements."""


class Ended(InputError):
    """A process ended where it should have answered."""


def inferred(model: onnx.ModelProto, *, is_opened: bool = False, **flags: bool) -> onnx.ModelProto:
    """The model with the shapes that follow, by `onnx.shape_inference.infer_shapes`; a new one.
    Of sizes below 0 that the model itself says, nothing is known: so exporters write open ones.

    is_opened   ONNX Runtime has opened it

    Raises BelowZero for a size below 0 that follows, Ended where inferring ends a process for
    another reason, and what `infer_shapes` raises.
    """
    _forget_sizes_below_zero(model)
    bare, _ = without_weights(model)  # which onnx would write down, and that ends at 2 GB
    if not is_opened or may_end(model):
        _check_that_it_ends_well(bare, flags)
    done = extra("onnx").shape_inference.infer_shapes(bare, **flags)
    del done.graph.input[:], done.graph.initializer[:]
    done.graph.input.extend(model.graph.input)
    done.graph.initializer.extend(model.graph.initializer)
    if found := below_zero(done):
        raise BelowZero(found)
    return done


@contextmanager
def about(name: str) -> Iterator[None]:
    """What is found while shapes are inferred says of which file."""
    try:
        yield
    except (BelowZero, Ended, TooLarge) as err:
        raise InputError(f"{name}: {err}") from err


def may_end(model: onnx.ModelProto) -> bool:
    """Whether inferring shapes may end ONNX Runtime, and onnx too where that opens the model."""
    inside = (node for part in _parts(model) for node in nodes(part))
    return any(node.op_type in _MAY_END for node in inside)


def apart(call: Callable[[], str]) -> str:
    """What a call says, in a fork of this process. Raises Ended where that ends."""
    answer = ask_beside(lambda: print(call(), end=""), "")
    if answer.why_not:
        raise Ended(answer.why_not)
    return answer.printed.strip()


def _parts(model: onnx.ModelProto) -> Iterator[onnx.GraphProto | onnx.FunctionProto]:
    """What has nodes: the graph, and the model's own functions."""
    yield model.graph
    yield from model.functions


def _forget_sizes_below_zero(model: onnx.ModelProto) -> None:
    for graph in _graphs(model):
        for value in (*graph.input, *graph.value_info, *graph.output):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value < 0:
                    dim.Clear()


def _graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The graph, and those of branches and loops, in it and in functions."""
    yield model.graph
    for part in _parts(model):
        for node in nodes(part):
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    yield attribute.g
                yield from attribute.graphs


def _check_that_it_ends_well(bare: onnx.ModelProto, flags: dict[str, bool]) -> None:
    ending = _ending(bare, flags)
    if not ending:
        return
    data = {"data_prop": flags.get("data_prop", False)}
    count, slices = _slices_until_it_ends(bare, data), _slices(bare)
    if not count:
        raise Ended(f"onnx's shape inference does not survive it: {ending}")
    known = extra("onnx").shape_inference.infer_shapes(_with_slices(bare, count - 1), **data)
    last = slices[count - 1]
    name = where("Slice", last.name or last.output[0])
    text = f"{name}: an axis of {last.input[0]!r} would be of a size below 0; expected 0 or more"
    raise BelowZero(below_zero(known, inside=True) or text)


def _ending(bare: onnx.ModelProto, flags: dict[str, bool]) -> str:
    """How inferring ends a process; '' if it does not, whatever it raises."""
    infer = extra("onnx").shape_inference.infer_shapes

    def call() -> str:
        try:
            infer(bare, **flags)
        except Exception:  # of many kinds: who infers in this process meets it again
            return ""
        return ""

    try:
        return apart(call)
    except Ended as err:
        return str(err)


def _slices_until_it_ends(bare: onnx.ModelProto, flags: dict[str, bool]) -> int:
    """The least number of Slices, in the model's order, with which inferring ends the process;
    0 where it does without any.
    """
    fine, ends = -1, len(_slices(bare))
    while ends - fine > 1:
        middle = (fine + ends) // 2
        if _ending(_with_slices(bare, middle), flags):
            ends = middle
        else:
            fine = middle
    return ends


def _slices(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Those since opset 10, whose places are inputs: earlier ones are right."""
    inside = (node for part in _parts(model) for node in nodes(part))
    return [node for node in inside if node.op_type == "Slice" and len(node.input) > 2]


def _with_slices(bare: onnx.ModelProto, count: int) -> onnx.ModelProto:
    """A copy that says of so many of its Slices where they begin: of others nothing follows."""
    copy = type(bare)()
    copy.CopyFrom(bare)
    for node in _slices(copy)[count:]:
        node.input[1] = "selfbyoc.unknown"
    return copy
