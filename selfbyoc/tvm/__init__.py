"""Every name that TVM renamed between its two generations, under one name of ours.

`GENERATION` is "relay" (TVM 0.16 to 0.19, tested on 0.17) or "relax" (0.26 and 0.27). A TVM that
has both graph IRs counts as Relay: its Relax is not the one this library is tested on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from ..common.generation import GENERATION
from ..common.supported import check_imported, check_installed
from ..common.without import without_pytorch
from .target_data import target_data
from .types import Attr, Block, Buffer, Expr, Module, NDArray, PackedFunc, PrimFunc, TirNode

check_installed()

import numpy as np  # noqa: E402

with without_pytorch():
    import tvm

check_imported(tvm.__version__, GENERATION)

from tvm import te, topi  # noqa: E402 (re-exported: schedules reach TVM through this module)

if GENERATION == "relax":
    import tvm_ffi
    from tvm import s_tir
    from tvm import tirx as tir

    Schedule = s_tir.Schedule
    TVMError: type[Exception] = Exception  # 0.27 raises plain Python errors
    register_func = tvm.register_global_func
    tensor = tvm.runtime.tensor
    empty = tvm.runtime.empty
    load_shared = tvm_ffi.load_module  # by the name given: TVM's own follows links
    IR_LOADER = "ffi.Module.load_from_file.ll"
    structural_equal = tvm_ffi.structural_equal
    structural_hash = tvm_ffi.structural_hash
    Analyzer = (tvm.sym if hasattr(tvm, "sym") else tvm.arith).Analyzer  # the latter is 0.26's
    _blocks = s_tir if hasattr(s_tir, "SBlock") else tir
    SBlock, BlockRealize = _blocks.SBlock, _blocks.SBlockRealize
    StringImm = (tvm.ir if hasattr(tvm.ir, "StringImm") else tir).StringImm
    TensorLoad = tvm.ir.TensorLoad if hasattr(tvm.ir, "TensorLoad") else tir.BufferLoad
else:
    from tvm import tir

    from .kinds import walk_kinds

    Schedule = tir.Schedule
    TVMError = tvm.TVMError
    register_func = tvm.register_func
    tensor = tvm.nd.array
    empty = tvm.nd.empty
    load_shared = tvm.get_global_func("runtime.module.loadfile_so")
    IR_LOADER = "runtime.module.loadfile_ll"
    structural_equal = tvm.ir.structural_equal
    structural_hash = tvm.ir.structural_hash
    Analyzer = tvm.arith.Analyzer
    SBlock, BlockRealize, TensorLoad = tir.Block, tir.BlockRealize, tir.BufferLoad
    StringImm = tir.StringImm

# Whoever has imported this package and TVM, in any order, has the external compiler.
import_module(f".{GENERATION}", __name__).register()

# Beside what is defined here.
__all__ = ["GENERATION", "te", "tir", "topi", "tvm"]


def make_target(target: tvm.target.Target | dict[str, Attr] | str) -> tvm.target.Target:
    """A Target from a Target, a dict, a kind's name, JSON, or the command-line form."""
    if isinstance(target, tvm.target.Target):
        return target
    return tvm.target.Target(target_data(target))


def current_target() -> tvm.target.Target | None:
    """The target of the enclosing `with`, if there is one."""
    return tvm.target.Target.current(allow_none=True)


def target_dict(target: tvm.target.Target) -> dict[str, Attr]:
    """The target as plain JSON data, equal for equal targets."""
    if GENERATION == "relax":
        return json.loads(str(target))
    found = {"kind": str(target.kind), "keys": [str(k) for k in target.keys]}
    for name, value in target.attrs.items():
        found[str(name)] = _plain(value)
    return found


def _plain(value: Attr) -> Attr:
    """A TVM attribute value as Python data."""
    if isinstance(value, tvm.ir.Array if GENERATION == "relay" else tvm_ffi.Array):
        return [_plain(v) for v in value]
    if hasattr(value, "value"):
        return value.value
    return str(value) if isinstance(value, str) else value


def has_symbol(module: Module, symbol: str) -> bool:
    """Whether a runtime module implements the symbol, its imports included; C source is asked as
    text.
    """
    if (module.kind if GENERATION == "relax" else module.type_key) == "c":
        return symbol in module_source(module)
    return bool(module.implements_function(symbol, True))


def module_source(module: Module, form: str = "") -> str:
    """The code of a runtime module as text: C, CUDA, LLVM IR or (`asm`) assembly."""
    return str(module.inspect_source(form) if GENERATION == "relax" else module.get_source(form))


def packed_symbol(symbol: str) -> str:
    """The name in machine code of a function that Python calls by `symbol`."""
    return f"__tvm_ffi_{symbol}" if GENERATION == "relax" else symbol


def get_func(module: Module, symbol: str) -> PackedFunc:
    """The callable of a runtime module."""
    return module[symbol] if GENERATION == "relax" else module.get_function(symbol, True)


def child_blocks(sch: Any) -> list[Block]:
    """The blocks under the root of `main`, in program order."""
    get = sch.get_sblock if GENERATION == "relax" else sch.get_block
    return list(sch.get_child_blocks(get("root")))


def get_block(sch: Any, name: str) -> Block:
    """The block of `main` with this name."""
    return (sch.get_sblock if GENERATION == "relax" else sch.get_block)(name)


def constant_tensor(node: Expr) -> NDArray:
    """A graph constant's value as TVM holds it: no copy."""
    return node.data if hasattr(node, "data") else node.value  # 0.27: GenericConst.value


def constant_numpy(node: Expr) -> np.ndarray:
    """A graph constant's value as a NumPy array."""
    return constant_tensor(node).numpy()


def held_constants(func: PrimFunc) -> list[np.ndarray]:
    """The arrays that a PrimFunc holds itself, in order: only Relay's do."""
    found: list[np.ndarray] = []
    if GENERATION == "relay":
        walk(func.body, lambda node: found.append(node.data.numpy()), "AllocateConst")
    return found[::-1]


def view_of(held: NDArray) -> np.ndarray:
    """A tensor's memory as an array to read; a copy, where NumPy's own dtypes cannot say what it
    holds (bfloat16, float8), and on 0.17, which raises in a callback there.
    """
    if GENERATION == "relay":
        return held.numpy()
    try:
        view = np.from_dlpack(held)
    except (RuntimeError, BufferError):
        return held.numpy()
    view.flags.writeable = False
    return view


def attrs_dict(attrs: tvm.ir.Attrs | None) -> dict[str, Attr]:
    """An op's attribute node as a dict of TVM values."""
    if attrs is None or hasattr(attrs, "keys"):
        return {} if attrs is None else {str(k): attrs[k] for k in attrs.keys()}  # noqa: SIM118
    # 0.17 gives no class to some (AdaptivePool1DAttrs): their fields are what a node adds.
    of_any = {*dir(type(attrs)), "handle"}
    return {name: getattr(attrs, name) for name in dir(attrs) if name not in of_any}


def walk(node: TirNode, visit: Callable[[TirNode], object], *kinds: str) -> None:
    """Call `visit` on every IR node under a statement or expression, inner ones first; with the
    names of some classes on these only, which is much quicker: TVM passes over the others itself.
    """
    if GENERATION == "relay":
        if kinds:
            walk_kinds(node, visit, kinds)
        else:
            tir.stmt_functor.post_order_visit(node, visit)
        return

    def each(found: TirNode) -> None:
        if isinstance(found, tvm_ffi.Object):  # long texts and shapes are objects to TVM alone
            visit(found)

    # It comes by plain numbers and texts, too: those are not worth a call.
    known = [(kind, visit) for kind in map(_class_of, kinds) if kind is not None]
    if known or not kinds:
        tvm_ffi.structural_walk(node, known or (tvm_ffi.Object, each), order="post")


@cache
def _class_of(kind: str) -> type | None:
    """The class of that name; None where this TVM has none, but another."""
    found = (getattr(module, kind, None) for module in (tir, s_tir, tvm.ir))
    return next((c for c in found if isinstance(c, type) and c.__name__ == kind), None)


def region_buffer(region: TirNode) -> Buffer:
    """The buffer of a BufferRegion."""
    return region.source if hasattr(region, "source") else region.buffer


def scope_of(buffer: Buffer) -> str:
    """The memory scope of a buffer."""
    return str(buffer.scope() if callable(buffer.scope) else buffer.scope)


def is_reduction(iter_var: tir.IterVar) -> bool:
    """Whether a block's iteration variable reduces (tir.IterVar.CommReduce)."""
    return int(iter_var.iter_type) == 2


def storage_passes() -> list[tvm.transform.Pass]:
    """The passes that put each buffer under the loop that needs it, no larger than used there."""
    passes = s_tir.transform if GENERATION == "relax" else tir.transform
    return [
        passes.LowerInitBlock(),
        passes.PlanAndUpdateBufferAllocationLocation(),
        passes.ConvertBlocksToOpaque(),
        passes.CompactBufferAllocation(),
    ]


def module_with_attr(mod: tvm.IRModule, name: str, text: str) -> tvm.IRModule:
    """An IRModule with a string attribute; 0.17 takes no plain str there."""
    return mod.with_attr(name, text if GENERATION == "relax" else tvm.runtime.String(text))


def dtype_of(expr: TirNode) -> str:
    """The dtype's name of an expression or tensor; 0.27's expressions have a type instead."""
    return str(expr.dtype) if hasattr(expr, "dtype") else str(expr.ty)


def param_buffers(func: PrimFunc) -> list[Buffer]:
    """The buffers of a PrimFunc's parameters, and parameters that are none (a scalar, an address
    after lowering). 0.27 has no buffer_map, its parameters are the buffers.
    """
    known = {} if GENERATION == "relax" else func.buffer_map
    return [known.get(p, p) for p in func.params]
