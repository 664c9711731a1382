"""A kernel's machine code as text, and back: LLVM IR that holds nothing but assembly.

Both TVMs load LLVM IR from a text file, without a compiler on the system. Optimised IR would leave
instruction selection to the first call, 0.3 s for an inception; assembly only has to be assembled,
which takes milliseconds, and is a fifth of the size.

What TVM looks up by name is defined in IR around the assembly, as 0.27's JIT (ORC) finds no symbols
of assembly: the function itself, and the variables that hold functions of TVM's runtime.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from ...tvm import GENERATION, IR_LOADER, module_source, packed_symbol, tvm
from ...tvm.types import Module

# Stands for the function's own symbol, which holds a hash of the model, and for its code.
_SYMBOL, _CODE = "selfbyoc_kernel_symbol", "selfbyoc_kernel_code"
# A kernel that calls functions of TVM's registry holds one of these; ours call none.
_REGISTRY = ("__tvm_module_ctx", "__tvm_ffi__library_ctx")
_POINTER, _PARAMETERS = (
    ("ptr", ("ptr", "ptr", "i32", "ptr"))
    if GENERATION == "relax"
    else ("i8*", ("i8*", "i32*", "i32", "i8*", "i32*", "i8*"))
)


def text_of(module: Module, symbol: str) -> str | None:
    """A kernel's module as text that does not name its symbol; None where that cannot be."""
    source = module_source(module, "ll")
    layout = re.findall(r'^target (?:datalayout|triple) = ".*"$', source, re.MULTILINE)
    flag = re.search(r'^!\d+ = (!\{i32 \d+, !"tvm_target".*\})$', source, re.MULTILINE)
    if flag is None or len(layout) != 2 or any(name in source for name in _REGISTRY):
        return None
    assembly = module_source(module, "asm").replace(symbol, _SYMBOL)
    filled = sorted(set(re.findall(r"^\t\.weak\t(__TVM\w+)$", assembly, re.MULTILINE)))
    local = _without_definitions(assembly, filled)
    return "\n".join([*layout, flag.group(1), " ".join(filled), local])


def _without_definitions(assembly: str, filled: list[str]) -> str:
    """The assembly with the function, and those it calls, under local names, and without the
    variables' names.
    """
    entry = packed_symbol(_SYMBOL)
    dropped = set(re.findall(rf"^\t[.]globl\t{entry}(?:_\d+)?$", assembly, re.MULTILINE))
    for name in filled:
        dropped |= {f"\t.weak\t{name}", f"\t.type\t{name},@object", f"{name}:"}
        dropped |= {f"\t.size\t{name}, 8"}
    word = re.compile(rf"\b{entry}\b")
    kept = [line for line in assembly.splitlines() if line.split("#")[0].rstrip() not in dropped]
    return "\n".join(line if '"' in line else word.sub(_CODE, line) for line in kept)


def llvm_ir(text: str, symbol: str) -> str:
    """What `text_of` wrote down as LLVM IR, for a function of this symbol."""
    layout, triple, flag, filled, assembly = text.replace(_SYMBOL, symbol).split("\n", 4)
    types = ", ".join(_PARAMETERS)
    named = ", ".join(f"{kind} %{n}" for n, kind in enumerate(_PARAMETERS))
    lines = [
        layout,
        triple,
        *(f'module asm "{_escaped(line)}"' for line in assembly.splitlines()),
        *(f"@{name} = weak dllexport global {_POINTER} null, align 8" for name in filled.split()),
        f"declare i32 @{_CODE}({types})",
        f"define dllexport i32 @{packed_symbol(symbol)}({named}) {{",
        f"  %status = tail call i32 @{_CODE}({named})",
        "  ret i32 %status",
        "}",
        "!llvm.module.flags = !{!0}",
        f"!0 = {flag}",
    ]
    return "\n".join([*lines, ""])


def module_of(text: str, symbol: str) -> Module:
    """The runtime module that `text_of` wrote down, for a function of this symbol."""
    ir = llvm_ir(text, symbol).encode()
    if not hasattr(os, "memfd_create"):  # no Linux
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kernel.ll"
            path.write_bytes(ir)
            return _loaded(str(path))
    # A file in memory: no disk can be full, and whoever is killed leaves nothing.
    with os.fdopen(os.memfd_create("kernel.ll"), "wb") as file:
        file.write(ir)
        file.flush()
        return _loaded(f"/proc/self/fd/{file.fileno()}")


def _loaded(path: str) -> Module:
    """The module of an LLVM IR file. 0.27's `load_module` keeps a reference to what it loads, so
    that its machine code stays for ever: 1 MB a kernel. The loader behind it keeps none.
    """
    return tvm.get_global_func(IR_LOADER)(path, "ll")


def _escaped(line: str) -> str:
    return line.replace("\\", "\\5C").replace('"', "\\22").replace("\t", "\\09")
