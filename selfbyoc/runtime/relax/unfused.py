"""Relax: what stays by itself where TVM fuses what no composite took."""

from __future__ import annotations

import math
from typing import Any

from tvm import relax

from ...machine import machine_at_hand
from ...tvm import param_buffers, structural_equal, tir, tvm
from ...tvm.types import Expr, PrimFunc

OPAQUE = 8  # TOpPattern.kOpaque
SCHEDULED = ("tirx.is_scheduled", "tir.is_scheduled")
MANY_SLICES = 8  # of one value: steps of a recurrent network


def is_scheduled(func: PrimFunc) -> bool:
    """Whether somebody says that a PrimFunc has its schedule."""
    return func.attrs is not None and any(func.attrs.get(name) for name in SCHEDULED)


@tvm.transform.module_pass(opt_level=0, name="OpaqueOnes")
def opaque_ones(mod: tvm.IRModule, _: object) -> tvm.IRModule:
    """What somebody scheduled is fused with nothing: TVM's fusion would drop that it is. Nor is
    what is computed of sizes alone: FuseTIR (0.27) fails where a shape beside it has the same one.
    """
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    for gv, func in mod.functions.items():
        if isinstance(func, tir.PrimFunc) and (is_scheduled(func) or _is_of_sizes(func)):
            done.update_func(gv, func.with_attr("op_pattern", OPAQUE))
    return done


def _is_of_sizes(func: PrimFunc) -> bool:
    """Whether a result is all that it has of tensors."""
    params = param_buffers(func)
    return len(params) > 1 and sum(hasattr(param, "shape") for param in params) == 1


@tvm.transform.module_pass(opt_level=0, name="SlicesApart")
def slices_apart(mod: tvm.IRModule, _: object) -> tvm.IRModule:
    """What stays by itself, not fused into its readers: many slices of one value, the steps of an
    unrolled recurrent network, so that what is equal but for that slice is one function; and joined
    values whose parts are runs shorter than a vector (4 x 300 channels of 2x2 pixels, batch norm
    and SiLU: 27 us with the concatenation inside, 13 after it; of 16x16 pixels 18 and 23; Zen 5).
    """
    vector = machine_at_hand().lanes("float32")
    slices: dict[Any, list[Any]] = {}
    short: set[Any] = set()

    def visit(node: Expr) -> None:
        name = getattr(node.op, "name", "") if isinstance(node, relax.Call) else ""
        if name != "relax.call_tir":
            return
        if node.args[0].name_hint.startswith("strided_slice"):
            slices.setdefault(node.args[1].fields[0], []).append(node.args[0])
        elif node.args[0].name_hint.startswith("concatenate") and _run(node) < vector:
            short.add(node.args[0])

    for func in mod.functions.values():
        if isinstance(func, relax.Function):
            relax.analysis.post_order_visit(func, visit)
    many = {gv for found in slices.values() if len(found) >= MANY_SLICES for gv in found}
    opaque = {gv: mod[gv].with_attr("op_pattern", OPAQUE) for gv in many | short}
    return tvm.IRModule({**dict(mod.functions.items()), **opaque}, attrs=mod.attrs)


def _run(call: Expr) -> float:
    """Neighbouring elements that come from one part of a joined value; many, where not known."""
    part, whole = (ty.shape.values for ty in (call.args[1].fields[0].ty, call.ty))
    pairs = enumerate(zip(part, whole, strict=True))
    axis = next((n for n, (a, b) in pairs if not structural_equal(a, b)), 0)
    extents = [getattr(extent, "value", math.inf) for extent in part[axis:]]
    return math.prod(extents[1:])
