"""The few sizes with a kernel of their own: those of the same loops share one."""

from types import SimpleNamespace

import numpy as np
import pytest
from symbolic_programs import UNKNOWN, N, named

import selfbyoc
from selfbyoc import op
from selfbyoc.codegen.symbolic import kernel
from selfbyoc.codegen.symbolic.learn import Example, learnt
from selfbyoc.codegen.symbolic.single_sizes import kernels_alone
from selfbyoc.errors import SymbolicError
from selfbyoc.ir.emit import emit
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tir.allocations import has_open_registers
from selfbyoc.tvm import Schedule, child_blocks, te, tir, tvm
from selfbyoc.tvm.symbolic import size_variable

SIZES = (2, 3, 5, 8)


def scheduled(size, change):
    x = te.placeholder((size, 16), "float32", "x")
    y = te.compute((size, 16), lambda i, j: x[i, j] + tir.const(1.0, "float32"), "y")
    sch = Schedule(tvm.IRModule({"main": te.create_prim_func([x, y])}))
    (block,) = child_blocks(sch)
    change(sch, block, size)
    return sch.mod["main"]


def alone(change, sizes=SIZES):
    """The sizes that share a kernel, by this schedule."""
    maker = SimpleNamespace(
        around=lambda main, size, fixed: iter([{main: size}]),
        alone=lambda sizes: Example(sizes, scheduled(sizes["n"], change)),
        no_kernel=lambda what: SymbolicError(what),
    )
    found = list(kernels_alone(maker, "n", sizes, {}, lambda size: {}, []))
    for own, one in found:
        assert {e.sizes["n"] for e in one.examples} == set(own)
    return [tuple(own) for own, _ in found]


def vectors(sch, block, size):
    sch.vectorize(sch.get_loops(block)[1])


def even_ones_in_parallel(sch, block, size):
    vectors(sch, block, size)
    if size % 2 == 0:
        sch.parallel(sch.get_loops(block)[0])


def unrolled(sch, block, size):
    vectors(sch, block, size)
    sch.unroll(sch.get_loops(block)[0])


def in_registers(sch, block, size):
    """All rows of a column are in `local` memory at once."""
    made = sch.cache_write(block, 0, "local")
    rows, column = sch.get_loops(made)
    sch.reorder(column, rows)
    sch.compute_at(block, column)


def by_no_formula(sch, block, size):
    sch.split(sch.get_loops(block)[1], [None, {2: 8, 3: 2, 5: 4, 8: 8}[size]])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (vectors, [SIZES]),
        (even_ones_in_parallel, [(2, 8), (3, 5)]),
        (unrolled, [(2,), (3,), (5,), (8,)]),
        (in_registers, [(2,), (3,), (5,), (8,)]),
        (by_no_formula, [(2,), (3,), (5,), (8,)]),
    ],
)
def test_which_sizes_share_a_kernel(change, expected):
    assert alone(change) == expected


def test_a_family_serves_what_has_no_kernel_for_all_of_the_other_symbols():
    def example(sizes, told):
        def change(sch, block, size):
            sch.split(sch.get_loops(block)[1], [None, {2: 8, 17: 2}.get(sizes["m"], 4)])

        return Example(sizes, scheduled(sizes["n"], change))

    maker = SimpleNamespace(
        around=lambda main, size, fixed: iter([{"m": m, main: size} for m in (2, 17)]),
        example=example,
        no_kernel=lambda what: SymbolicError(what),
    )
    family = SimpleNamespace(learnt="wide", takes=lambda size: size >= 5)

    def found(*sizes):
        return list(kernels_alone(maker, "n", sizes, {"m": None}, lambda size: {}, [family]))

    assert found(5, 8) == [([5], "wide"), ([8], "wide")]
    with pytest.raises(SymbolicError, match="of n=3"):
        found(3)


@pytest.mark.parametrize(("change", "expected"), [(vectors, False), (in_registers, True)])
def test_registers_of_an_open_size(change, expected):
    found = learnt([Example({"n": size}, scheduled(size, change)) for size in SIZES])
    assert has_open_registers(found.function({"n": size_variable("n")})) is expected


def test_functions_of_a_convolution(monkeypatch):
    """A batch norm's few scales are computed in parallel in the kernel of many images, and only
    there: with a function for each of the first eight there were nine or more.
    """
    counts = []
    parts = kernel._parts

    def noted(*args):
        made = parts(*args)
        counts.append(len(made.functions))
        return made

    monkeypatch.setattr(kernel, "_parts", noted)
    monkeypatch.setattr(kernel, "_learnt", {})
    shapes = {"x": (UNKNOWN, 16, 7, 7), "w": (32, 16, 3, 3)}
    shapes |= dict.fromkeys(("gamma", "beta", "mean", "var"), (32,))

    def program(x, w, gamma, beta, mean, var):
        return op.relu(op.batch_norm(op.conv2d(x, w, padding=1), gamma, beta, mean, var)[0])

    rng = np.random.default_rng(0)
    params = {
        name: rng.uniform(0.5, 1.5, shape).astype("float32")
        for name, shape in shapes.items()
        if name != "x"
    }
    mod = named(emit(program, shapes), {"x": (N, 16, 7, 7)})
    library = selfbyoc.build(mod, params=params, cache=False)
    assert library.report.counts == {"conv2d_batch_norm_relu": 1}
    assert len(counts) == 1
    assert counts[0] < 8
    for size in (*range(1, 10), 17):
        static = selfbyoc.build(
            emit(program, {**shapes, "x": (size, 16, 7, 7)}), params=params, composites=[]
        )
        x = rng.standard_normal((size, 16, 7, 7)).astype("float32")
        wanted = np.asarray(static(x)[0])
        assert first_wrong(library(x)[0], wanted, "float32", 16 * 9) is None
