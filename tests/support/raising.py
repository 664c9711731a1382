"""What the tests of raising share, and the tool that writes their table: cases of the built-in
composites as PrimFuncs in other layouts, and graphs built by TVM alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from harness import model, random_args
from layouts import moved, permuted

from selfbyoc import op_info, partition_for_tefuse
from selfbyoc.analysis.kernels import Kernel, kernels
from selfbyoc.codegen.info.layout_map import INNER, OUTER, LayoutMap, Part
from selfbyoc.codegen.info.op_info import recorded_of
from selfbyoc.codegen.raising.parameter_layouts import index_map, with_parameter_layouts
from selfbyoc.graph import Value
from selfbyoc.ir.generation import rewritten
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.runtime.tolerance import longest_reduction
from selfbyoc.tvm import GENERATION, tvm


def blocked(ndim: int, **factors: int) -> LayoutMap:
    """Axes split, by `a<axis>=factor`; the inner halves come last, in this order."""
    split = {int(name[1:]): factor for name, factor in factors.items()}
    outer = [Part(a, OUTER, split[a]) if a in split else Part(a) for a in range(ndim)]
    return LayoutMap((*outer, *(Part(a, INNER, f) for a, f in split.items())))


# Layouts to move to, by that of the op.
IMAGES = {
    "NCHW": {
        "NHWC": permuted(0, 2, 3, 1),
        "NCHW4c": blocked(4, a1=4),
        "NCHW16c": blocked(4, a1=16),
    },
    "NHWC": {
        "NCHW": permuted(0, 3, 1, 2),
        "NHWC4c": blocked(4, a3=4),
        "NHWC16c": blocked(4, a3=16),
    },
}
KERNELS = {
    "OIHW": {"HWIO": permuted(2, 3, 1, 0), "OIHW4i4o": blocked(4, a1=4, a0=4),
             "OIHW16o": blocked(4, a0=16)},
    "HWIO": {"OIHW": permuted(3, 2, 0, 1), "HWIO4i4o": blocked(4, a2=4, a3=4),
             "HWIO16o": blocked(4, a3=16)},
    "IOHW": {"OIHW": permuted(1, 0, 2, 3), "IOHW4i4o": blocked(4, a0=4, a1=4),
             "IOHW16o": blocked(4, a1=16)},
}  # fmt: skip


def others(ndim: int) -> dict[str, LayoutMap]:
    """Of a tensor without letters: its last two axes turned, the one before the last split, the
    last split.
    """
    found = {}
    if ndim >= 2:
        found["turned"] = permuted(*range(ndim - 2), ndim - 1, ndim - 2)
        found["rows by 4"] = blocked(ndim, **{f"a{ndim - 2}": 4})
    found["last by 4"] = blocked(ndim, **{f"a{ndim - 1}": 4})
    return found


def kernel_of(composite: Any, case: Any) -> Kernel:
    """The kernel of a case, its weights unpacked."""
    mod = model(composite, case, random_args(case))
    parted = partition_for_tefuse(mod, composites=[composite], pack=False)
    return next(iter(kernels(parted)))


@dataclass(frozen=True)
class Cell:
    """Parameters of a function in other layouts."""

    role: str  # "input", "weight", "output", "all"
    layout: str
    maps: Mapping[int, LayoutMap]


def cells(func: Any) -> list[Cell]:
    """An input, a weight, the output in other layouts, those that fit; and of each the first."""
    infos, recorded = op_info(func), recorded_of(func)
    first = len(recorded.accesses.params) - len(recorded.results)
    shapes = [recorded.accesses.shapes[b] for b in recorded.accesses.params]
    read = dict.fromkeys(s.index for i in infos for s in i.sources if s.kind == "param")
    big = [p for p in read if len(shapes[p]) >= 2]
    roles = {"input": big[:1], "weight": big[1:2], "output": [first]}
    found = [
        Cell(role, name, {param: layout})
        for role, params in roles.items()
        for param in params
        for name, layout in _layouts(infos, role, len(shapes[param])).items()
        if _fits(shapes[param], layout)
    ]
    firsts = {cell.role: cell for cell in reversed(found)}
    together = {p: m for cell in firsts.values() for p, m in cell.maps.items()}
    names = ", ".join(firsts[role].layout for role in roles if role in firsts)
    return [*found, *([Cell("all", names, together)] if len(firsts) > 1 else [])]


def _layouts(infos: Sequence[Any], role: str, ndim: int) -> dict[str, LayoutMap]:
    names = ("kernel_layout",) if role == "weight" else ("data_layout", "layout")
    letters = next((str(i.attrs[n]) for i in infos for n in names if n in i.attrs), "")
    known = KERNELS if role == "weight" else IMAGES
    return known[letters] if ndim == 4 and letters in known else others(ndim)


def _fits(shape: Sequence[int], layout: LayoutMap) -> bool:
    splits = {p.axis: p.factor for p in layout.parts if p.half != "whole"}
    return all(shape[a] % f == 0 and shape[a] > f for a, f in splits.items())


def transformed(func: Any, cell: Cell) -> Any:
    """The function with its parameters in a cell's layouts."""
    return with_parameter_layouts(func, {p: index_map(m) for p, m in cell.maps.items()})


# ---- numbers


def arrays_for(kernel: Kernel, case: Any) -> list[np.ndarray]:
    """Arguments of a kernel: its constants as in the model, what the case draws where it is that
    of the same name and type, else seeded ones.
    """
    drawn = random_args(case)
    rng = np.random.default_rng(5)
    constants: Mapping[int, Any] = kernel.calls[0] if kernel.calls else {}
    names = {value: name for name, value in kernel.match.args.items()}
    found = []
    for i, value in enumerate(kernel.source.graph.inputs):
        array = np.asarray(constants[i]) if i in constants else drawn.get(names.get(value, ""))
        if array is None or (array.shape, str(array.dtype)) != (value.shape, value.dtype):
            array = _random(rng, value, names.get(value, value.name))
        found.append(array)
    return found


def _random(rng: np.random.Generator, value: Value, name: str) -> np.ndarray:
    if value.scalar is not None:
        return np.full(value.shape, value.scalar, value.dtype)
    if value.dtype == "bool":
        return rng.integers(0, 2, value.shape).astype(bool)
    if "int" in value.dtype:
        info = np.iinfo(value.dtype)
        low, high = (info.min, info.max) if info.bits == 8 else (-1000, 1000)
        return rng.integers(low, high, value.shape, endpoint=True).astype(value.dtype)
    found = rng.standard_normal(value.shape)
    is_positive = name.startswith("var") or "scale" in name
    return (np.abs(found) + 0.1 if is_positive else found).astype(value.dtype)


def reference(kernel: Kernel, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the kernel's ops compute, in NumPy."""
    wide = [a.astype("float64") if a.dtype.kind == "f" else a for a in arrays]
    return evaluate(kernel.source.graph, wide)


def reduction_of(kernel: Kernel) -> int:
    """How many products a result is of, for the tolerance; what a recurrent op rounds in one step,
    the next ones take up, and places in an image are rounded by as much as it is long.
    """
    ops = kernel.source.graph.ops
    pixels = [max(c.inputs[0].shape[2:]) for c in ops if c.kind == "resize2d"]
    steps = [c.inputs[0].shape[0] for c in ops if c.kind in ("gru", "lstm", "peephole_lstm", "rnn")]
    return longest_reduction(kernel.source.graph) * max([*steps, *pixels, 1])


def laid_out(arrays: Sequence[np.ndarray], cell: Cell | None, first: int = 0) -> list[np.ndarray]:
    """Arguments, or results from parameter `first` on, as the function of a cell has them."""
    found = list(arrays)
    for param, layout in (cell.maps if cell else {}).items():
        if 0 <= param - first < len(found):
            found[param - first] = np.ascontiguousarray(moved(found[param - first], layout))
    return found


def with_merged_rows(mod: Any) -> Any:
    """Products of two axes: TVM's schedules on CPUs know no others (docs/makers/tvm-notes.md)."""

    def merged(made, to):
        shape = to.shape(made.call)
        if made.kind != "dense" or len(shape) == 2:
            return None
        x, weight = made.args
        rows = to.emit("reshape", x, shape=(math.prod(shape[:-1]), to.shape(x)[-1]))
        return to.emit("reshape", to.again(made, [rows, weight]), shape=tuple(shape))

    return rewritten(tvm.relay.transform.InferType()(mod), merged)


def run_by_tvm(mod: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """TVM's own build of a module without external functions."""
    if GENERATION == "relay":
        from tvm import relay
        from tvm.contrib import graph_executor

        with tvm.transform.PassContext(opt_level=2):
            lib = relay.build(with_merged_rows(mod), target="llvm")
        machine = graph_executor.GraphModule(lib["default"](tvm.cpu()))
        for param, array in zip(mod["main"].params, arrays, strict=True):
            machine.set_input(param.name_hint, array)
        machine.run()
        return [machine.get_output(i).numpy() for i in range(machine.get_num_outputs())]
    from tvm import relax

    built = tvm.compile(mod, tvm.target.Target("llvm"))
    found = relax.VirtualMachine(built, tvm.cpu())["main"](*map(tvm.runtime.tensor, arrays))
    return [found.numpy()] if hasattr(found, "numpy") else [f.numpy() for f in found]
