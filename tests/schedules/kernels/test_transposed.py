"""Transposed convolutions: what is taken and what is not, as what they are computed, the write."""

import re

import numpy as np
import pytest
from harness import assert_close, cpus, run_case

import selfbyoc
from selfbyoc import BUILTIN, explain, op
from selfbyoc.analysis.bounds.bounds import Plan, of_cases
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.language.case import Case
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.schedules.composites.conv_transpose import conv1d_transpose, conv2d_transpose
from selfbyoc.schedules.kernels.conv.transposed.plan import sides
from selfbyoc.tir.interleaves import with_interleaves
from selfbyoc.tvm import (
    GENERATION,
    Schedule,
    child_blocks,
    get_func,
    make_target,
    te,
    tensor,
    tir,
    tvm,
)
from selfbyoc.tvm.build import build_module
from selfbyoc.tvm.config import kernel_config


def bare(**attrs):
    return lambda x, weight: op.conv2d_transpose(x, weight, **attrs)


def scattered(x, w, stride, pads, more):
    """The definition, element by element."""
    (_, channels, height, width), (_, out, *kernel) = x.shape, w.shape
    rows, columns = (
        (e - 1) * stride - 2 * pads + k + more for e, k in zip((height, width), kernel, strict=True)
    )
    y = np.zeros((x.shape[0], out, rows, columns))
    for c, a, b, i, j in np.ndindex(channels, height, width, *kernel):
        row, column = a * stride + i - pads, b * stride + j - pads
        if 0 <= row < rows and 0 <= column < columns:
            y[:, :, row, column] += x[:, c, a, b, None] * w[None, c, :, i, j]
    return y


@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "more"), [(3, 2, 1, 1), (2, 2, 0, 0), (5, 3, 2, 1), (1, 3, 0, 2)]
)
def test_the_meaning(kernel, stride, pads, more):
    rng = np.random.default_rng(kernel)
    x, w = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((3, 2, kernel, kernel))
    program = bare(strides=stride, padding=pads, output_padding=more)
    graph = ir.read(emit(program, {"x": x.shape, "weight": w.shape})["main"])
    (found,) = evaluate(graph, [x, w])
    np.testing.assert_allclose(found, scattered(x, w, stride, pads, more), atol=1e-12)


REFUSED = {
    "two groups": ((8, 4, 3, 3), {"groups": 2}, "only one group is scheduled, found 2"),
    "dilated": (
        (8, 6, 3, 3),
        {"dilation": 2},
        r"only a dilation of 1 is scheduled, found \(2",
    ),
    "narrower than a step": (
        (8, 6, 12, 3),
        {"strides": (12, 2), "padding": (25, 0, 25, 0)},
        r"each step of \(12, 2\) needs a pixel, found \(10, 13\)",
    ),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused(name):
    weight, attrs, reason = REFUSED[name]
    mod = emit(bare(**{"strides": 2, **attrs}), {"x": (1, 8, 5, 6), "weight": weight})
    report = explain(mod).report
    assert report.counts == {}
    assert [r for r in report.records if r.status == "refused"]
    assert re.search(reason, str(report))
    if attrs.get("dilation") and GENERATION == "relay":
        return  # 0.17's own strategy takes none
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(s).astype("float32") for s in ((1, 8, 5, 6), weight)]
    (wanted,) = evaluate(ir.read(mod["main"]), args)
    np.testing.assert_allclose(selfbyoc.build(mod)(*args)[0], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", cpus("llvm -mcpu=haswell", "llvm -mcpu=x86-64"))
def test_other_cpus(target):
    names = {"3x3", "uneven", "gaps"}
    for case in (c for c in conv2d_transpose.cases if c.name in names):
        run = run_case(conv2d_transpose, case, target=target)
        assert run.counts == {"conv2d_transpose": 1}
        assert_close(run)


@pytest.mark.parametrize("seed", range(4))
def test_random_shapes(seed):
    rng = np.random.default_rng(seed)
    kernel = [int(rng.integers(1, 6)) for _ in "hw"]
    strides = tuple(int(rng.integers(1, 4)) for _ in "hw")
    pads = tuple(int(rng.integers(0, max(1, k - 1))) for k in (*kernel, *kernel))
    more = tuple(int(rng.integers(0, s)) for s in strides)
    channels, out = int(rng.integers(1, 9)), int(rng.integers(1, 20))
    case = Case(
        bare(strides=strides, padding=pads, output_padding=more), name=f"random-{seed}",
        x=(int(rng.integers(1, 3)), channels, *map(int, rng.integers(4, 12, 2))),
        weight=(channels, out, *kernel), constants=("weight",),
    )  # fmt: skip
    run = run_case(conv2d_transpose, case)
    assert run.counts == {"conv2d_transpose": 1}
    assert_close(run)


@pytest.mark.parametrize("stride", [1, 2, 3, 5])
@pytest.mark.parametrize("window", [1, 2, 3, 4, 7])
def test_every_tap_is_multiplied_once(window, stride):
    """Nothing is multiplied by the zeros of a spread image, and no kernel is filled up."""
    found = sides(window, stride)
    assert sum(side.count * side.taps for side in found) == window
    phases = [n for side in found for n in range(side.first, side.first + side.count)]
    assert phases == list(range(min(window, stride)))


def test_of_a_network():
    """A decoder's step: its bias and activation are in the kernel, on both sides of a skip."""

    def program(x, w, b, w1, b1):
        up = op.relu(op.bias_add(op.conv2d_transpose(x, w, strides=2), b))
        return op.relu(op.bias_add(op.conv2d(up, w1, padding=1), b1))

    shapes = {"x": (1, 8, 6, 6), "w": (8, 6, 2, 2), "b": (6,), "w1": (5, 6, 3, 3), "b1": (5,)}
    rng = np.random.default_rng(2)
    args = {name: rng.standard_normal(s).astype("float32") for name, s in shapes.items()}
    x = args.pop("x")
    mod = emit(program, shapes, args)
    library = selfbyoc.build(mod)
    assert library.report.counts == {"conv2d_transpose": 1, "conv2d": 1}
    graph = ir.read(emit(program, shapes)["main"])
    (wanted,) = evaluate(graph, [x, *args.values()])
    np.testing.assert_allclose(library(x)[0], wanted, rtol=1e-4, atol=1e-4)


def test_rows_with_the_bias_of_an_importer():
    case = next(c for c in conv1d_transpose.cases if c.name == "vocoder")
    run = run_case(conv1d_transpose, case, composites=BUILTIN)
    assert run.counts == {"conv1d_transpose": 1}
    assert_close(run)


def interleaving(stride, lanes):
    """y[stride * x + phase] = x_phase[x], in vectors of x: -> the function, before and after."""
    phases = te.placeholder((stride, 3 * lanes), name="x")
    result = te.compute(
        (3 * lanes * stride,),
        lambda i: phases[tir.floormod(i, stride), tir.floordiv(i, stride)],
        name="y",
    )
    sch = Schedule(te.create_prim_func([phases, result]))
    (block,) = child_blocks(sch)
    (loop,) = sch.get_loops(block)
    pixels, phase = sch.split(loop, [None, stride])
    group, lane = sch.split(pixels, [None, lanes])
    sch.reorder(group, phase, lane)
    sch.unroll(phase)
    sch.vectorize(lane)
    return sch.mod


@pytest.mark.parametrize(("stride", "lanes"), [(2, 8), (3, 4), (4, 4), (2, 7), (5, 4)])
def test_an_interleaved_write(stride, lanes):
    target = make_target("llvm -mcpu=x86-64")
    values = np.arange(3 * lanes * stride, dtype="float32").reshape(stride, 3 * lanes)
    seen = []

    def last(func):
        done = with_interleaves(func)
        seen.append(str(done) != str(func))
        return done

    with tvm.transform.PassContext(opt_level=3, config=kernel_config(target)):
        module = build_module(interleaving(stride, lanes), target, last)
    out = tensor(np.zeros(values.size, "float32"))
    get_func(module, "main")(tensor(values), out)
    np.testing.assert_array_equal(out.numpy(), values.T.ravel())
    assert any(seen) == (stride <= 4)


@pytest.mark.parametrize("composite", [conv1d_transpose, conv2d_transpose], ids=lambda c: c.name)
def test_every_case_builds_for_older_cpus(composite):
    """As scheduled: where a schedule does not build, the default one takes over."""
    found = list(of_cases([composite], Plan(make_target("llvm"), is_run=False)))
    assert len(found) >= len(composite.cases) - 1
    assert [(each.case, each.runs) for each in found if not each.ok] == []
