"""Write what `selfbyoc.explain` says of three programs: `python tools/reports.py docs/reports`.

GoogLeNet from ONNX; the RFC's program; a transformer block, from PyTorch where TVM imports
torch.export (Relax), in the vocabulary elsewhere.
"""

from __future__ import annotations

import inspect
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

import selfbyoc
from selfbyoc import op
from selfbyoc.commands import tables
from selfbyoc.commands.explaining import show_all, show_short
from selfbyoc.ir.emit import emit
from selfbyoc.models.onnx_model import import_onnx, light_model
from selfbyoc.tvm import GENERATION

TARGET = "llvm"  # not this machine's CPU: the same text everywhere
WIDTH, ROWS, HEADS = 64, 16, 4  # of the transformer block


def googlenet() -> Any:
    """As the demonstration imports it."""
    return import_onnx(light_model("inception_v1"))


def rfc() -> Any:
    """conv2d-relu-conv2d-relu, which TVM refuses to fuse."""
    shapes = {"x": (1, 3, 224, 224), "w1": (32, 3, 3, 3), "w2": (32, 32, 3, 3)}

    def program(x: Any, w1: Any, w2: Any) -> Any:
        hidden = op.relu(op.conv2d(x, w1, padding=1))
        return op.relu(op.conv2d(hidden, w2, padding=1))

    return emit(program, {name: (shape, "float32") for name, shape in shapes.items()})


def transformer() -> Any:
    """layer_norm, attention and an MLP with GELU, each behind a residual."""
    return _from_torch() if GENERATION == "relax" else _in_the_vocabulary()


def _from_torch() -> Any:
    import torch
    from torch import nn
    from tvm.relax.frontend.torch import from_exported_program  # noqa: TID251

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            batch, rows, width = x.shape
            qkv = self.qkv(self.norm1(x)).reshape(batch, rows, 3, HEADS, -1)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            y = nn.functional.scaled_dot_product_attention(q, k, v)
            x = x + self.out(y.transpose(1, 2).reshape(batch, rows, width))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    torch.manual_seed(0)
    with torch.no_grad():
        exported = torch.export.export(Block().eval(), (torch.randn(1, ROWS, WIDTH),))
        return from_exported_program(exported)


def _heads(x: Any, axes: tuple[int, ...] = (1, 0, 2)) -> Any:
    return op.transpose(op.reshape(x, shape=(ROWS, HEADS, WIDTH // HEADS)), axes=axes)


def _block(x: Any, **w: Any) -> Any:
    def linear(y: Any, name: str) -> Any:
        return op.bias_add(op.dense(y, w[f"w_{name}"]), w[f"b_{name}"])

    y = op.layer_norm(x, w["gamma1"], w["beta1"])
    q, k, v = (_heads(linear(y, name)) for name in "qkv")
    scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), (WIDTH // HEADS) ** -0.5)
    y = op.transpose(op.batch_matmul(op.softmax(scores), v), axes=(1, 0, 2))
    x = op.add(x, linear(op.reshape(y, shape=(ROWS, WIDTH)), "out"))
    y = op.layer_norm(x, w["gamma2"], w["beta2"])
    return op.add(x, linear(op.gelu(linear(y, "up")), "down"))


def _in_the_vocabulary() -> Any:
    sizes = {"q": 1, "k": 1, "v": 1, "out": 1, "up": 4}
    shapes: dict[str, tuple[int, ...]] = {"x": (ROWS, WIDTH)}
    shapes |= {f"{name}{i}": (WIDTH,) for name in ("gamma", "beta") for i in (1, 2)}
    for name, times in sizes.items():
        shapes |= {f"w_{name}": (times * WIDTH, WIDTH), f"b_{name}": (times * WIDTH,)}
    shapes |= {"w_down": (WIDTH, 4 * WIDTH), "b_down": (WIDTH,)}

    def program(**named: Any) -> Any:
        return _block(**named)

    # emit reads the names of the arguments off the function.
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, kind) for name in shapes]
    program.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return emit(program, {name: (shape, "float32") for name, shape in shapes.items()})


PROGRAMS: dict[str, Callable[[], Any]] = {
    "googlenet": googlenet, "rfc": rfc, "transformer": transformer,
}  # fmt: skip


def text(name: str) -> str:
    """One report: in short; of the small programs also each kernel, and every record."""
    found = selfbyoc.explain(PROGRAMS[name](), target=TARGET)
    console = Console(width=100, file=io.StringIO(), record=True)
    console.print(f"{name}, {GENERATION.capitalize()}\n")
    show_short(console, found)
    if name != "googlenet":
        for record in found.report.matched:
            console.print(f"\nInside {record.composite} at {record.root}", style="bold")
            console.print(tables.inside_table(record))
        console.print("\nEvery decision", style="bold")
        show_all(console, found)
    lines = console.export_text().splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def main(folder: Path) -> None:
    """Write them all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        (folder / f"{name}.txt").write_text(text(name), encoding="utf-8")
        print(folder / f"{name}.txt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
