"""TVM's frontend for torch.export, and ops that it does not know or gives another type."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tvm import relax

from ....errors import InputError
from ....tvm.types import Expr, IRModule
from ...torch_checks import check_keeps_nothing, check_program
from ..spans import with_spans
from . import (
    images as _relax_torch_images,
)
from . import (
    index as _relax_torch_index,
)
from . import (
    mixed as _relax_torch_mixed,
)
from . import (
    precision as _relax_torch_precision,
)
from . import (
    quantised as _relax_torch_quantised,
)
from . import (
    sizes as _relax_torch_sizes,
)
from .node import Convert, Importing, argument, in_its_type
from .sizes import with_names_of_sizes
from .views import decomposed

if TYPE_CHECKING:
    import torch


def converted(program: torch.export.ExportedProgram, bare: bool) -> IRModule:
    """An exported program as an IRModule, its weights as constants, its modules' names as spans."""
    from .importer import Importer

    check_program(program.graph)
    given = program
    program = decomposed(program)
    check_keeps_nothing(program.graph_signature)
    importer = Importer()  # from_exported_program would keep it for itself
    mod = importer.from_exported_program(
        program,
        keep_params_as_input=False,
        unwrap_unit_return_tuple=bare,
        no_bind_return_tuple=False,
        custom_convert_map=dict(_CONVERTERS),
    )
    mod = with_spans(mod, {v: _name(n) for n, v in importer.env.items() if _is_bound(v)})
    return with_names_of_sizes(mod, given)


def _is_bound(value: object) -> bool:
    return isinstance(value, relax.Var)


def _name(node: torch.fx.Node) -> str:
    """The innermost module that a node is of, as `encoder.layers.0`; else the node's own name."""
    modules = list((node.meta.get("nn_module_stack") or {}).values())
    path = modules[-1][0] if modules else ""
    return str(path or node.name)


def exported_script(
    script: torch.jit.ScriptModule | torch.jit.ScriptFunction, inputs: Sequence[torch.Tensor]
) -> torch.fx.GraphModule:
    """What torch.jit made as a module that can be exported: PyTorch's own converter, whose program
    has symbolic sizes.
    """
    try:
        from torch._export.converter import TS2EPConverter
    except ImportError as err:  # no public part of it; torch.jit is deprecated
        raise InputError(
            "module: this PyTorch has no converter for torch.jit; give the torch.nn.Module that it "
            "was made of, or what torch.export makes of that"
        ) from err
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch.jit is deprecated, at each node
        return TS2EPConverter(script, tuple(inputs)).convert().module()


def _addmm(node: torch.fx.Node, importer: Importing) -> Expr:
    """The frontend computes the product in float32, whatever is multiplied."""
    emit = importer.block_builder.emit
    bias, x, y = (importer.env[argument] for argument in node.args)
    product = emit(relax.op.matmul(x, y))
    scaled = [
        value if factor == 1 else emit(relax.op.multiply(value, relax.const(factor, x.ty.dtype)))
        for value, factor in (
            (bias, node.kwargs.get("beta", 1)), (product, node.kwargs.get("alpha", 1)),
        )
    ]  # fmt: skip
    return emit(relax.op.add(*scaled))


def _cat(node: torch.fx.Node, importer: Importing) -> Expr:
    """Without the vectors of no element, which PyTorch joins with anything: caches begin so."""
    emit, wanted = importer.block_builder.emit, node.meta["val"].dtype
    dtype = importer._convert_data_type(str(wanted), importer.env)
    given = [n for n in node.args[0] if tuple(n.meta["val"].shape) != (0,)] or node.args[0][:1]
    parts = [
        importer.env[n]
        if n.meta["val"].dtype == wanted
        else emit(relax.op.astype(importer.env[n], dtype))
        for n in given
    ]
    return emit(relax.op.concat(parts, axis=argument(node, 1, "dim", 0)))


def _converted(node: torch.fx.Node, importer: Importing) -> Expr:
    """A primitive of PyTorch's that dynamo writes where a float is not known when it traces."""
    dtype = importer._convert_data_type(str(node.args[1]), importer.env)
    return importer.block_builder.emit(relax.op.astype(importer.env[node.args[0]], dtype))


def _cumulative(kind: Callable[..., Expr]) -> Convert:
    """Sums and products of bools and short integers are int64 in PyTorch. TVM keeps the type of the
    terms: a sum of bools does not compile, and one of int8 overflows.
    """

    def convert(node: torch.fx.Node, importer: Importing) -> Expr:
        x = in_its_type(node, importer)
        axis, dtype = argument(node, 1, "dim"), x.ty.dtype
        return importer.block_builder.emit(kind(x, axis, dtype))

    return convert


def _reduction(kind: Callable[..., Expr]) -> Convert:
    """`kind` over some axes; over all of them where none are given."""

    def convert(node: torch.fx.Node, importer: Importing) -> Expr:
        x, axes = importer.env[node.args[0]], argument(node, 1, "dim")
        keeps = bool(argument(node, 2, "keepdim", False))
        return importer.block_builder.emit(kind(x, axes or None, keepdims=keeps))

    return convert


def _product(node: torch.fx.Node, importer: Importing) -> Expr:
    """Over one axis, or all; of bools and short integers in int64, as sums."""
    x = in_its_type(node, importer)
    axis, keeps = argument(node, 1, "dim"), bool(argument(node, 2, "keepdim", False))
    return importer.block_builder.emit(relax.op.prod(x, axis, keepdims=keeps))


def _divide(node: torch.fx.Node, importer: Importing) -> Expr:
    """Rounded down, or towards zero. The frontend makes an int32 constant of a Python integer,
    whatever that divides.
    """
    emit, mode = importer.block_builder.emit, argument(node, 2, "rounding_mode")
    x, y = (in_its_type(node, importer, place) for place in (0, 1))
    if mode == "floor":
        return emit(relax.op.floor_divide(x, y))
    divided = emit(relax.op.divide(x, y))
    is_done = mode is None or not node.meta["val"].dtype.is_floating_point
    return divided if is_done else emit(relax.op.trunc(divided))


def _elu(node: torch.fx.Node, importer: Importing) -> Expr:
    """The frontend leaves out the scales, which make SELU and CELU of it."""
    emit, x = importer.block_builder.emit, importer.env[node.args[0]]
    alpha, scale, inner = (
        relax.const(float(argument(node, n + 1, name, 1.0)), x.ty.dtype)
        for n, name in enumerate(("alpha", "scale", "input_scale"))
    )
    one = relax.const(1.0, x.ty.dtype)
    below = relax.op.nn.relu(relax.op.subtract(one, relax.op.exp(relax.op.multiply(x, inner))))
    both = relax.op.subtract(relax.op.nn.relu(x), relax.op.multiply(alpha, below))
    return emit(relax.op.multiply(both, scale))


_CONVERTERS = {
    **_relax_torch_mixed.CONVERTERS,
    **_relax_torch_images.CONVERTERS,
    **_relax_torch_precision.CONVERTERS,
    **_relax_torch_quantised.CONVERTERS,
    **_relax_torch_index.CONVERTERS,
    **_relax_torch_sizes.CONVERTERS,
    "addmm.default": _addmm,
    "amax.default": _reduction(relax.op.max),
    "amin.default": _reduction(relax.op.min),
    "cat.default": _cat,
    "convert_element_type.default": _converted,
    "cumprod.default": _cumulative(relax.op.cumprod),
    "cumsum.default": _cumulative(relax.op.cumsum),
    "div.Scalar_mode": _divide,
    "div.Tensor_mode": _divide,
    "elu.default": _elu,
    "prod.default": _product,
    "prod.dim_int": _product,
}
