"""One model of the zoo: what makes it, with seeded random weights and inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SMALL, FULL = "small", "full"  # pictures of a few dozen pixels, or as published


@dataclass(frozen=True)
class Made:
    """A module of PyTorch ready to be exported, and its inputs."""

    module: Any
    inputs: tuple[Any, ...]


@dataclass(frozen=True)
class Model:
    """`make(size)` gives what is tried: `Made`, or an onnx.ModelProto where `is_onnx`.

    Made in the process that tries it: listing the zoo makes nothing.
    """

    name: str
    family: str
    make: Callable[[str], Any]
    is_onnx: bool = False

    def made(self, size: str) -> Any:
        """What `make` gives, the same in every process: constructors draw random buffers, too."""
        if not self.is_onnx:
            import torch

            torch.manual_seed(0)
        return self.make(size)

    @property
    def key(self) -> str:
        """What tells it from all others."""
        return f"{self.family}/{self.name}"


class NotHere(Exception):
    """A package, or a file of one, that a model is made of is not installed."""
