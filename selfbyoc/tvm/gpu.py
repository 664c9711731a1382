"""A function for a GPU as TVM splits it: what the host calls, the device's functions, their source.

No GPU, no runtime for one and no compiler is needed: TVM's passes are watched at work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import GENERATION, dtype_of, module_source, register_func, tir, tvm
from .types import Buffer, IRModule, Pass, PrimExpr, PrimFunc, Stmt, Target

if GENERATION == "relax":
    import tvm_ffi

_COMPILER = "tvm_callback_cuda_compile"


_WHOLE = 1 << 24  # an identity of a maximum is larger, and known by what it is
_FLOAT_OF_BITS = {"cuda": "__int_as_float", "opencl": "as_float"}
_PREFIX = "tir" if GENERATION == "relay" else "tirx"


def barrier() -> Stmt:
    """A statement: all threads of a block wait for each other."""
    call = tir.call_intrin("int32", f"{_PREFIX}.tvm_storage_sync", "shared")
    return tir.Evaluate(call)


def with_exact_numbers(func: PrimFunc, kind: str) -> PrimFunc:
    """A PrimFunc whose doubles, and whole floats, are written as their bits where 7 digits are too
    few: no more are printed by 0.17, nor by 0.27 for OpenCL. Coordinates of `resize2d` are off by
    as much, and what is added to round to a whole number by 1, so that a sigmoid is another one.
    """

    def change(node: PrimExpr) -> PrimExpr:
        dtype, value = dtype_of(node), float(node.value)
        if float(f"{value:.6e}") == value:
            return node
        is_whole = dtype == "float32" and abs(value) < _WHOLE and value.is_integer()
        if is_whole and kind in _FLOAT_OF_BITS:
            # TVM prints `reinterpret` of a number as the address of one, and folds a cast of it.
            bits = tir.const(int(np.float32(value).view("int32")), "int32")
            return tir.call_pure_extern(dtype, _FLOAT_OF_BITS[kind], bits)
        if dtype != "float64":
            return node
        bits = tir.const(int(np.float64(value).view("int64")), "int64")
        return tir.call_intrin("float64", f"{_PREFIX}.reinterpret", bits)

    if GENERATION == "relax":
        return tvm_ffi.structural_map(func, ((tir.FloatImm, change),))
    return func.with_body(tir.stmt_functor.ir_transform(func.body, None, change, ["FloatImm"]))


@dataclass(frozen=True)
class Split:
    """A function in parts."""

    host: PrimFunc  # allocates, and calls the others in order
    device: Mapping[str, PrimFunc]  # by name, with all barriers, before intrinsics become calls
    source: str


def split(func: PrimFunc, target: Target, config: Mapping[str, bool]) -> Split:
    """Build a function for a GPU; -> its parts."""
    symbol = str(func.attrs["global_symbol"])
    build = tvm.build if GENERATION == "relay" else tvm.compile
    watch = tvm.instrument.pass_instrument(_Watch)(symbol)
    context = tvm.transform.PassContext(opt_level=3, config=dict(config), instruments=[watch])
    with _without_cuda_compiler(), context:
        built = build(tvm.IRModule({symbol: func}), target=target)
    (module,) = built.imported_modules if GENERATION == "relay" else built.mod.imports
    assert watch.host is not None, "TVM splits host and device by passes of other names"
    return Split(watch.host, watch.device, module_source(module))


class _Watch:
    """What TVM calls before and after each pass."""

    def __init__(self, symbol: str) -> None:
        self.symbol = symbol
        self.host: Any = None
        self.device: dict[str, Any] = {}

    def run_after_pass(self, mod: IRModule, info: Pass) -> None:
        if str(info.name).endswith(".SplitHostDevice"):
            self.host = mod[self.symbol]

    def run_before_pass(self, mod: IRModule, info: Pass) -> None:
        if str(info.name).endswith(".LowerWarpMemory"):
            self.device = {str(name.name_hint): func for name, func in mod.functions.items()}


def _as_it_is(code: str, target: Target | None = None) -> str | bytes:
    return code if GENERATION == "relay" else code.encode()


@contextmanager
def _without_cuda_compiler() -> Iterator[None]:
    """TVM hands its CUDA source to whoever is registered, and nvcc may not be here. 0.27 asks for
    bytes, and asks only where its CUDA runtime is loaded: on a machine with a driver and CUDA 13.
    """
    before = tvm.get_global_func(_COMPILER, allow_missing=True)
    register_func(_COMPILER, _as_it_is, override=True)
    try:
        yield
    finally:
        if before is not None:
            register_func(_COMPILER, before, override=True)


def called(call: PrimExpr) -> tuple[str, list[Buffer]] | None:
    """The device function that a call of the host is of, and the memory that it is given."""
    if GENERATION == "relay":
        if not isinstance(call.op, tvm.ir.GlobalVar):
            return None
        return str(call.op.name_hint), list(call.args)
    if not str(getattr(call.op, "name", "")).endswith(".call_ffi_kernel"):
        return None
    return str(call.args[0].value), [memory_behind(arg) for arg in call.args[1:]]


def memory_behind(address: PrimExpr) -> PrimExpr:
    """What an address is of: in 0.17 a variable, in 0.27 a buffer; a number stays one."""
    return address.args[0] if getattr(address, "args", None) else address
