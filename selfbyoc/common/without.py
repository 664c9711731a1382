"""Imports as on a machine that lacks a package."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(package: str) -> Iterator[None]:
    """What is imported inside does not find a package, unless it is imported already."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]  # an ImportError, as importlib has it
    try:
        yield
    finally:
        del sys.modules[package]


@contextmanager
def without_pytorch() -> Iterator[None]:
    """For an import of TVM: `tvm_ffi` imports PyTorch where it is installed, for seconds, and needs
    it for nothing here.
    """
    # It asks PyTorch whether there is a GPU; else that starts CUDA, which no fork could use then.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    with without("torch"):
        yield
