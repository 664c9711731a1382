"""Relay: weights of few bits (simplify/few_bits.py)."""

from __future__ import annotations

from typing import Any

from tvm import relay

from ...ir.relay.emit import constant
from ...ir.relay.register import call_of
from ...ir.relay.walk import postorder, rebuild
from ...tvm import constant_numpy, tvm
from ..few_bits import in_groups, takes
from .exprs import name_of


def with_few_bits(mod: tvm.IRModule, bits: int, group: int) -> tvm.IRModule:
    """The prepared module; constant weights of its dense layers are levels."""
    main, new = mod["main"], dict[Any, Any]()
    for expr in postorder(main.body):
        new[expr] = rebuild(expr, new)
        found = _weight(expr)
        if found is None or not takes(found):
            continue
        made = [constant(array) for array in in_groups(found, bits, group)]
        attrs = {"bits": bits, "group": group}
        floats = call_of("selfbyoc.dequantize_groups", made, attrs, is_list=False)
        new[expr] = relay.Call(expr.op, [new[expr.args[0]], floats], expr.attrs)
    done = tvm.IRModule(dict(mod.functions.items()), mod.type_definitions)
    known = relay.Function(main.params, new[main.body], main.ret_type, main.type_params, main.attrs)
    done.update_func(done.get_global_var("main"), known)
    return relay.transform.InferType()(done)


def _weight(expr: Any) -> Any:
    """[units, depth] of a dense layer's constant; None for any other op."""
    if name_of(expr) != "nn.dense":
        return None
    weight = expr.args[1]
    return constant_numpy(weight) if isinstance(weight, relay.Constant) else None
