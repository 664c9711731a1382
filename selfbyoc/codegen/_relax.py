"""The hook `relax.ext.tefuse`: all external functions of a module -> their runtime modules."""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import relax

from .. import errors
from .._tvm import register_func, tvm
from .._tvm_tags import tags_of_each_thread
from ..graph import OpGraph
from ..ir._relax import read as read_graph
from ..wiring import wired
from ._relax_builders import builders_of_each_thread
from ._relax_calls import Built, kernels, settled
from .fallback import or_default
from .lower import TARGET, external, lower, read_attrs
from .target import agree


def composites(func: relax.Function) -> list[str]:
    """The names of the composites in an external function, in order."""
    values = (b.value for block in func.body.blocks for b in block.bindings)
    locals_ = [v for v in values if isinstance(v, relax.Function) and v.attrs]
    return [str(f.attrs["Composite"]) for f in locals_ if "Composite" in f.attrs.keys()]  # noqa: SIM118


def read(func: relax.Function) -> OpGraph:
    """The raw graph of an external function."""
    return read_graph(func, raw=True)


def build_target() -> Any | None:
    """The target in force around RunCodegen, if there is one."""
    return tvm.target.Target.current(allow_none=True)


def codegen(functions: list[Any], options: Any, constant_names: Any) -> list[Any]:
    """RunCodegen calls this once with all external functions."""
    modules = []
    for func in functions:
        attrs = read_attrs(func.attrs)
        symbol = str(func.attrs["global_symbol"])
        target = agree(attrs.get(TARGET), build_target(), symbol)
        source = external(symbol, composites(func), read(func), attrs)
        recorded = wired.with_record(source, target, packed=True)
        modules.append(or_default(lower, recorded, target))
        told = TARGET in attrs or build_target() is not None
        kernels.note(modules[-1], Built(source, target, told))
    return modules


def register() -> None:
    """Make the hook known to TVM, and our errors to its FFI, which knows others as RuntimeError."""
    builders_of_each_thread()
    tags_of_each_thread()
    for error in errors.ALL:
        tvm_ffi.register_error(f"selfbyoc.{error.__name__}", error)
    register_func("relax.ext.tefuse", codegen, override=True)
    if tvm.ir.Op.get("relax.call_dps_packed").get_attr("FLegalize") is None:
        # An extern function has no shape, and LegalizeOps passes over calls with such arguments.
        tvm.ir.register_op_attr("relax.call_dps_packed", "RequiresArgumentShapes", False)
        tvm.ir.register_op_attr("relax.call_dps_packed", "FLegalize", settled)
