"""Kernels of an NVIDIA GPU and PyTorch's, timed side by side on it; docs/reports/gpu-times.md.

    python tools/gpu_times.py [--json FILE] [--only TEXT]

Both are replayed from a CUDA graph, so that no launch from Python is timed, on the same arrays; a
median of repeats, in microseconds. PyTorch computes float32 as ours does, without TF32. What
differs from its float64 by more than a float32's sums may is told as wrong and not timed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import torch
import triton  # type: ignore[import-not-found,unused-ignore]

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.gpu import cuda
from selfbyoc.analysis.verify.verification import subjects_of
from selfbyoc.errors import SelfbyocError
from selfbyoc.tvm import GENERATION, make_target

REPEATS = 50
F = torch.nn.functional
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Pair:
    """The same computation by both."""

    name: str
    program: Callable[..., Any]  # of our ops
    torch: Callable[..., Any]
    shapes: Sequence[Shapes]


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), 0.125)
    return op.batch_matmul(op.softmax(scores), v)


def sdpa(q: Any, k: Any, v: Any) -> Any:
    """With the heads as a batch of one."""
    return F.scaled_dot_product_attention(q[None], k[None], v[None], scale=0.125)[0]


def layer_norm_dense(x: Any, g: Any, b: Any, w: Any, c: Any) -> Any:
    return op.bias_add(op.dense(op.layer_norm(x, g, b), w), c)


def norm_linear(x: Any, g: Any, b: Any, w: Any, c: Any) -> Any:
    return F.linear(F.layer_norm(x, g.shape, g, b), w, c)


def two_convolutions(x: Any, w: Any, v: Any) -> Any:
    return op.relu(op.conv2d(op.relu(op.conv2d(x, w, padding=1)), v, padding=1))


def convolutions(x: Any, w: Any, v: Any) -> Any:
    return F.relu(F.conv2d(F.relu(F.conv2d(x, w, padding=1)), v, padding=1))


def _heads(heads: int, length: int, width: int = 64) -> Shapes:
    return {name: (heads, length, width) for name in "qkv"}


def _norm(rows: int, inner: int, outer: int) -> Shapes:
    sizes = {"x": (rows, inner), "g": (inner,), "b": (inner,)}
    return {**sizes, "w": (outer, inner), "c": (outer,)}


def _images(count: int, size: int, channels: int) -> Shapes:
    weight = (channels, channels, 3, 3)
    return {"x": (count, channels, size, size), "w": weight, "v": weight}


# The sizes at which people run them: BERT at 128 and 512, a ViT's 8 pictures, GPT-2's 1024.
PAIRS = (
    Pair("attention", attention, sdpa,
         [_heads(12, 128), _heads(12, 512), _heads(96, 197), _heads(12, 1024), _heads(192, 512)]),
    Pair("softmax", lambda x: op.softmax(x), lambda x: F.softmax(x, -1),
         [{"x": (12 * 512, 512)}, {"x": (64, 50257)}]),
    Pair("layer norm", lambda x, g, b: op.layer_norm(x, g, b),
         lambda x, g, b: F.layer_norm(x, g.shape, g, b),
         [{"x": (16384, 768), "g": (768,), "b": (768,)}]),
    Pair("layer norm, dense", layer_norm_dense, norm_linear,
         [_norm(128, 768, 768), _norm(4096, 768, 3072)]),
    Pair("batch_matmul", lambda x, y: op.batch_matmul(x, y, transpose_b=True),
         lambda x, y: x @ y.mT, [{"x": (12, 512, 64), "y": (12, 512, 64)},
                                 {"x": (16, 1024, 1024), "y": (16, 1024, 1024)}]),
    Pair("conv, relu, conv, relu", two_convolutions, convolutions,
         [_images(1, 56, 64), _images(16, 56, 64)]),
)  # fmt: skip


def line(pair: Pair, shapes: Shapes) -> dict[str, Any]:
    """What is found of a computation at these sizes, as data."""
    named = {"name": pair.name, "sizes": shapes, "generation": GENERATION}
    generator = np.random.default_rng(0)
    given = [generator.standard_normal(s, "float32") * 0.3 for s in shapes.values()]
    arrays = [torch.from_numpy(array).cuda() for array in given]
    wanted = pair.torch(*(array.double() for array in arrays))
    try:
        ours = Ours(pair, shapes, arrays, wanted.shape)
    except SelfbyocError as err:
        return {**named, "wrong": str(err)}
    ours()
    torch.cuda.synchronize()
    error = float((ours.result.double() - wanted).norm() / wanted.norm())
    if not error < 1e-5:
        return {**named, "plan": ours.plan, "wrong": f"off by {error:.1e}"}
    compiled = torch.compile(pair.torch)
    runs: dict[str, Callable[[], Any]] = {
        "ours": ours,
        "eager": lambda: pair.torch(*arrays),
        "compiled": lambda: compiled(*arrays),
    }
    return {
        **named,
        "plan": ours.plan,
        "error": error,
        "us": {k: timed(f) for k, f in runs.items()},
    }


class Ours:
    """Our kernels on PyTorch's arrays and its stream."""

    def __init__(self, pair: Pair, shapes: Shapes, arrays: Sequence[Any], result: Any) -> None:
        import cupy

        target = make_target(cuda.serving().target)
        composite = selfbyoc.Composite("chain", pair.program)
        mod = selfbyoc.emit(pair.program, shapes)
        (subject,) = subjects_of(mod, None, target, [composite])
        _, scheduled = subject.kernel.schedule(target)
        self.plan, self.cupy = scheduled.level.plan, cupy
        self.program = cuda.program(subject.kernel.source, target)
        named = dict(zip(shapes, arrays, strict=True))  # a partition has them in its own order
        known = {i: torch.tensor(a, device="cuda") for i, a in subject.constants.items()}
        inputs = enumerate(subject.graph.inputs)
        given = [known[i] if i in known else named[tensor.name] for i, tensor in inputs]
        self.result = torch.full(tuple(result), torch.nan, device="cuda")
        scratch = [cupy.empty(size, "uint8") for size in self.program.made.workspaces]
        self.memory = [*map(cupy.from_dlpack, (*given, self.result)), *scratch]

    def __call__(self) -> None:
        with self.cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            self.program.launch(self.memory)


def timed(call: Callable[[], Any]) -> float:
    """Microseconds, of a graph's replay."""
    return float(triton.testing.do_bench_cudagraph(call, rep=REPEATS, return_mode="median")) * 1e3


def lines(only: str) -> Iterator[dict[str, Any]]:
    for pair in PAIRS:
        for shapes in pair.shapes if only in pair.name else ():
            yield line(pair, shapes)


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    print(cuda.serving(), f"PyTorch {torch.__version__}", sep="; ", flush=True)
    for found in lines(args.only):
        print(json.dumps(found), flush=True)
        if args.json:
            with args.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
