"""Rule of canonicalisation: transposes one after another, as PyTorch writes views, are one."""

from __future__ import annotations

from ...graph import OpCall
from .rewriter import Rewrite, Rewriter, absorb

_PRODUCTS = ("batch_matmul", "matmul")


def transposed_twice(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """transpose(transpose(x)). Where both change nothing, the result is read away as well."""
    if call.kind != "transpose" or not call.sources:
        return None
    before = rw.producer(call.inputs[0], "transpose")
    if before is None or not before.sources or not rw.only_reader(call.inputs[0]):
        return None
    if _is_products(rw, call):
        return None
    axes = tuple(before.attrs["axes"][axis] for axis in call.attrs["axes"])
    attrs = {**call.attrs, "axes": axes}
    return [absorb(call, [before], inputs=before.inputs, attrs=attrs)], [before]


def _is_products(rw: Rewriter, call: OpCall) -> bool:
    """Whether it turns the matrices of a product, which takes it in itself (`dense` does not)."""
    ndim = call.inputs[0].ndim
    swap = (*range(ndim - 2), ndim - 1, ndim - 2)
    readers = rw.graph.users(call.outputs[0])
    is_read_so = bool(readers) and all(r.kind in _PRODUCTS for r in readers)
    return tuple(call.attrs["axes"]) == swap and is_read_so
