"""Exported programs of PyTorch: archives whose members have a CRC-32 each."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import selfbyoc
from selfbyoc.commands.model_file import imported, naming
from selfbyoc.tvm import GENERATION

from .specimen import F32, Specimen, compared

X = np.random.default_rng(1).standard_normal((5, 9)).astype(F32)


def specimens() -> Iterator[Specimen]:
    """None on Relay, which reads no exported programs, or without PyTorch."""
    if GENERATION == "relay" or importlib.util.find_spec("torch") is None:
        return
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(9, 7), torch.nn.ReLU()).eval()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt2"
        torch.export.save(torch.export.export(net, (torch.from_numpy(X),)), path)
        data = path.read_bytes()
        expected = _read(Path(folder))
    yield Specimen("an exported program", {"model.pt2": data}, _read, compared(expected))


def _read(folder: Path) -> list[np.ndarray]:
    path = folder / "model.pt2"
    mod = imported(path, ())
    with naming(path):
        library = selfbyoc.build(mod, cache=False)
    return list(library(X))
