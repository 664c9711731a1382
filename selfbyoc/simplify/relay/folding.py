"""Relay: what reads no input is computed once (`folding`), all of it by one function."""

from __future__ import annotations

import numpy as np
from tvm import relay
from tvm.contrib.graph_executor import GraphModule

from ...ir.relay.emit import constant
from ...ir.relay.rewrite import with_main
from ...ir.relay.walk import children, postorder, rebuild
from ...ops.vocabulary import KINDS
from ...tvm import constant_numpy, make_target, tvm
from ...tvm.as_tvm_lowers import lowering
from ...tvm.types import Expr, Op, Type
from ..folding import Free, joined, or_as_it_was, size_of
from ..halves import stays
from .exprs import array_of, name_of

MOVES = {
    "broadcast_to", "cast", "expand_dims", "layout_transform", "nn.batch_flatten", "reshape",
    "squeeze", "transpose",
}  # fmt: skip
STAY = {form.name for kind in KINDS.values() if not kind.is_folded for form in kind.relay}


@or_as_it_was
def fold(mod: tvm.IRModule) -> tvm.IRModule:
    """The typed module, with constants in place of what can be computed now."""
    main = mod["main"]
    free: dict[Expr, Free] = {}
    for expr in postorder(main.body):
        found = _free(expr, free)
        if found is not None and found.fits(_bytes(expr.checked_type)):
            free[expr] = found
    wanted = _wanted(main.body, free)
    if not wanted:
        return mod
    new = dict(zip(wanted, map(constant, _computed(wanted)), strict=True))
    for expr in postorder(main.body, new):
        new[expr] = rebuild(expr, new)
    return with_main(mod, new[main.body])


def _free(expr: Expr, free: dict[Expr, Free]) -> Free | None:
    """What is known of a value that no input reaches; None of any other."""
    if isinstance(expr, relay.Constant):
        return Free(constant_numpy(expr).nbytes)
    is_call = isinstance(expr, relay.Call)
    if is_call and (not _can_be_called(expr.op) or _is_weight(expr)):
        return None
    if not is_call and not isinstance(expr, (relay.Tuple, relay.TupleGetItem)):
        return None
    parts = [free.get(child) for child in children(expr)]
    if None in parts:
        return None
    return joined((part for part in parts if part), is_call and expr.op.name not in MOVES)


def _can_be_called(op: Op) -> bool:
    """An op that TVM knows how to compute, and that gives the same each time. What quantises stays
    for the kernels to read.
    """
    if not isinstance(op, tvm.ir.Op) or op.name.startswith("qnn.") or op.name in STAY:
        return False
    return op.has_attr("FTVMStrategy") and not _is_true(op, "TOpIsStateful")


def _is_weight(call: Expr) -> bool:
    """Whether it makes floats of a dense layer's halves, which its kernel does."""
    weight = array_of(call.args[0]) if name_of(call) == "cast" else None
    return weight is not None and str(call.attrs.dtype) == "float32" and stays(weight)


def _is_true(op: Op, name: str) -> bool:
    return op.has_attr(name) and bool(op.get_attr(name))


def _bytes(ty: Type) -> int | None:
    if isinstance(ty, relay.TupleType):
        parts = [_bytes(field) for field in ty.fields]
        return None if None in parts else sum(part for part in parts if part is not None)
    if not isinstance(ty, relay.TensorType):
        return None
    if not all(isinstance(extent, tvm.tir.IntImm) for extent in ty.shape):
        return None
    return size_of([int(e) for e in ty.shape], ty.dtype)


def _wanted(body: Expr, free: dict[Expr, Free]) -> list[Expr]:
    """The tensors that are computed now and that something else reads, in order."""
    read = {child for e in postorder(body) if e not in free for child in children(e)}
    return [
        expr
        for expr, found in free.items()
        if (expr in read or expr is body)
        and found.is_computed
        and isinstance(expr.checked_type, relay.TensorType)
    ]


def _computed(wanted: list[Expr]) -> list[np.ndarray]:
    """The values, by one function without parameters. Level 0: TVM's own folding would build each
    op by itself.
    """
    mod = tvm.IRModule.from_expr(relay.Function([], relay.Tuple(wanted)))
    target = make_target({"kind": "llvm", "opt-level": 0})
    with tvm.transform.PassContext(opt_level=0, config=lowering(target)):
        built = relay.build(mod, target)
    module = GraphModule(built["default"](tvm.cpu()))
    module.run()
    return [module.get_output(number).numpy() for number in range(len(wanted))]
