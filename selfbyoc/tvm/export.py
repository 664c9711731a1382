"""What TVM writes into a library besides machine code, on both generations."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

from . import GENERATION, tvm
from .types import Module

_CC = importlib.import_module("tvm.contrib.cc" if GENERATION == "relay" else "tvm.support.cc")
# Where TVM looks for it when it has loaded a library.
_SYMBOL = "__tvm_dev_mblob" if GENERATION == "relay" else "__tvm_ffi__library_bin"


def pack_imports(module: Module, prefix: str, folder: Path) -> tuple[str, Path]:
    """A shared library with the data of a module for this machine, whatever it was built for; ->
    the symbol of the data, and the library.
    """
    pack = tvm.get_global_func("runtime.ModulePackImportsToLLVM")
    host = "llvm" if GENERATION == "relay" else json.dumps({"kind": "llvm"})
    data, built, path = pack(module, False, host, prefix), folder / "data.o", folder / "data.so"
    write_object(data, built)
    _CC.create_shared(str(path), [str(built)])
    return prefix + _SYMBOL, path


def write_object(module: Module, path: Path) -> str:
    """Machine code of a module as the linker takes it; -> the path."""
    (module.save if GENERATION == "relay" else module.write_to_file)(str(path))
    return str(path)
