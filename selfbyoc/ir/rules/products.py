"""Rules of canonicalisation: matrix products as importers write them."""

from __future__ import annotations

from dataclasses import replace

from ...graph import OpCall
from .rewriter import Rewrite, Rewriter, absorb


def dense(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """matmul with a matrix on the right; the weight of `dense` is [units, in]."""
    if call.kind != "matmul" or call.inputs[0].ndim < 2:
        return None
    data, weight = call.inputs
    spread = rw.producer(weight, "broadcast_to")
    if spread is not None and spread.inputs[0].ndim == 2 and rw.read_once(weight):
        # PyTorch repeats the matrix for every batch.
        same = data.is_static and data.shape[:-1] == call.outputs[0].shape[:-1]
        inputs = (data, spread.inputs[0])
        return ([absorb(call, [spread], inputs=inputs)], [spread]) if same else None
    if weight.ndim != 2:
        return None
    attrs = {"out_dtype": call.attrs.get("out_dtype") or call.outputs[0].dtype}
    transposed = rw.producer(weight, "transpose")
    if transposed is not None and rw.read_once(weight):
        done = absorb(
            call, [transposed], kind="dense", inputs=(data, transposed.inputs[0]), attrs=attrs
        )
        return [done], [transposed]
    flipped = replace(weight, shape=weight.shape[::-1], name=f"{weight.name}_t")
    turn = OpCall("transpose", (weight,), {"axes": (1, 0)}, (flipped,))
    return [turn, replace(call, kind="dense", inputs=(data, flipped), attrs=attrs)], []


def repeated_matrix(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """batch_matmul of one matrix repeated for every batch, as Relay's importer writes PyTorch's
    Linear of three axes: the product with the matrix.
    """
    if call.kind != "batch_matmul" or call.attrs["transpose_a"] or call.attrs["transpose_b"]:
        return None
    data, weight = call.inputs
    spread = rw.producer(weight, "broadcast_to")
    if spread is None or spread.inputs[0].ndim != 2 or not rw.read_once(weight):
        return None
    if not data.is_static or data.shape[:-1] != call.outputs[0].shape[:-1]:
        return None
    attrs = {"out_dtype": call.attrs["out_dtype"]}
    inputs = (data, spread.inputs[0])
    return [absorb(call, [spread], kind="matmul", inputs=inputs, attrs=attrs)], [spread]


def batch_matmul(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """matmul of batches; transposed operands are the next rule's."""
    if call.kind != "matmul" or call.inputs[1].ndim < 3:
        return None
    if call.inputs[0].ndim < 2:
        rw.decline(call, "batch_matmul", f"{call.inputs[0].name} is a vector: it has one axis")
        return None
    attrs = {"transpose_a": False, "transpose_b": False, "out_dtype": call.outputs[0].dtype}
    return [replace(call, kind="batch_matmul", attrs=attrs)], []


def turned_operand(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """batch_matmul of an operand whose last two axes were transposed just before."""
    if call.kind != "batch_matmul":
        return None
    for i, name in enumerate(("transpose_a", "transpose_b")):
        transposed = rw.producer(call.inputs[i], "transpose")
        ndim = call.inputs[i].ndim
        swap = (*range(ndim - 2), ndim - 1, ndim - 2)
        if transposed is None or not transposed.sources or not rw.read_once(call.inputs[i]):
            continue
        if tuple(transposed.attrs["axes"]) == swap:
            inputs = [*call.inputs[:i], transposed.inputs[0], *call.inputs[i + 1 :]]
            attrs = {**call.attrs, name: not call.attrs[name]}
            return [absorb(call, [transposed], inputs=tuple(inputs), attrs=attrs)], [transposed]
    return None
