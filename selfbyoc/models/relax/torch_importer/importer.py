"""TVM's importer of exported programs, with the sizes that PyTorch knows: each node of a program
says the shape of its result as expressions of the open sizes. TVM infers fewer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from tvm import relax
from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

from ....errors import InputError
from ....tvm import tir, tvm
from ....tvm.types import Expr, PrimExpr
from ..algebra import Algebra, Extent
from .multiples import Limits, with_symbols
from .node import Convert, Shape

if TYPE_CHECKING:
    import torch


class Importer(ExportedProgramImporter):
    """Results have the shapes that PyTorch says; where TVM has another expression for a size, or
    none, it is cast, and the virtual machine looks whether it is so.
    """

    convert_map: dict[Any, Any]

    def __init__(self) -> None:
        super().__init__()
        self.algebra = Algebra({})
        self._are_cast = False
        self.sizes: dict[str, Any] = {}  # what PyTorch's symbols are, by name
        self._held: dict[str, Any] = {}  # the program's own tensors, by their nodes' names

    def known(self, node: torch.fx.Node) -> torch.Tensor | None:
        """The tensor that a node stands for, where the program holds it."""
        found = self._held.get(node.name)
        return None if found is None else found.detach().cpu()

    def update_convert_map(self, custom_convert_map: Mapping[str, Convert]) -> None:
        """All converters, TVM's too."""
        every: dict[Any, Convert] = {
            name: partial(_of_tvm, convert) for name, convert in self.convert_map.items()
        }
        every.update(custom_convert_map)
        self.convert_map = {name: partial(self._converted, f) for name, f in every.items()}

    def create_input_vars(
        self, exported_program: torch.export.ExportedProgram
    ) -> tuple[dict[str, Expr], dict[str, Expr], Limits]:
        """As TVM's, with a symbol for each open size of an input; notes what PyTorch's are."""
        signature, held = exported_program.graph_signature, exported_program.state_dict
        named = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        named |= signature.inputs_to_lifted_tensor_constants
        held = {**held, **exported_program.constants}
        self._held = {name: held[of] for name, of in named.items() if of in held}
        weights, told, limits = super().create_input_vars(exported_program)
        inputs, limits, self.sizes = with_symbols(told, limits, self.algebra)
        return weights, inputs, limits

    @staticmethod
    def _flatten_output_args(output_args: Sequence[Any]) -> tuple[Expr, ...]:
        """Without None, of which TVM's makes an object that is no tensor: a library returns
        tensors.
        """
        return ExportedProgramImporter._flatten_output_args(_tensors_of(output_args))

    def _cast_inputs(self) -> None:
        """Inputs with the sizes that PyTorch writes, as `32 * s`: what is computed of them has such
        sizes, too, and a call with others is an error before anything is.
        """
        self._are_cast = True
        for node, x in list(self.env.items()):
            if getattr(node, "op", "") == "placeholder":
                self.env[node] = self._in_shape(x, getattr(node.meta.get("val"), "shape", None))

    def _converted(self, convert: Convert, node: torch.fx.Node, *_: object) -> Expr:
        if not self._are_cast:
            self._cast_inputs()
        value = node.meta.get("val")
        size = self.extent(value) if _is_size(value) else None
        if size is not None:
            return size
        return self._in_shape(convert(node, self), getattr(value, "shape", None))

    def extent(self, size: int | torch.SymInt) -> Extent | None:
        """A size of PyTorch's as a number or an expression; None where it is another function of
        the open sizes.
        """
        if isinstance(size, int):
            return size
        found = self._expression(size.node.expr)
        return None if found is None else self.algebra.simplest(found)

    def extents(self, shape: Shape) -> list[Extent] | None:
        """Those of a shape, if all can be written."""
        found = [self.extent(size) for size in shape]
        return None if any(e is None for e in found) else found

    def _in_shape(self, x: Expr, shape: Shape | None) -> Expr:
        ty = getattr(x, "ty", None)
        if shape is None or not isinstance(ty, relax.TensorType):
            return x
        wanted = self.extents(shape)
        has = ty.shape.values if isinstance(ty.shape, relax.ShapeExpr) else None
        if wanted is None or (has is None and ty.ndim != len(wanted)):
            return x
        if has is not None and (len(has) != len(wanted) or self._are_equal(has, wanted)):
            return x
        return self.block_builder.match_cast(x, relax.TensorType(wanted, ty.dtype))

    def _are_equal(self, has: Sequence[PrimExpr], wanted: list[Extent]) -> bool:
        return all(self.algebra.are_equal(a, b) for a, b in zip(has, wanted, strict=True))

    def _expression(self, x: Expr) -> PrimExpr:
        """An expression of sympy's as TVM's."""
        if x.is_Integer:
            return int(x)
        if x.is_Symbol:
            return self.sizes.setdefault(str(x), tir.Var(str(x), "int64"))
        operation = _OPERATIONS.get(type(x).__name__)
        given = [self._expression(each) for each in x.args]
        if operation is None or any(g is None for g in given):
            return None
        return operation(self.algebra, given)


def _of_tvm(
    convert: Callable[[torch.fx.Node], Expr], node: torch.fx.Node, importer: Importer
) -> Expr:
    return convert(node)


def _tensors_of(values: Any) -> Any:
    """What a program returns, without None. Raises InputError for a number and for a size."""
    if isinstance(values, (list, tuple)):
        return [_tensors_of(value) for value in values if value is not None]
    is_size = type(getattr(values, "ty", None)).__name__ == "PrimType"
    if is_size or isinstance(values, (int, float)):
        raise InputError(
            f"the module cannot be imported: it returns the number {values}, and a library returns "
            "tensors; leave it out"
        )
    return values


def _is_size(value: object) -> bool:
    return type(value).__name__ == "SymInt" or type(value) is int


def _power(algebra: Algebra, given: list[Extent]) -> Extent | None:
    base, exponent = given
    return (
        algebra.product([base] * exponent) if isinstance(exponent, int) and exponent > 0 else None
    )


def _of_two(name: str) -> Callable[[Algebra, list[Extent]], Extent]:
    return lambda algebra, given: reduce(getattr(algebra, name), given)


# sympy's classes and those that PyTorch adds (torch.utils._sympy.functions).
_OPERATIONS: dict[str, Callable[[Algebra, list[Any]], Any]] = {
    "Add": lambda _, given: reduce(operator.add, given),
    "Mul": lambda _, given: reduce(operator.mul, given),
    "Pow": _power,
    "PowByNatural": _power,
    **dict.fromkeys(("FloorDiv", "CleanDiv"), _of_two("quotient")),
    **dict.fromkeys(("Mod", "PythonMod"), _of_two("remainder")),
    **dict.fromkeys(("Max",), _of_two("most")),
    **dict.fromkeys(("Min",), _of_two("least")),
}


def is_open(*extents: Extent) -> bool:
    """Whether one of these sizes is no number."""
    return any(isinstance(extent, tvm.ir.Node) for extent in extents)
