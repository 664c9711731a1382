"""The C++ compiler of the system: libraries on disk are linked by it, and C sources compiled."""

from __future__ import annotations

import importlib
import shutil
import tempfile
from pathlib import Path

from ..common.probes import ask, ask_python, once
from ..errors import TargetError, ToolError
from ..tvm import GENERATION

_CC = importlib.import_module("tvm.contrib.cc" if GENERATION == "relay" else "tvm.support.cc")
_SOURCE = '#include <cstdint>\nextern "C" std::int32_t answer() { return 42; }\n'
_LOADED = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).answer())"


def check_compiler(what: str) -> None:
    """Raise TargetError for what needs a compiler, where there is none: TVM calls it None then; and
    ToolError where it does not compile.
    """
    if why := cannot_compile():
        raise (TargetError if _CC.get_cc() is None else ToolError)(f"{what} needs {why}")


def cannot_compile() -> str:
    """Why nothing is compiled here, as what is needed, or ''."""
    name = _CC.get_cc()
    if name is None:
        return (
            "a C++ compiler: found none; expected g++, gcc, clang++, clang, c++ or cc on the PATH, "
            "or the variable CXX"
        )
    why = does_not_compile(name)
    return f"a C++ compiler that works: {why}" if why else ""


def does_not_compile(name: str) -> str:
    """Why this compiler does not serve, or ''."""
    return once(name, [shutil.which(name) or name], lambda: _compiled(name))


def _compiled(compiler: str) -> str:
    """Why a small library of this compiler does not work, or ''."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "answer.cc"), str(Path(folder, "answer.so"))
        source.write_text(_SOURCE, encoding="utf-8")
        made = ask([compiler, "-shared", "-fPIC", "-o", library, str(source)], "")
        return made.why_not or ask_python(_LOADED, "^42\n", library).why_not
