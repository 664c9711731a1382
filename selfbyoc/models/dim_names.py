"""Names of open sizes in ONNX files: equal names are one size, but for what exporters write where
they know none; and names that are sums or products of others, as `past + 1`.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx

    from ..tvm.types import PrimExpr

# Paddle2ONNX writes `?`, and since 1.0 a number for each place, which copies of a graph repeat;
# tf2onnx and ONNX's shape inference `unk__`; ML.NET, keras2onnx and onnxmltools `None`.
_NOBODYS = re.compile(r"\?|None|-1|unk__\d+|(\w+\.)?DynamicDimension\.\d+")
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a // b,
    ast.FloorDiv: lambda a, b: a // b,
}


def name_open_sizes(model: onnx.ModelProto) -> None:
    """Give each size of an input that is open and has no name of its own the name `INPUT_AXIS`;
    a name that is a number is that size.

    What else the file says of such sizes is forgotten: there, one `?` is taken for another.
    """
    dims = [
        (f"{as_identifier(value.name)}_{axis}", dim)
        for value in model.graph.input
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
    ]
    taken = {dim.dim_param for _, dim in dims if not _is_nobodys(dim)}
    for name, dim in dims:
        if dim.dim_param.isdecimal():
            dim.dim_value = int(dim.dim_param)
        elif _is_nobodys(dim):
            dim.dim_param = _free(name, taken)
    for value in (*model.graph.value_info, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if _is_nobodys(dim):
                dim.Clear()


def _is_nobodys(dim: onnx.TensorShapeProto.Dimension) -> bool:
    """Whether a size is open, and nothing says that it is that of another place."""
    if dim.HasField("dim_value"):
        return bool(dim.dim_value < 0)
    return not dim.dim_param or bool(_NOBODYS.fullmatch(dim.dim_param))


def as_identifier(name: str) -> str:
    """A name as a symbol may have it: `batch_size` for `batch-size`."""
    return re.sub(r"\W|^(?=\d)", "_", name)


def _free(name: str, taken: set[str]) -> str:
    """A name like this that nobody has; it is taken then."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def names_of(model: onnx.ModelProto) -> dict[str, ast.expr | None]:
    """The names of the inputs' open sizes, and how those that follow from others are computed.

    That is so where all of an expression's names are sizes: `batch-size` is one name, unless some
    size is `batch` and another `size`.
    """
    dims = [dim for value in model.graph.input for dim in value.type.tensor_type.shape.dim]
    names = dict.fromkeys(dim.dim_param for dim in dims if dim.dim_param)
    trees = {name: _expression(name) for name in names}
    return {
        name: tree if tree is not None and _names(tree) <= names.keys() else None
        for name, tree in trees.items()
    }


def symbols_of(model: onnx.ModelProto) -> list[str]:
    """The names of the inputs' open sizes, without those that follow from others."""
    return [name for name, tree in names_of(model).items() if tree is None]


def with_sizes(name: str, tree: ast.expr | None, sizes: Mapping[str, int]) -> int | str:
    """What an open size of `names_of` is where some are known: a number, or a name."""
    if tree is None:
        return sizes.get(name, name)
    if _names(tree) <= sizes.keys():
        return int(_value(tree, sizes))
    return ast.unparse(_Fixed(sizes).visit(copy.deepcopy(tree)))


def value_of(text: str, sizes: Mapping[str, int]) -> int | None:
    """What `m + n` is at these sizes; None of what is no sum or product of them."""
    tree = _expression(text)
    return None if tree is None or not _names(tree) <= sizes.keys() else int(_value(tree, sizes))


def as_extents(
    model: onnx.ModelProto, symbol: Callable[[str], PrimExpr]
) -> dict[str, list[PrimExpr]]:
    """The shapes of a model's inputs; `symbol` makes their open sizes, of identifiers."""
    taken: set[str] = set()
    names = names_of(model)
    found = {name: symbol(_free(as_identifier(name), taken)) for name in symbols_of(model)}
    found |= {name: _value(tree, found) for name, tree in names.items() if tree is not None}

    def extent(dim: onnx.TensorShapeProto.Dimension, name: str) -> PrimExpr:
        if dim.HasField("dim_value"):
            return dim.dim_value
        return found[dim.dim_param] if dim.dim_param else symbol(_free(name, taken))

    return {
        value.name: [
            extent(dim, f"{as_identifier(value.name)}_{axis}")
            for axis, dim in enumerate(value.type.tensor_type.shape.dim)
        ]
        for value in model.graph.input
        if value.type.tensor_type.HasField("shape")
    }


def _expression(name: str) -> ast.expr | None:
    """A name as sums and products of others and of numbers, if it is such an expression."""
    try:
        tree = ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return tree if isinstance(tree, ast.BinOp) and _is_arithmetic(tree) and _names(tree) else None


def _is_arithmetic(tree: ast.expr) -> bool:
    if isinstance(tree, ast.BinOp):
        parts = (tree.left, tree.right)
        return type(tree.op) in _OPERATIONS and all(map(_is_arithmetic, parts))
    return isinstance(tree, ast.Name) or (
        isinstance(tree, ast.Constant) and type(tree.value) is int
    )


def _names(tree: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _value(tree: ast.expr, sizes: Mapping[str, int]) -> int:
    if isinstance(tree, ast.BinOp):
        return _OPERATIONS[type(tree.op)](_value(tree.left, sizes), _value(tree.right, sizes))
    return sizes[tree.id] if isinstance(tree, ast.Name) else tree.value  # type: ignore[attr-defined]


class _Fixed(ast.NodeTransformer):
    """Names that have a size as this number."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self.sizes[node.id]) if node.id in self.sizes else node
