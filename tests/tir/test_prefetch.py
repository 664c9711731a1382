"""Prefetch of packed weights: in the code where a schedule asks for it; results stay the same."""

import itertools
import json

import numpy as np
import pytest

import selfbyoc
from selfbyoc import host_target, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.ir.emit import emit
from selfbyoc.runtime.tolerance import tolerance
from selfbyoc.schedules.steps.loops import prefetch_next
from selfbyoc.tir.loop_nests import loop_nests
from selfbyoc.tir.lowering import finished
from selfbyoc.tir.prefetch import AHEAD, with_prefetch
from selfbyoc.tir.prefetch_early import with_early
from selfbyoc.tvm import (  # fmt: skip
    Analyzer,
    Schedule,
    child_blocks,
    make_target,
    module_source,
    te,
    tir,
    tvm,
)
from selfbyoc.tvm.build import build_module
from selfbyoc.tvm.rewrite import substitute


def dense(rows, count, units):
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(s).astype("float32") for s in ((rows, count), (units, count)))
    mod = emit(lambda x, w: op.dense(x, w), {"x": (rows, count)}, {"w": w})
    return selfbyoc.partition_for_tefuse(mod), x, w


def code(mod, target, form):
    (kernel,) = kernels(mod)
    _, scheduled = kernel.schedule(target)
    func = finished(scheduled.mod["main"], target).with_attr("global_symbol", "main")
    with tvm.transform.PassContext(opt_level=3):
        return module_source(build_module(tvm.IRModule({"main": func}), target), form)


@pytest.mark.parametrize(
    ("shape", "asked"),
    [
        ((64, 384, 96), True),
        ((19, 130 * 3, 80), True),
        ((64, 40, 96), True),  # a panel in one piece
        ((64, 37, 96), False),  # in steps that nothing divides
        ((1, 768, 96), False),
    ],
)
def test_tiles_that_share_a_piece_ask_for_the_next(shape, asked):
    mod, x, w = dense(*shape)
    assert ("llvm.prefetch" in code(mod, host_target(), "ll")) == asked
    wanted = x.astype("float64") @ w.T.astype("float64")
    found = selfbyoc.build(mod)(x)[0]
    bound = tolerance("float32", shape[1]) * np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=bound)


def test_c_has_no_word_for_it():
    mod, *_ = dense(64, 384, 96)
    (kernel,) = kernels(mod)
    target = make_target("c")
    _, scheduled = kernel.schedule(target)
    assert "prefetch(" not in finished(scheduled.mod["main"], target).script()


def scheduled_product(order):
    """Sums [o, e, tile, lane] of inputs * weight [e, o, k, lane], with these loops."""
    x = te.placeholder((3, 8, 8), "float32", name="x")
    weight = te.placeholder((3, 4, 8, 16), "float32", name="weight")
    k = te.reduce_axis((0, 8), name="k")
    sums = te.compute(
        (4, 3, 8, 16),
        lambda o, e, t, lane: te.sum(x[e, t, k] * weight[e, o, k, lane], axis=k),
        name="sums",
    )
    sch = Schedule(te.create_prim_func([x, weight, sums]))
    block = child_blocks(sch)[0]
    o, e, t, lane, k = sch.get_loops(block)
    step, o = sch.split(o, [None, 2])
    outer, t = sch.split(t, [None, 2])
    loops = {"step": step, "e": e, "outer": outer, "k": k, "t": t, "o": o, "lane": lane}
    if "half" in order:
        loops["half"], loops["lane"] = sch.split(lane, [2, None])
    sch.reorder(*(loops[name] for name in order))
    sch.vectorize(loops["lane"])
    sch.decompose_reduction(block, k)
    return sch, loops


def places(load, values):
    return tuple(int(Analyzer().simplify(substitute(i, values))) for i in load.indices)


def offsets(load, values):
    shape = (3, 4, 8, 16)
    return sum(i * int(np.prod(shape[d + 1 :])) for d, i in enumerate(places(load, values)))


def prefetches(func):
    """The loops around them, the elements whose lines they ask for, and on what condition."""
    (nest,) = [n for n in loop_nests(func.body) if "prefetch(" in str(n[-1].body).split("for ")[0]]
    asks = [s for s in nest[-1].body.seq if type(s).__name__ in ("Evaluate", "IfThenElse")]
    tests = [ask.condition for ask in asks if hasattr(ask, "condition")]
    asks = [ask.then_case if tests else ask for ask in asks]
    loads = [ask.value.args[0].args[0] for ask in asks]
    return nest, loads, tests


def asked_for(func):
    """Piece -> the elements whose lines its runs ask for."""
    nest, asks, tests = prefetches(func)
    sizes = [int(loop.extent) for loop in nest]
    found = {}
    for at_hand in itertools.product(*(range(n) for n in sizes)):
        values = {
            loop.loop_var: tir.const(i, "int32") for loop, i in zip(nest, at_hand, strict=True)
        }
        if any(int(Analyzer().simplify(substitute(where, values))) == 0 for where in tests):
            continue
        found.setdefault(at_hand, []).extend(offsets(load, values) for load in asks)
    return found, sizes


@pytest.mark.parametrize("at", ["outer", "k"])
@pytest.mark.parametrize("outside", [("step", "e"), ("e", "step")])
def test_each_piece_asks_for_every_line_of_the_next_one_once(outside, at):
    sch, loops = scheduled_product([*outside, "outer", "k", "t", "o", "lane"])
    prefetch_next(sch, loops[outside[1]], loops[at], "weight")
    func = with_prefetch(sch.mod["main"])
    runs, sizes = asked_for(func)
    found = {}
    for at_hand, elements in runs.items():
        found.setdefault(at_hand[:2], []).extend(elements)
    pieces = list(itertools.product(range(sizes[0]), range(sizes[1])))
    for piece, after in itertools.pairwise(pieces):
        step, e = after if outside[0] == "step" else after[::-1]
        first = (e * 4 + step * 2) * 8 * 16
        assert sorted(found[piece]) == [first + line * 16 for line in range(16)]


def test_rows_shorter_than_a_line_are_shared_by_the_runs():
    """A piece is half a line of each of 16 rows, as of a vector of 8 in blocks of 16 channels; that
    of the next step is asked for by 32 runs, of which each asks for one line at most.
    """
    sch, loops = scheduled_product(["e", "half", "step", "outer", "k", "t", "o", "lane"])
    prefetch_next(sch, loops["step"], loops["k"], "weight")
    runs, _ = asked_for(with_prefetch(sch.mod["main"]))
    assert {len(elements) for elements in runs.values()} == {1}
    for e, half in itertools.product(range(3), range(2)):
        first = (e * 4 + 2) * 8 * 16 + 8 * half
        found = [runs[at][0] for at in runs if at[:3] == (e, half, 0)]
        assert sorted(found) == [first + row * 16 for row in range(16)]


@pytest.mark.parametrize("mcpu", ["haswell", "skylake-avx512"])
@pytest.mark.parametrize(
    ("image", "out", "asked"),
    [((1, 72, 4, 4), 88, True), ((2, 200, 5, 7), 96, True), ((1, 64, 80, 96), 128, False)],
)
def test_blocks_of_channels_after_a_depthwise_convolution_ask(image, out, asked, mcpu):
    """Where a task's weights are its own; chunks of rows share them."""
    rng = np.random.default_rng(5)
    shapes = {"d": (image[1], 1, 3, 3), "p": (out, image[1], 1, 1)}
    x, d, p = (rng.standard_normal(s, "float32") for s in (image, *shapes.values()))

    def program(x, d, p):
        return op.conv2d(op.conv2d(x, d, padding=1, groups=image[1]), p)

    mod = emit(program, {"x": image}, {"d": d, "p": p})
    mod = selfbyoc.partition_for_tefuse(mod)
    assert selfbyoc.report(mod).counts == {"depthwise_pointwise": 1}
    target = make_target({"kind": "llvm", "mcpu": mcpu, "num-cores": 2})
    (kernel,) = kernels(mod)
    _, scheduled = kernel.schedule(target)
    nests = loop_nests(scheduled.mod["main"].body)
    assert any(AHEAD in (nest[-1].annotations or {}) for nest in nests) == asked
    assert not asked or "llvm.prefetch" in code(mod, target, "ll")
    padded = np.pad(x.astype("float64"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    wanted = np.einsum("nchwyx,cyx,oc->nohw", windows, d[:, 0], p[:, :, 0, 0], optimize=True)
    bound = tolerance("float32", 9 * image[1]) * np.abs(wanted).max()
    np.testing.assert_allclose(selfbyoc.build(mod)(x)[0], wanted, rtol=0, atol=bound)


@pytest.mark.parametrize(
    ("image", "channels", "asked"),
    [
        ((1, 480, 7, 7), 128, True),
        ((2, 512, 5, 7), 96, True),
        ((1, 401, 5, 5), 64, True),
        ((1, 48, 7, 7), 48, False),  # pixels are lanes
    ],
)
def test_channels_ask_for_the_next_blocks(image, channels, asked):
    rng = np.random.default_rng(5)
    x, w = rng.standard_normal(image, "float32"), rng.standard_normal((channels, image[1], 1, 1))
    w = w.astype("float32")
    mod = selfbyoc.partition_for_tefuse(emit(lambda x, w: op.conv2d(x, w), {"x": image}, {"w": w}))
    assert selfbyoc.report(mod).counts == {"conv2d": 1}
    target = make_target({"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 2})
    assert ("llvm.prefetch" in code(mod, target, "ll")) == asked
    wanted = np.einsum("nihw,oi->nohw", x.astype("float64"), w[:, :, 0, 0])
    bound = tolerance("float32", image[1]) * np.abs(wanted).max()
    np.testing.assert_allclose(selfbyoc.build(mod)(x)[0], wanted, rtol=0, atol=bound)


@pytest.mark.parametrize(
    ("image", "channels", "lines"),
    [
        ((1, 9, 8, 8), 32, 16),  # pixels as lanes: 8 rows of two vectors
        ((2, 5, 27, 13), 21, 24),  # 6 rows of four; the last tile sticks out of the image
        ((1, 24, 7, 7), 64, 16),  # 4 rows of four vectors, a tile the image
    ],
)
def test_a_residual_is_asked_for_before_the_sums(image, channels, lines):
    rng = np.random.default_rng(6)
    x = rng.standard_normal(image, "float32")
    w = rng.standard_normal((channels, image[1], 1, 1), "float32")
    r = rng.standard_normal((image[0], channels, *image[2:]), "float32")
    mod = emit(lambda x, r, w: op.add(op.conv2d(x, w), r), {"x": image, "r": r.shape}, {"w": w})
    mod = selfbyoc.partition_for_tefuse(mod)
    assert selfbyoc.report(mod).counts == {"conv2d_add": 1}
    (kernel,) = kernels(mod)
    target = make_target({"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 1})
    _, scheduled = kernel.schedule(target)
    func = with_early(scheduled.mod["main"])
    assert func.script().count("prefetch(") == lines
    wanted = np.einsum("nihw,oi->nohw", x.astype("float64"), w[:, :, 0, 0]) + r
    bound = tolerance("float32", image[1]) * np.abs(wanted).max()
    np.testing.assert_allclose(selfbyoc.build(mod)(x, r)[0], wanted, rtol=0, atol=bound)


def test_the_last_piece_prefetches_the_first_of_the_next_panel():
    """k comes in pieces, of which the last is a loop of its own."""
    mod, *_ = dense(64, 384, 96)
    (kernel,) = kernels(mod)
    target = make_target({"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 2})
    stacked, scheduled = kernel.schedule(target)
    plan = stacked.plan
    assert plan.pieces > 1
    nests = loop_nests(scheduled.mod["main"].body)
    found = {str((nest[-1].annotations or {}).get(AHEAD, "")) for nest in nests} - {""}
    back = plan.size * (plan.pieces - 1)
    wanted = [[0, plan.size, 0], [plan.wide, -back, 0]]
    assert sorted(json.loads(text)[1] for text in found) == wanted


def test_rows_of_an_open_number_whose_last_one_is_read_again():
    """The next piece is asked for behind the end, too: a prefetch is no access."""
    n, heads, depth, block = te.var("n"), 2, 32, 8
    rows = te.placeholder((n, heads, depth), "float32", name="rows")
    x = te.placeholder((heads, depth), "float32", name="x")
    k = te.reduce_axis((0, depth), name="k")

    def element(o, h, t):
        row = tir.Min(o * block + t, n - 1)
        return te.sum(rows[row, h, k] * x[h, k], axis=k)

    sums = te.compute(((n + block - 1) // block, heads, block), element, name="sums")
    sch = Schedule(te.create_prim_func([rows, x, sums]))
    (found,) = child_blocks(sch)
    o, h, t, k = sch.get_loops(found)
    task = sch.fuse(o, h)
    outer, step = sch.split(k, [None, 8])
    sch.reorder(outer, t, step)
    sch.decompose_reduction(found, outer)
    prefetch_next(sch, task, outer, "rows")
    (task, run), asks, _ = prefetches(with_prefetch(sch.mod["main"]))
    for piece in range(5):
        asked = []
        for number in range(depth // 8):
            values = {task.loop_var: tir.const(piece), run.loop_var: tir.const(number)}
            asked += [places(ask, values) for ask in asks]
        of_block, head = divmod(piece + 1, heads)
        lines = itertools.product(range(block), range(0, depth, 16))
        assert sorted(asked) == [(of_block * block + row, head, at) for row, at in lines]
