"""PyTorch's own table of ops, with its samples, through `from_torch`: docs/torch-ops.md.

    python tools/torch_ops.py [--only PATTERN] [--samples N] [--seconds N]    this generation's half
    python tools/torch_ops.py --document     the document anew, from the data of both generations

Needs the packages torch and expecttest. Each sample is imported, built and called as a module of
one op; what PyTorch gives is right. Left out is what draws at random or returns memory as it was.
Exit status 1 when a result is wrong, or an error has no type.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from typing import Any

import torch
from op_by_op import (
    BAD,
    REFUSED,
    REPORTS,
    Judgement,
    counts,
    in_a_process,
    judged,
    write_between_marks,
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree

import selfbyoc
from selfbyoc.tvm import GENERATION, tvm

DOCUMENT = REPORTS.parent / "torch-ops.md"
# In turns of preference: what an op is tried with. Complex numbers are not TVM's.
DTYPES = (torch.float32, torch.int64, torch.bool)
# Aliases of tests that stand in the table anyway; and what returns memory as it was.
_LEFT_OUT = ("_refs.*", "jiterator*", "ops.*", "torch.ops.*", "*empty*")
Row = tuple[str, int, str, str]  # op, sample, status, text


def data_file(generation: str) -> Any:
    """Where the results of a generation are kept."""
    return REPORTS / f"torch-ops-{generation}.json"


def ops() -> dict[str, Any]:
    """PyTorch's ops by name, such as "nn.functional.interpolate: bilinear"."""
    named = {": ".join(filter(None, (op.name, op.variant_test_name))): op for op in op_db}
    return {
        name: named[name]
        for name in sorted(named)
        if not any(fnmatch(name, pattern) for pattern in _LEFT_OUT)
        and any(dtype in named[name].dtypes for dtype in DTYPES)
    }


@dataclass
class Sample:
    """One call of an op: the tensors among its arguments are the model's inputs."""

    op: Any
    arguments: list[Any]
    tree: Any

    @classmethod
    def of(cls, op: Any, sample: Any) -> Sample:
        """From PyTorch's own: input, positional and named arguments."""
        return cls(op, *_pytree.tree_flatten((sample.input, sample.args, sample.kwargs)))

    @property
    def tensors(self) -> list[Any]:
        """The inputs."""
        return [a for a in self.arguments if isinstance(a, torch.Tensor)]

    def called(self, tensors: Sequence[Any]) -> Any:
        """What the op gives for these tensors."""
        left = iter(tensors)
        flat = [next(left) if isinstance(a, torch.Tensor) else a for a in self.arguments]
        first, rest, named = _pytree.tree_unflatten(flat, self.tree)
        return self.op(first, *rest, **named)

    def __str__(self) -> str:
        texts = (
            f"{str(a.dtype).removeprefix('torch.')}{list(a.shape)}"
            if isinstance(a, torch.Tensor)
            else str(a)
            for a in self.arguments
        )
        return ", ".join(texts)[:160]


class _Module(torch.nn.Module):
    def __init__(self, sample: Sample) -> None:
        super().__init__()
        self.sample = sample

    def forward(self, *tensors: Any) -> Any:
        """As the sample."""
        return self.sample.called(tensors)


def samples(op: Any, count: int) -> Iterator[Sample]:
    """Up to so many of PyTorch's samples, spread over all of them."""
    torch.manual_seed(0)
    dtype = next(d for d in DTYPES if d in op.dtypes)
    found = list(op.sample_inputs("cpu", dtype, requires_grad=False))
    chosen = sorted({round(i * (len(found) - 1) / max(count - 1, 1)) for i in range(count)})
    return (Sample.of(op, found[i]) for i in chosen if i < len(found))


def _tried(op: Any, count: int) -> list[Judgement]:
    return [judgement for sample in samples(op, count) for judgement in _once(sample)]


def _once(sample: Sample) -> list[Judgement]:
    """The judgement; none where PyTorch has no result that stays the same, or of no array."""
    wanted = _given(sample)
    is_dense = all(t.layout == torch.strided for t in sample.tensors)
    if wanted is None or not sample.tensors or not is_dense:
        return []
    module = _Module(sample).eval()
    try:
        program = torch.export.export(module, tuple(sample.tensors))
    except Exception:  # whatever its exporter raises; no model gets so far
        return []
    arrays = [t.detach().contiguous().numpy() for t in sample.tensors]

    def results() -> Any:
        source, inputs = (program, ()) if GENERATION == "relax" else (module, sample.tensors)
        library = selfbyoc.build(selfbyoc.from_torch(source, inputs), cache=False)
        # What the op does not read is no input.
        return library(*arrays[: len(library.inputs)])

    status, text = judged(results, wanted, 1e-3)
    return [(status, f"{text}; {sample}" if status in BAD else text)]


def _given(sample: Sample) -> list[Any] | None:
    """What PyTorch gives, twice the same; None for other things than arrays of numbers."""
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        try:
            copies = [t.clone() for t in sample.tensors]
            leaves = _pytree.tree_leaves(sample.called(copies))
            found.append([leaf.detach().numpy().copy() for leaf in leaves])
        except (AttributeError, RuntimeError, TypeError, ValueError, NotImplementedError):
            return None
    same = all(a.tobytes() == b.tobytes() for a, b in zip(*found, strict=True))
    is_real = all(a.dtype.kind in "biuf" for a in found[0])
    return found[0] if same and is_real else None


def _document() -> None:
    """The part of docs/torch-ops.md between the marks."""
    paths = {g: data_file(g) for g in ("relax", "relay")}
    data = {g: json.loads(path.read_text()) for g, path in paths.items() if path.exists()}
    lines = counts(data, {"tvm": "TVM", "torch": "PyTorch, whose samples they are"})
    for generation, held in data.items():
        rows = held["rows"]
        refused = Counter(row[0] for row in rows if row[2] == REFUSED)
        tried = Counter(row[0] for row in rows)
        whole = sorted(name for name, count in refused.items() if count == tried[name])
        part = sorted(f"{n} ({c} of {tried[n]})" for n, c in refused.items() if c < tried[n])
        lines += ["", f"**{generation}**, {len(tried)} ops."]
        lines += ["", "Refused: " + ", ".join(f"`{name}`" for name in whole) + "."]
        lines += ["", "Refused in part: " + ", ".join(part) + "."]
        lines += ["", *(f"- {row[2]}: `{row[0]}`, {row[3]}" for row in rows if row[2] in BAD)]
    write_between_marks(DOCUMENT, lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--samples", type=int, default=5, help="of each op")
    parser.add_argument("--seconds", type=int, default=120, help="of each op")
    parser.add_argument("--resume", action="store_true", help="only ops without a result")
    parser.add_argument("--document", action="store_true", help="write the document, try nothing")
    return parser.parse_args()


def main() -> int:
    """Try what is asked for, and write the document."""
    args = _arguments()
    path = data_file(GENERATION)
    is_part = args.only or args.resume or args.document
    kept = json.loads(path.read_text())["rows"] if path.exists() and is_part else []
    rows: list[Row] = [tuple(row) for row in kept]
    for name, op in ops().items() if not args.document else ():
        if args.only and not any(fnmatch(name, pattern) for pattern in args.only):
            continue
        if args.resume and any(row[0] == name for row in rows):
            continue
        found = in_a_process(partial(_tried, op, args.samples), args.seconds)
        rows = [row for row in rows if row[0] != name]
        rows += [(name, i, *judgement) for i, judgement in enumerate(found)]
        _keep(path, rows)
        for judgement in found:
            if judgement[0] in BAD:
                print(name, *judgement, flush=True)
    _document()
    print(Counter(row[2] for row in rows))
    return int(any(row[2] in BAD for row in rows))


def _keep(path: Any, rows: Sequence[Row]) -> None:
    versions = {"tvm": tvm.__version__, "torch": torch.__version__.partition("+")[0]}
    path.write_text(json.dumps({**versions, "rows": sorted(rows)}, indent=0) + "\n")


if __name__ == "__main__":
    sys.exit(main())
