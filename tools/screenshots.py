"""Pictures of the page of `explain --html` for docs/explain.md: `python tools/screenshots.py`.

Needs Relax, torch, pygraphviz, Pillow, and Chromium on PATH. GoogLeNet's kernels are timed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from browser import FLAGS, cannot_show, chromium

import selfbyoc
from selfbyoc.analysis.explain.grouping import left
from selfbyoc.commands.page.page import Page, render
from selfbyoc.common.optional import extra
from selfbyoc.models.onnx_model import graph_of, light_model

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
SECONDS = 120.0  # for one picture
COLOURS = 255  # a page has few; more would make the files larger and look the same
DESK, PHONE = (1280, 800), (390, 844)
# picture -> (page, fragment, size)
PICTURES = {
    "googlenet": ("googlenet", "", DESK),
    "googlenet-kernel": ("googlenet", "k3", DESK),
    "encoder-dark": ("encoder", "view=ops&scheme=dark", DESK),
    "densenet-search": ("densenet", "q=conv2d 3x3 32 14", DESK),
    "phone": ("encoder", "", PHONE),
}


def googlenet() -> Any:
    """200 ops, from ONNX."""
    return selfbyoc.from_onnx(light_model("inception_v1"))


def densenet() -> Any:
    """669 ops, from ONNX."""
    return selfbyoc.from_onnx(light_model("densenet121"))


def encoder() -> Any:
    """168 ops, from PyTorch."""
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = torch.nn.TransformerEncoderLayer(
                128, 4, 512, activation="gelu", batch_first=True, norm_first=True
            )
            self.embedding = torch.nn.Embedding(1000, 128)
            self.encoder = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
            self.head = torch.nn.Linear(128, 10)

        def forward(self, ids: Any) -> Any:
            return self.head(self.encoder(self.embedding(ids)).mean(1))

    torch.manual_seed(0)
    return selfbyoc.from_torch(Encoder().eval(), (torch.zeros(1, 64, dtype=torch.int64),))


def page(network: Callable[[], Any]) -> str:
    """As the command writes it."""
    mod = network()
    parted = selfbyoc.partition_for_tefuse(mod)
    decided = selfbyoc.explain(parted).report
    told = Page(network.__name__, "Every coloured box is a composite: one kernel.", left(decided))
    melted = selfbyoc.melting(parted, time=network is googlenet)
    return render(told, graph_of(mod), decided, melted)


def shoot(html: Path, fragment: str, size: tuple[int, int], to: Path) -> None:
    """One picture, with few colours."""
    if why := cannot_show():
        sys.exit(f"screenshots: {why}")
    flags = [*FLAGS, "--hide-scrollbars"]
    flags += ["--virtual-time-budget=3000", f"--window-size={size[0]},{size[1]}"]
    url = html.as_uri() + (f"#{fragment}" if fragment else "")
    subprocess.run(
        [chromium(), *flags, f"--screenshot={to}", url],
        check=True, stderr=subprocess.DEVNULL, timeout=SECONDS,
    )  # fmt: skip
    picture = extra("PIL.Image").open(to).convert("RGB").quantize(COLOURS, dither=0)
    picture.save(to, optimize=True)


def main(names: list[str]) -> None:
    """All pictures, or those of some pages."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for network in (googlenet, encoder, densenet):
            if names and network.__name__ not in names:
                continue
            html = Path(folder) / f"{network.__name__}.html"
            html.write_text(page(network), encoding="utf-8")
            for name, (of, fragment, size) in PICTURES.items():
                if of == network.__name__:
                    shoot(html, fragment, size, FOLDER / f"{name}.png")
                    print(f"{name}.png: {os.path.getsize(FOLDER / f'{name}.png') / 1000:.0f} KB")


if __name__ == "__main__":
    main(sys.argv[1:])
