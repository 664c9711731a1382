"""Ops whose results have open sizes, and these sizes by the names of their `torch.export.Dim`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm import relax

from ....ir.relax.symbols import ranges, with_ranges
from ....ir.symbols import Range
from ....tvm import tir, tvm
from ....tvm.types import Expr, Function
from ..copies import tiled
from .importer import is_open
from .multiples import NO_PROMISE
from .node import Importing, Shape, argument

if TYPE_CHECKING:
    import torch


def with_names_of_sizes(mod: tvm.IRModule, program: torch.export.ExportedProgram) -> tvm.IRModule:
    """The module whose sizes are called as the user calls them, `batch` and not `s31`.

    The program alone does not say; the environment that it was traced in does, as long as it is
    there: a program out of a file keeps PyTorch's names.
    """
    mod = _without_least(mod)
    main = mod["main"]
    taken = {str(var.name) for var in relax.analysis.defined_symbolic_vars(main)}
    names = {
        old: new
        for old, new in _names(program).items()
        if old in taken and new.isidentifier() and new not in taken
    }
    if not names:
        return mod
    named = main.bind_symbolic_vars({old: tir.Var(new, "int64") for old, new in names.items()})
    found = {names.get(name, name): each for name, each in ranges(main).items()}
    return _with_main(mod, with_ranges(named, found, {}))


def _without_least(mod: tvm.IRModule) -> tvm.IRModule:
    """The module without the least sizes that nobody promised."""
    main = mod["main"]
    found = {
        name: each if each.least > NO_PROMISE else Range(most=each.most)
        for name, each in ranges(main).items()
    }
    return _with_main(mod, with_ranges(main, found, {}))


def _with_main(mod: tvm.IRModule, main: Function) -> tvm.IRModule:
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), main)
    return done


def _names(program: torch.export.ExportedProgram) -> dict[str, str]:
    """Symbol -> the name of its Dim. PyTorch (2.13) keeps both by where a size is from, for
    its messages.
    """
    for node in program.graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        env = getattr(mode, "shape_env", None)
        if env is not None:
            named = getattr(env, "source_name_to_debug_name", {})
            symbols = getattr(env, "source_to_var", {})
            return {str(symbols[at]): str(name) for at, name in named.items() if at in symbols}
    return {}


def _slice(node: torch.fx.Node, importer: Importing) -> Expr:
    """As many elements of an axis as PyTorch says; TVM's own has `min(n, 512)` where a table of
    512 rows is cut to n.
    """
    x, axis = importer.env[node.args[0]], argument(node, 1, "dim", 0) % node.meta["val"].ndim
    start, step = argument(node, 2, "start"), argument(node, 4, "step", 1)
    size = importer.extent(node.args[0].meta["val"].shape[axis])
    count = importer.extent(node.meta["val"].shape[axis])
    begin = 0 if start is None else importer.env.get(start, start)
    if step != 1 or size is None or count is None or not is_open(size, count, begin):
        return importer._slice(node)
    if importer.algebra.holds(begin < 0):
        begin = importer.algebra.most(importer.algebra.simplest(size + begin), 0)
    begin = importer.algebra.least(begin, size)
    if isinstance(begin, int) and begin == 0 and importer.algebra.are_equal(count, size):
        return x
    emit, end = importer.block_builder.emit, importer.algebra.simplest(begin + count)
    return emit(relax.op.strided_slice(x, [axis], [begin], [end], [1], assume_inbound=True))


def _repeat(node: torch.fx.Node, importer: Importing) -> Expr:
    """An array several times along each axis, by a number that may be open."""
    builder, x = importer.block_builder, importer.env[node.args[0]]
    times = [importer.env.get(n, n) if not isinstance(n, int) else n for n in node.args[1]]
    shape = importer.extents(node.args[0].meta["val"].shape)
    if shape is None or not is_open(*times):
        return importer._repeat(node)
    return tiled(builder, importer.algebra, x, shape, times)


def _expand(node: torch.fx.Node, importer: Importing) -> Expr:
    """What has the shape already stays as it is: PyTorch writes that before each product."""
    x = importer.env[node.args[0]]
    is_same = _are_equal(importer, _shape(node), _shape(node.args[0]))
    return x if is_same else importer._expand(node)


def _bmm(node: torch.fx.Node, importer: Importing) -> Expr:
    """A product of matrices; one matrix that is there once for each of the batch, as a weight that
    PyTorch expanded, is one matrix.
    """
    x, y = node.args
    matrix = tuple(y.meta["val"].shape[1:])
    once = y
    while str(once.target) in _VIEWS and _are_equal(importer, _shape(once), _shape(once.args[0])):
        once = once.args[0]
    is_expanded = str(once.target) == "aten.expand.default"
    if is_expanded and _are_equal(importer, _shape(once.args[0]), matrix):
        y = once.args[0]
    return importer.block_builder.emit(relax.op.matmul(importer.env[x], importer.env[y]))


def _are_equal(importer: Importing, a: Shape, b: Shape) -> bool:
    """Whether two shapes are one at every size: PyTorch's == asks for the sizes of the example."""
    left, right = importer.extents(a), importer.extents(b)
    if left is None or right is None or len(left) != len(right):
        return False
    return all(map(importer.algebra.are_equal, left, right))


def _shape(node: torch.fx.Node) -> Shape:
    return tuple(node.meta["val"].shape)


_VIEWS = ("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default")
CONVERTERS = {
    "bmm.default": _bmm,
    "expand.default": _expand,
    "repeat.default": _repeat,
    "slice.Tensor": _slice,
}
