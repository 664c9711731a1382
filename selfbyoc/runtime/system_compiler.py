"""The C++ compiler of the system: libraries on disk are linked by it, and C sources compiled."""

from __future__ import annotations

import importlib

from .._tvm import GENERATION
from ..errors import TargetError

_CC = importlib.import_module("tvm.contrib.cc" if GENERATION == "relay" else "tvm.support.cc")


def check_compiler(what: str) -> None:
    """Raise TargetError for what needs a compiler, where there is none: TVM calls it None then."""
    if _CC.get_cc() is None:
        raise TargetError(
            f"{what} needs a C++ compiler: found none; expected g++, gcc, clang++, clang, c++ or "
            f"cc on the PATH, or the variable CXX"
        )
