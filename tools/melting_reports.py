"""Write what `selfbyoc.melting` says of three programs into docs/reports/melting-*.txt.

`python tools/melting_reports.py`; needs Relax, onnx and torch. For a CPU with AVX-512 and two
threads, whatever machine this runs on; they hold no times, so that they are the same each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reports import googlenet, rfc

import selfbyoc

FOLDER = Path(__file__).parents[1] / "docs" / "reports"
TARGET = {"kind": "llvm", "mcpu": "cascadelake", "num-cores": 2}


def transformer() -> Any:
    """A layer of PyTorch's encoder, of BERT's size."""
    import torch
    from tvm.relax.frontend.torch import from_exported_program  # noqa: TID251

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        768, 12, 3072, activation="gelu", batch_first=True, norm_first=True
    )
    x = torch.randn(1, 128, 768)
    with torch.no_grad():
        return from_exported_program(torch.export.export(layer.eval(), (x,)))


def write(make: Callable[[], Any]) -> None:
    """One report."""
    parted = selfbyoc.partition_for_tefuse(make(), target=TARGET)
    path = FOLDER / f"melting-{make.__name__}.txt"
    path.write_text(f"{selfbyoc.melting(parted, TARGET)}\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for each in (googlenet, transformer):
        write(each)
    os.environ["SELFBYOC_WINOGRAD"] = "0"  # direct convolutions melt
    write(rfc)
