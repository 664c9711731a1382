"""Kernels for the target `c`, made to link beside the rest of a model that is C too."""

from __future__ import annotations

import re

from ..tvm import module_source, tvm
from ..tvm.types import Module

# A C module of TVM defines these; two in one library collide (0.17: __tvm_main__; 0.27: both
# others).
_DEFINED_TWICE = re.compile(
    r"^(?=void\* __tvm_ffi__library_ctx = |TVM_DLL int32_t (?:__tvm_main__|__tvm_ffi_main)\()",
    re.MULTILINE,
)


def linkable(module: Module, symbol: str) -> Module:
    """A C source module whose shared definitions are weak, so that the linker keeps one of each."""
    source = _DEFINED_TWICE.sub("__attribute__((weak)) ", module_source(module))
    return tvm.get_global_func("runtime.CSourceModuleCreate")(source, "c", [symbol], [])
