"""Relax: the virtual machine's code with stubs where kernels are given constants."""

from __future__ import annotations

import re
from typing import Any

import tvm_ffi
from tvm import relax

from ...ir.relax import Constant
from ...tvm import constant_tensor, tvm, view_of
from ...tvm.types import Executable, Expr, Module
from ..alignment import is_plain
from .abi import Abi
from .table import GIVEN, Table, Weight

# tvm_ffi's c_api.h: a value is its type and eight bytes; 7 is a DLTensor*.
ABI = Abi(
    declared="""typedef union { void* p; int64_t i; } Value;
typedef struct { int32_t type; uint32_t zero; Value value; } Any;
""",
    stub="""int __tvm_ffi_{kernel}(void*, const Any*, int32_t, Any*);
int __tvm_ffi_{stub}(void* self, const Any* given, int32_t count, Any* result) {{
  Any all[] = {{{given}}};
  (void)count;
  return __tvm_ffi_{kernel}(self, all, {count}, result);
}}""",
    pack="""{{
    int __tvm_ffi_{function}(void*, const Any*, int32_t, Any*);
    Any all[] = {{{given}}}, result = {{0}};
    __tvm_ffi_{function}(0, all, {count}, &result);
  }}""",
    weight="{{7, 0, {{&weights[{n}]}}}}",
    given="given[{n}]",
)


def apart(native: Executable, lowered: tvm.IRModule) -> tuple[Executable, Table]:
    """The executable as a file has it, from the module that it was made of; and what stands beside.

    lowered   functions of Relax as the virtual machine's code is made of them
    """
    table, kernels = Table(), list(native.mod.imports)
    if not all(map(_is_code, kernels)):  # constants of others lie where only the machine puts them
        return native, table
    graphs = {gv for gv, func in lowered.functions.items() if isinstance(func, relax.Function)}
    stubbed = _Stubbed(set(lowered.functions) - graphs, table)
    done = tvm.IRModule(attrs=lowered.attrs)
    for gv, func in lowered.functions.items():
        done[gv] = stubbed.visit_expr(func) if gv in graphs else func
    builder = relax.ExecBuilder()
    relax.vm_build._vmcodegen(builder, done)
    made = builder.get()
    for module in kernels:
        made.mod.import_module(module)
    return made, table


def _is_code(module: Module) -> bool:
    """Whether it is this CPU's, and launches nobody else's."""
    return module.kind == "llvm" and all(map(_is_code, module.imports))


@relax.expr_functor.mutator
class _Stubbed(relax.PyExprMutator):
    """Calls of kernels, of which these are `functions` of the module, without their constants."""

    def __init__(self, functions: set[Any], table: Table) -> None:
        super().__init__()
        self.functions, self.table = functions, table

    def visit_call_(self, call: Expr) -> Expr:
        """A call: of a stub, where a kernel is given constants."""
        name = self._kernel(call)
        weights = [_weight(arg) for arg in call.args]
        if not name or not any(weights):
            return super().visit_call_(call)
        places = [GIVEN if w is None else self.table.place(w) for w in weights]
        stub = self.table.stub(name, places)
        pairs = zip(call.args, weights, strict=True)
        given = [self.visit_expr(arg) for arg, weight in pairs if weight is None]
        return relax.Call(relax.ExternFunc(stub.name), given, call.attrs, call.ty_args, call.span)

    def _kernel(self, call: Expr) -> str:
        """The symbol of what is called, where that is code in the file: what the registry has is
        not. A module loaded from IR does not know its functions' names.
        """
        op = call.op
        if isinstance(op, relax.ExternFunc):
            name = str(op.global_symbol)
            is_code = tvm.get_global_func(name, allow_missing=True) is None
        else:
            name, is_code = str(getattr(op, "name_hint", "")), op in self.functions
        return name if is_code and re.fullmatch(r"\w+", name) else ""


def _weight(argument: Expr) -> Weight | None:
    """A constant's values, where a file can have them; their bits where NumPy lacks the dtype."""
    if not isinstance(argument, Constant) or not isinstance(argument.ty, relax.TensorType):
        return None
    tensor = constant_tensor(argument)
    dtype = tvm_ffi.dtype(str(tensor.dtype))
    if str(tensor.dtype) == "bfloat16":
        tensor = tensor._create_view(tensor.shape, "uint16")
    values = view_of(tensor)
    if not values.size or not is_plain(values.dtype):
        return None
    return Weight(values.shape, (int(dtype.type_code), dtype.bits, dtype.lanes), values)
