"""Relay: which calls are transposes, and main with its ops in other orders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm import relay

from ...graph import OpCall
from ...ir.reader import Written
from ...ir.relay.walk import children, postorder, rebuild
from ...ir.rewriting import Editor, Made
from ...ops.layout_text import Parts, letters_of, parts_of
from ...tvm import tvm
from ...tvm.types import Expr
from .axes import Order
from .blocks import text_of
from .rewrite import Rewriter

if TYPE_CHECKING:
    from ...graph import Value


def unsupported(mod: tvm.IRModule) -> str:
    """Why main cannot be rewritten; empty if it can."""
    kinds = (relay.If, relay.Match, relay.RefCreate)
    found = [type(e).__name__ for e in postorder(mod["main"].body) if isinstance(e, kinds)]
    return f"main holds a Relay {found[0]}" if found else ""


def transposed(call: OpCall) -> Order | None:
    """The axes that an op transposes by, if that is what it does."""
    if call.kind == "transpose":
        return tuple(call.attrs["axes"])
    if call.kind != "layout_transform":
        return None
    (expr,) = (s for s in call.sources if isinstance(s, relay.Call))
    source, target = str(expr.attrs.src_layout), str(expr.attrs.dst_layout)
    if not source.isupper() or not source.isalpha() or sorted(source) != sorted(target):
        return None  # blocks of an axis, such as NCHW8c
    return tuple(map(source.index, target))


def moves(made: Made) -> tuple[Parts, Parts] | None:
    """From which layout to which a layout_transform moves, blocks or not."""
    if made.name != "layout_transform":
        return None
    source, target = str(made.raw["src_layout"]), str(made.raw["dst_layout"])
    letters = letters_of(source if source.isupper() else target)
    before, after = parts_of(source, letters), parts_of(target, letters)
    return None if before is None or after is None else (before, after)


def moved(to: Editor, x: Expr, source: Parts, target: Parts) -> Expr:
    """A tensor in another layout."""
    return to.call("layout_transform", x, text_of(source), text_of(target))


def raised(mod: tvm.IRModule) -> tuple[tvm.IRModule, int]:
    """The module: Relay calls no lowered functions."""
    return mod, 0


def rewritten(mod: tvm.IRModule, written: Written, rewriter: Rewriter) -> tvm.IRModule:
    """The module with main over the values that the rewriter makes."""
    main, new = mod["main"], _New(written, rewriter)
    for param in main.params:
        new.keep(param, param)
    for expr in postorder(main.body):
        _visit(expr, new)
    func = relay.Function(main.params, new[main.body], main.ret_type, main.type_params, main.attrs)
    done = tvm.IRModule(dict(mod.functions.items()), mod.type_definitions)
    done.update_func(done.get_global_var("main"), func)
    return done


def finished(mod: tvm.IRModule) -> tvm.IRModule:
    """The module, typed."""
    return relay.transform.InferType()(mod)


class _New:
    """The new expression of an old one, its axes as they were."""

    def __init__(self, written: Written, rewriter: Rewriter) -> None:
        self.written, self.rewriter = written, rewriter
        self.made: dict[Any, Any] = {}

    def keep(self, expr: Expr, new: Expr) -> None:
        """An expression that stays what it was, over new inputs."""
        self.made[expr], values = new, self.written.values[expr]
        if isinstance(expr.checked_type, relay.TensorType):
            self._put(values, [new])
        elif expr in self.written.ops and not isinstance(expr, relay.Tuple):
            self._put(values, [relay.TupleGetItem(new, i) for i in range(len(values))])

    def _put(self, values: tuple[Value, ...], exprs: list[Expr]) -> None:
        for value, expr in zip(values, exprs, strict=True):
            if not self.rewriter.has(value):
                self.rewriter.put(value, expr)

    def __getitem__(self, expr: Expr) -> Expr:
        values = self.written.values[expr]
        if isinstance(expr.checked_type, relay.TensorType):
            return self.rewriter.read(values[0])
        if expr in self.made:
            return self.made[expr]
        return relay.Tuple([self.rewriter.read(value) for value in values])


def _visit(expr: Expr, new: _New) -> None:
    rewriter, call = new.rewriter, new.written.ops.get(expr)
    if call is not None and rewriter.is_transpose(call):
        return
    if call is not None and rewriter.is_moved(call):
        rewriter.write(call, lambda args: relay.Call(expr.op, args, expr.attrs, None, expr.span))
        return
    if isinstance(expr, relay.TupleGetItem) and all(map(rewriter.has, new.written.values[expr])):
        return
    new.keep(expr, rebuild(expr, {child: new[child] for child in children(expr)}))
