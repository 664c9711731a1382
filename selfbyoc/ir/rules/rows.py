"""Rules of canonicalisation: products whose rows or batches importers merge before and split after.

PyTorch takes `linear` of [2, 16, 64] apart into reshape to [32, 64], dense, bias and reshape to
[2, 16, 192]; and attention's products likewise. A dense layer and a batch_matmul take any number of
leading axes, so the two reshapes say nothing.
"""

from __future__ import annotations

from dataclasses import replace

from ...graph import OpCall, Value
from .rewriter import Rewrite, Rewriter, absorb


def merged_rows(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """A reshape that splits what another one merged, with one product between them."""
    last = rw.producer(call.inputs[0]) if call.kind == "reshape" and call.sources else None
    if last is None or not rw.only_reader(call.inputs[0]):
        return None
    if last.kind == "batch_matmul":
        return _batches(rw, last, call)
    if last.kind == "dense":
        return _rows(rw, last, None, call)
    product = rw.producer(last.inputs[0], "dense") if last.kind == "bias_add" else None
    if product is None or not rw.only_reader(product.outputs[0]):
        return None
    return _rows(rw, product, last, call)


def _merging(rw: Rewriter, value: Value, kept: int) -> OpCall | None:
    """The reshape that computes the value and left its last axes as they were."""
    found = rw.producer(value, "reshape")
    if found is None or not found.sources or not rw.only_reader(value):
        return None
    before = found.inputs[0]
    static = before.is_static and value.is_static and before.ndim >= kept
    return found if static and before.shape[-kept:] == value.shape[-kept:] else None


def _rows(rw: Rewriter, product: OpCall, bias: OpCall | None, splitting: OpCall) -> Rewrite | None:
    merging = _merging(rw, product.inputs[0], 1)
    if merging is None:
        return None
    x, units = merging.inputs[0], product.outputs[0].shape[-1]
    (out,) = splitting.outputs
    if x.ndim < 2 or out.shape != (*x.shape[:-1], units):
        return None
    inputs = (x, *product.inputs[1:])
    if bias is None:
        done = replace(
            absorb(splitting, [merging, product]),
            kind="dense", inputs=inputs, attrs=product.attrs, name=product.name,
        )  # fmt: skip
        return [done], [merging, product]
    ndim = bias.outputs[0].ndim
    if bias.attrs["axis"] % ndim != ndim - 1:
        return None
    # The IR has no value of the dense layer with these axes: the two are cut out together.
    tie = object()
    wide = replace(product.outputs[0], shape=out.shape)
    dense = absorb(product, [merging], inputs=inputs, outputs=(wide,), tie=tie)
    added = replace(
        absorb(splitting, [bias]),
        kind="bias_add", inputs=(wide, bias.inputs[1]), attrs={"axis": out.ndim - 1}, tie=tie,
    )  # fmt: skip
    return [dense, added], [merging, product, bias]


def _batches(rw: Rewriter, product: OpCall, splitting: OpCall) -> Rewrite | None:
    merging = [_merging(rw, value, 2) for value in product.inputs]
    found = [m for m in merging if m is not None]
    if len(found) < 2 or found[0] is found[1]:
        return None
    a, b = (m.inputs[0] for m in found)
    wanted = (*a.shape[:-2], *product.outputs[0].shape[-2:])
    if a.shape[:-2] != b.shape[:-2] or splitting.outputs[0].shape != wanted:
        return None
    done = replace(
        absorb(splitting, [*found, product]),
        kind="batch_matmul", inputs=(a, b), attrs=product.attrs,
    )  # fmt: skip
    return [done], [*found, product]
