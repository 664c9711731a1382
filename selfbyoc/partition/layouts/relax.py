"""Relax: which calls are transposes, and main with its ops in other orders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm import relax

from ...graph import OpCall
from ...ir.reader import Written
from ...ir.relax import Constant
from ...ir.relax.rewrite import rewritten as rewritten_main
from ...ir.rewriting import Editor, Made
from ...ops.layout_text import Parts
from ...tvm import tir, tvm
from ...tvm.types import Expr
from ..relax import without_item_calls
from .axes import Order
from .blocks import is_blocked, plain
from .elements import as_ops
from .index_maps import joined_axes, joining, split_axes, splitting
from .rewrite import Rewriter

if TYPE_CHECKING:
    from ...graph import Value


def unsupported(mod: tvm.IRModule) -> str:
    """Why main cannot be rewritten; empty if it can."""
    for block in mod["main"].body.blocks:
        if not isinstance(block, relax.DataflowBlock):
            return "main has bindings outside of dataflow blocks"
        for binding in block.bindings:
            if isinstance(binding, relax.MatchCast):
                return "main holds a Relax MatchCast"
            if isinstance(binding.value, (relax.If, relax.Function)):
                return f"main holds a Relax {type(binding.value).__name__}"
    return ""


def transposed(call: OpCall) -> Order | None:
    """The axes that an op transposes by, if that is what it does."""
    if call.kind == "transpose":
        return tuple(call.attrs["axes"])
    if call.kind != "layout_transform":
        return None
    (expr,) = (s for s in call.sources if isinstance(s, relax.Call))
    both = _layouts(expr.attrs.index_map)
    if both is None or any(map(is_blocked, both)):
        return None
    return tuple(axis for axis, _ in both[1])


def moves(made: Made) -> tuple[Parts, Parts] | None:
    """From which layout to which a layout_transform moves, blocks or not."""
    if made.name != "layout_transform" or made.raw["pad_value"] is not None:
        return None
    return _layouts(made.raw["index_map"])


def _layouts(index_map: tir.IndexMap) -> tuple[Parts, Parts] | None:
    inputs, results = list(index_map.initial_indices), list(index_map.final_indices)
    blocks = split_axes(inputs, results)
    if blocks is not None:
        return plain(len(inputs)), blocks
    blocks = joined_axes(inputs, results)
    return None if blocks is None else (blocks, plain(len(results)))


def moved(to: Editor, x: Expr, source: Parts, target: Parts) -> Expr:
    """A tensor in another layout, of which one is plain."""
    index_map = splitting(target) if not is_blocked(source) else joining(source)
    return to.call("layout_transform", x, index_map)


def raised(mod: tvm.IRModule) -> tuple[tvm.IRModule, int]:
    """The module with the ops that lowered functions on elements are, and how many there were."""
    count = 0

    def op_of(made: Made, to: Editor) -> Expr | None:
        nonlocal count
        if made.name != "call_tir" or len(made.args) != 2 or not to.is_tensor(made.call):
            return None
        args, func = to.fields(made.args[1]) or [made.args[1]], mod[made.args[0]]
        if not isinstance(func, tir.PrimFunc) or not all(map(to.is_tensor, args)):
            return None
        done = as_ops(func, args, to)
        count += done is not None
        return done

    return rewritten_main(mod, op_of), count


def rewritten(mod: tvm.IRModule, written: Written, rewriter: Rewriter) -> tvm.IRModule:
    """The module with main over the values that the rewriter makes."""
    main, rest = mod["main"], {g: f for g, f in mod.functions.items() if g.name_hint != "main"}
    builder = relax.BlockBuilder(tvm.IRModule(rest))
    with builder.function("main", list(main.params), dict(main.attrs or {})):
        new = _New(builder, written, rewriter)
        for param in main.params:
            new.keep(param, param)
        with builder.dataflow():
            for block in main.body.blocks:
                for binding in block.bindings:
                    _visit(binding, new)
            output = builder.emit_output(new.expr(main.body.body))
        builder.emit_func_output(output)
    done = builder.get()
    for name, value in (mod.attrs or {}).items():
        done = done.with_attr(name, value)
    return done


def finished(mod: tvm.IRModule) -> tvm.IRModule:
    """Without what preparing put in, and without what nobody reads."""
    mod = relax.transform.DeadCodeElimination()(without_item_calls(mod))
    return relax.transform.CanonicalizeBindings()(mod)


class _New:
    """The new expression of an old one, its axes as they were."""

    def __init__(self, builder: relax.BlockBuilder, written: Written, rewriter: Rewriter) -> None:
        self.builder, self.written, self.rewriter = builder, written, rewriter
        self.made: dict[Any, Any] = {}

    def keep(self, var: Expr, new: Expr) -> None:
        """A variable that stays what it was, over new inputs."""
        self.made[var], values = new, self.written.values[var]
        if isinstance(var.ty, relax.TensorType):
            self._put(values, [new])
        elif isinstance(var.ty, relax.TupleType) and var in self.written.ops:
            self._put(values, [relax.TupleGetItem(new, i) for i in range(len(values))])

    def _put(self, values: tuple[Value, ...], exprs: list[Expr]) -> None:
        for value, expr in zip(values, exprs, strict=True):
            if not self.rewriter.has(value):
                self.rewriter.put(value, expr)

    def expr(self, old: Expr) -> Expr:
        """An argument."""
        if isinstance(old, relax.Tuple):
            return relax.Tuple([self.expr(field) for field in old.fields])
        if isinstance(old, relax.TupleGetItem):
            return relax.TupleGetItem(self.expr(old.tuple_value), old.index)
        if isinstance(old, Constant):
            return self.rewriter.read(self.written.values[old][0])
        # An open size is a variable too, which stays: that of an arange.
        is_size = isinstance(getattr(old, "ty", None), tvm.ir.PrimType)
        return self._variable(old) if isinstance(old, relax.Var) and not is_size else old

    def _variable(self, var: Expr) -> Expr:
        values = self.written.values[var]
        if isinstance(var.ty, relax.TensorType):
            return self.rewriter.read(values[0])
        if var in self.made:
            return self.made[var]
        return relax.Tuple([self.rewriter.read(value) for value in values])

    def called(self, call: relax.Call, args: list[Expr]) -> Expr:
        """The same op with other tensors; what is no tensor stays (the limits of clip)."""
        tensors = iter(args)
        every = [next(tensors) if isinstance(a.ty, relax.TensorType) else a for a in call.args]
        return self.builder.emit(relax.Call(call.op, every, call.attrs, call.ty_args, call.span))

    def rebuilt(self, value: Expr) -> Expr:
        """What a binding binds, over new inputs."""
        if not isinstance(value, relax.Call):
            return self.expr(value)
        args = [self.expr(arg) for arg in value.args]
        return relax.Call(value.op, args, value.attrs, value.ty_args, value.span)


def _visit(binding: relax.VarBinding, new: _New) -> None:
    rewriter, var, value = new.rewriter, binding.var, binding.value
    call = new.written.ops.get(var) if isinstance(value, relax.Call) else None
    if call is not None and rewriter.is_transpose(call):
        return
    if call is not None and rewriter.is_moved(call):
        rewriter.write(call, lambda args: new.called(value, args))
        return
    values = new.written.values[var]
    if values and not isinstance(value, relax.Tuple) and all(map(rewriter.has, values)):
        return  # an item, or an identity
    new.keep(var, new.builder.emit(new.rebuilt(value), var.name))
