"""Rule of canonicalisation: local response normalisation, which Relax's importer takes apart."""

from __future__ import annotations

from ...graph import OpCall, Value
from ...tvm.types import AttrsNode
from .rewriter import Rewrite, Rewriter, absorb


def local_response(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """x / (bias + alpha * mean of x * x over neighbouring channels) ** beta."""
    if call.kind != "divide":
        return None
    x, norm = call.inputs
    gone: list[OpCall] = []
    value, beta = _by_constant(rw, "power", norm, gone)
    value, bias = _by_constant(rw, "add", value, gone)
    value, alpha = _by_constant(rw, "multiply", value, gone)
    for kind in ("reshape", "nn.avg_pool3d", "reshape", "multiply"):
        found = None if value is None else rw.producer(value, kind)
        if found is None or value is None or not rw.only_reader(value):
            return None
        gone.append(found)
        value = found.inputs[0]
    *_, pool, _, square = gone
    size = _neighbours(pool.attrs, pool.inputs[0], x)
    if size is None or not all(v is x for v in square.inputs):
        return None
    gone.reverse()
    attrs = {"size": size, "axis": 1, "bias": bias, "alpha": alpha, "beta": beta}
    return [absorb(call, gone, kind="lrn", inputs=(x,), attrs=attrs)], gone


def _by_constant(
    rw: Rewriter, kind: str, value: Value | None, gone: list[OpCall]
) -> tuple[Value | None, float]:
    """The tensor and the constant of an op that computes the value; None where it is no such op."""
    call = None if value is None else rw.producer(value, kind)
    if call is None or value is None or not rw.only_reader(value):
        return None, 0.0
    tensor, constant = call.inputs
    if constant.scalar is None:
        return None, 0.0
    gone.append(call)
    return tensor, float(constant.scalar)


def _neighbours(attrs: AttrsNode, image: Value, x: Value) -> int | None:
    """How many channels the mean is over, if the pool is that mean."""
    if x.ndim != 4 or not x.is_static or image.shape != (x.shape[0], 1, *x.shape[1:]):
        return None
    size, *rest = attrs["pool_size"]
    half = size // 2
    plain = (
        rest == [1, 1]
        and size % 2 == 1
        and tuple(attrs["strides"]) == tuple(attrs["dilation"]) == (1, 1, 1)
        and tuple(attrs["padding"]) == (half, 0, 0, half, 0, 0)
        and attrs["count_include_pad"]
        and attrs["layout"] == "NCDHW"
    )
    return int(size) if plain else None
