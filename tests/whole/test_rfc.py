"""The third discussion (wish C): what it asked for, shown by its own programs."""

import inspect
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness import assert_close, random_args, run_case

import selfbyoc
from selfbyoc import BUILTIN, Case, Composite, choose, each_op, emit, op, partition_for_tefuse
from selfbyoc.codegen.records import record as records
from selfbyoc.codegen.records.record import CHOSEN, MEASURED
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tuning import engine
from selfbyoc.tuning import run as tuning_run
from selfbyoc.tvm import GENERATION, te, tir, topi, tvm

BY_NAME = {composite.name: composite for composite in BUILTIN}
CHAIN = BY_NAME["conv2d_relu_conv2d_relu"]
SHAPES = {"data": (1, 3, 224, 224), "weight1": (32, 3, 3, 3), "weight2": (32, 32, 3, 3)}


def rfc_module():
    """The motivating example, as it stands in the RFC: the ops in one primitive function that main
    calls.
    """
    if GENERATION == "relay":
        from tvm import relay

        def variables(suffix=""):
            return [relay.var(f"{n}{suffix}", shape=s) for n, s in SHAPES.items()]

        y, *weights = inner = variables("1")
        for weight in weights:
            y = relay.nn.relu(
                relay.nn.conv2d(y, weight, padding=(1, 1, 1, 1), kernel_size=(3, 3), channels=32)
            )
        primitive = relay.Function(inner, y).with_attr("Primitive", tvm.tir.IntImm("int32", 1))
        outer = variables()
        return tvm.IRModule.from_expr(relay.Function(outer, relay.Call(primitive, outer)))
    from tvm import relax

    def variables():
        return [relax.Var(n, relax.TensorType(s, "float32")) for n, s in SHAPES.items()]

    y, *weights = inner = variables()
    builder = relax.BlockBuilder()
    with builder.function("chain", inner, attrs={"Primitive": True}):
        with builder.dataflow():
            for weight in weights:
                y = builder.emit(relax.op.nn.conv2d(y, weight, padding=(1, 1, 1, 1)))
                y = builder.emit(relax.op.nn.relu(y))
            y = builder.emit_output(y)
        builder.emit_func_output(y)
    outer = variables()
    with builder.function("main", outer):
        with builder.dataflow():
            call = relax.Call(builder.get().get_global_var("chain"), outer)
            y = builder.emit_output(builder.emit(call))
        builder.emit_func_output(y)
    return builder.get()


@pytest.fixture(name="parted", scope="module")
def fixture_parted():
    return partition_for_tefuse(rfc_module())


def conv(x, weight):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", view, weight, optimize=True)


def reference(x, *weights):
    for weight in weights:
        x = np.maximum(conv(x, weight), 0)
    return x


def test_c1_two_complicated_ops_in_one_kernel(parted):
    """C1: "each primitive Relay function can only have at most one complicated op"."""
    (kernel,) = selfbyoc.melting(parted, "llvm").kernels
    kinds = [info.kind for info in kernel.ops]
    assert kinds == ["conv2d", "relu", "conv2d", "relu"]
    assert sum(info.pattern == "out_elemwise_fusable" for info in kernel.ops) == 2


def test_c2_this_exact_function_builds_and_runs(parted):
    """C2: 1x3x224x224, 3->32->32, pad 1, by the built-in composite; the primitive function that
    the RFC wrote is read through.
    """
    assert selfbyoc.report(parted).counts == {CHAIN.name: 1}
    assert selfbyoc.report(parted).left == {}
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype("float32") for shape in SHAPES.values()]
    (found,) = selfbyoc.build(parted)(*arrays)
    expected = reference(*(a.astype("float64") for a in arrays))
    assert found.shape == (1, 32, 224, 224)
    assert (wrong := first_wrong(found, expected, "float32", 32 * 9)) is None, wrong


def test_c2_with_a_tail():
    """The same program on sizes that nothing divides."""
    case = Case(
        lambda x, v, w: op.relu(op.conv2d(op.relu(op.conv2d(x, v, padding=1)), w, padding=1)),
        x=(1, 3, 37, 41), v=(11, 3, 3, 3), w=(13, 11, 3, 3),
    )  # fmt: skip
    run = run_case(CHAIN, case)
    assert run.counts == {CHAIN.name: 1}
    assert_close(run)


@pytest.mark.skipif(GENERATION == "relax", reason="Relax has no TOPI schedules to choose an op for")
def test_c3_what_relay_build_says_and_that_tefuse_builds_it(parted):
    """C3: the error that the RFC begins with, to the letter."""
    from tvm import relay

    message = re.escape(
        "Cannot apply TOPI schedule to a primitive function with two complicated ops "
        "anchor=Op(nn.conv2d) current=Op(nn.conv2d)"
    )
    with pytest.raises(tvm.TVMError, match=message):
        relay.build(rfc_module(), target="llvm")
    assert relay.build(parted, target="llvm")


def test_c11_c32_how_they_came_together(parted):
    """C11: "how the graph ends up with a nn.conv2d + nn.relu + nn.conv2d + nn.relu?"; C32: "check
    why these two ops are fused together".
    """
    explanation = selfbyoc.explain(parted)
    answer = explanation.why("conv2d", "conv2d_1")
    assert answer.together
    (record,) = answer.records
    assert record.composite == CHAIN.name
    assert record.ops == ("conv2d", "relu", "conv2d_1", "relu_1")
    assert ("relu", "conv2d_1", "float32[1, 32, 224, 224]") in record.edges
    assert "one kernel" in str(answer)
    assert CHAIN.why in str(answer)


def test_c18_no_new_ops():
    """C18: no "new custom Relay ops": the registry of ops is TVM's own from the declaration to the
    run, and the subgraph is what the user designates, with a te.compute and a schedule of theirs.
    """
    before = set(map(str, tvm.ir.Op.list_op_names()))
    ran = []

    def negated(ins, call):
        ran.append("compute")
        return te.compute(ins[0].shape, lambda *i: -ins[0](*i), name="negated")

    def schedule(sch, ops, target):
        ran.append("schedule")
        sch.parallel(sch.get_loops(ops.relu.block)[1])

    def two(x, w):
        return op.relu(op.conv2d(x, w, padding=1))

    first_two = Composite("first_two", two, schedule, compute={"relu": negated})
    parted = partition_for_tefuse(rfc_module(), composites=[first_two])
    assert selfbyoc.report(parted).counts == {"first_two": 2}
    shapes = {"x": (1, 3, 9, 11), "v": (8, 3, 3, 3), "w": (5, 8, 3, 3)}
    rng = np.random.default_rng(0)
    x, v, w = (rng.standard_normal(shape).astype("float32") for shape in shapes.values())
    library = selfbyoc.build(
        emit(lambda x, v, w: two(two(x, v), w), shapes), composites=[first_two], cache=False
    )
    expected = -conv(-conv(x, v), w)  # the user's own, not a ReLU
    np.testing.assert_allclose(library(x, v, w)[0], expected, rtol=1e-4, atol=1e-4)
    assert set(ran) == {"compute", "schedule"}
    assert set(map(str, tvm.ir.Op.list_op_names())) == before
    assert not any("tefuse" in name or "first_two" in name for name in before)


def test_c18_the_designated_function_is_one_task():
    """C18: "directly tunes a primitive function as the user designates": all of it is one task of
    one kernel, though the built-in composites would take each of its convolutions alone.
    """

    def designated(x, v, w):
        y = op.tanh(op.conv2d(op.tanh(op.conv2d(x, v, padding=1)), w, padding=1))
        return op.relu(y)

    mod = emit(designated, {"x": (1, 3, 9, 11), "v": (8, 3, 3, 3), "w": (5, 8, 3, 3)})
    apart = selfbyoc.extract_tasks(partition_for_tefuse(mod))
    assert [task.composite.name for task in apart] == ["conv2d", "conv2d"]
    mine = Composite("mine", designated)
    parted = partition_for_tefuse(mod, composites=[mine, *BUILTIN])
    (task,) = selfbyoc.extract_tasks(parted)
    assert (task.composite.name, task.weight) == ("mine", 1)
    assert task.ops == ("conv2d", "tanh", "conv2d", "tanh", "relu")
    again = partition_for_tefuse(selfbyoc.unfuse(parted), composites=[mine, *BUILTIN])
    assert [t.key for t in selfbyoc.extract_tasks(again)] == [task.key]


def topi_conv2d(ins, call):
    """TOPI's compute, which is what a strategy of a custom op would name."""
    attrs = call.attrs
    return topi.nn.conv2d_nchw(*ins, attrs["strides"], attrs["padding"], attrs["dilation"])


def test_c19_topi_and_a_pattern_without_a_custom_op():
    """C19: "topi schedules + pattern matching + customer Relay ops, without auto_scheduler": TOPI's
    compute, a pattern and a schedule of one's own for each op. No op is registered, nothing tuned.
    """

    def conv2d(sch, one, target):
        _, c, y, x, *sums = sch.get_loops(one.block)
        sch.parallel(sch.fuse(c, y))
        sch.reorder(*sums, x)
        sch.vectorize(x)

    def pattern(x, v, w):
        return op.relu(op.conv2d(op.relu(op.conv2d(x, v, padding=1)), w))

    chain = Composite(
        "chain", pattern, each_op({"conv2d": conv2d}), compute={"conv2d": topi_conv2d}
    )
    run = run_case(chain, Case(x=(1, 3, 17, 19), v=(8, 3, 3, 3), w=(5, 8, 3, 3)))
    assert run.counts == {"chain": 1}
    assert_close(run)


def in_pieces(x, w):
    """A product in pieces of `chunk`, summed at last: an op of no graph IR."""
    chunk = choose("chunk", (1, 2, 4, 8), default=4)
    rows, inner, units = int(x.shape[0]), int(x.shape[1]), int(w.shape[0])
    k = te.reduce_axis((0, chunk), name="k")
    piece = te.compute(
        (inner // chunk, rows, units),
        lambda p, i, u: te.sum(x(i, p * chunk + k) * w(u, p * chunk + k), axis=k),
        name="piece",
    )
    p = te.reduce_axis((0, inner // chunk), name="p")
    total = te.compute((rows, units), lambda i, u: te.sum(piece(p, i, u), axis=p), name="total")
    zero = tir.const(0, "float32")
    return te.compute((rows, units), lambda i, u: tir.Max(total(i, u), zero), name="result")


def untiled(sch, ops, target):
    """Of the compute alone: MetaSchedule's space would be of the plain ops."""


PIECES = Composite("pieces", lambda x, w: op.relu(op.dense(x, w)), untiled, compute=in_pieces)


def pieces_of(mod):
    """How many pieces the kernel of a partitioned module sums."""
    (kernel,) = selfbyoc.melting(mod, selfbyoc.host_target()).kernels
    (placement,) = (p for p in kernel.placements if p.buffer.name == "piece")
    return int(placement.buffer.shape[0])


def test_c20_a_compute_of_ones_own():
    """C20: "make this RFC potentially work for custom Relay ops": a subgraph whose arithmetic is
    the user's te.compute, with a number that is left open for tuning.
    """
    run = run_case(PIECES, Case(x=(5, 24), w=(7, 24)))
    assert run.counts == {"pieces": 1}
    assert_close(run)
    parted = partition_for_tefuse(run.mod, None, selfbyoc.host_target(), composites=[PIECES])
    (task,) = selfbyoc.extract_tasks(parted)
    assert list(task.variant().choices) == ["chunk"]
    assert pieces_of(parted) == 24 // 4


def test_c20_its_numbers_are_tuned(tmp_path, monkeypatch):
    """All four ways are measured, checked and kept; the best is built, and one told."""
    monkeypatch.setattr(tuning_run, "TIMED", 0.01)
    monkeypatch.setattr(engine, "BUILDERS", 1)
    case = Case(x=(5, 24), w=(7, 24))
    run = run_case(PIECES, case)
    (outcome,) = selfbyoc.tune(
        run.mod, None, 4, tmp_path, composites=[PIECES], cost_model="none"
    ).outcomes
    assert (outcome.trials, outcome.failed, outcome.wrong) == (4, 0, 0)
    found = records.read(tmp_path)
    tried = [r.decisions.get("chunk", 4) for r in found if r.status == MEASURED]
    assert sorted(tried) == [1, 2, 4, 8]
    (best,) = (r for r in found if r.status == CHOSEN)
    other = next(r for r in found if r.decisions.get("chunk", 4) == 8)
    for record, folder in ((best, tmp_path), (replace(other, status=CHOSEN), tmp_path / "other")):
        if folder != tmp_path:
            records.append(folder, record)
        with selfbyoc.apply_records(folder) as applied:
            parted = partition_for_tefuse(
                run.mod, None, selfbyoc.host_target(), composites=[PIECES]
            )
            assert pieces_of(parted) == 24 // record.decisions.get("chunk", 4)
            library = selfbyoc.build(parted, cache=False)
        assert len(applied.used) == 1
        np.testing.assert_allclose(
            library(**random_args(case))[0], run.expected[0], rtol=1e-5, atol=1e-5
        )


def shifted_layer_norm(x, ones, zeros, w, b):
    """The thread's layer_norm in int8: ln_shift=7, affine_shift=8."""
    normal = op.layer_norm(op.cast(x, dtype="float32"), ones, zeros, epsilon=1.52588e-05)
    fixed = op.cast(op.round(op.multiply(normal, 128.0)), dtype="int32")
    affine = op.add(op.multiply(fixed, op.cast(w, dtype="int32")), op.cast(b, dtype="int32"))
    return op.cast(op.clip(op.right_shift(affine, 8), a_min=-128, a_max=127), dtype="int8")


def thread_pair(x, ones, zeros, w, b, y):
    return op.dense(shifted_layer_norm(x, ones, zeros, w, b), y, out_dtype="int32")


def pair_in_numpy(x, w, b, y):
    x, w, b = (a.astype("float64") for a in (x, w, b))
    variance = x.var(-1, keepdims=True)
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(variance + 1.52588e-05)
    affine = (np.rint(normal * 128).astype("int64") * w.astype("int64") + b.astype("int64")) >> 8
    return np.clip(affine, -128, 127) @ y.T.astype("int64")


def near_a_half(x):
    """Rows that float32 may round to another level than float64."""
    x = x.astype("float64")
    levels = 128 * (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1.52588e-05)
    return (np.abs(levels - np.floor(levels) - 0.5) < 1e-3).any(-1)


def rows(sch, one, target):
    for block in one.blocks:
        sch.parallel(sch.get_loops(block)[0])


def units(sch, one, target):
    i, u, k = sch.get_loops(one.block)
    outer, inner = sch.split(u, [None, 4])
    sch.reorder(i, outer, k, inner)
    sch.parallel(sch.fuse(i, outer))


@pytest.mark.parametrize("schedule", [None, each_op({"layer_norm": rows, "dense": units})])
@pytest.mark.parametrize("count", [64, 61])
def test_c29_c30_the_pair_of_the_thread(schedule, count):
    """C29: int8 layer_norm + dense with ln_shift and affine_shift, 64x64 and with a tail; C30: by
    the default schedule, and each by a schedule of its own.
    """
    rng = np.random.default_rng(4)
    w, b = (rng.integers(-128, 127, count).astype("int8") for _ in range(2))
    x = rng.integers(-128, 127, (2 * count, count)).astype("int8")
    x = x[~near_a_half(x)][:count]
    y = rng.integers(-128, 127, (64, count)).astype("int8")
    weights = {"ones": np.ones(count, "float32"), "zeros": np.zeros(count, "float32")}
    mod = emit(thread_pair, {"x": (x.shape, "int8")}, {**weights, "w": w, "b": b, "y": y})
    pair = Composite("pair", thread_pair, schedule)
    library = selfbyoc.build(mod, composites=[pair])
    assert library.report.counts == {"pair": 1}
    np.testing.assert_array_equal(library(x)[0], pair_in_numpy(x, w, b, y))


def test_c29_is_a_built_in_composite():
    """The form in which quantisers write it."""
    composite = BY_NAME["layer_norm_dense_int8"]
    run = run_case(composite, composite.cases[0])
    assert run.counts == {composite.name: 1}
    np.testing.assert_array_equal(run.found[0], run.expected[0])


def test_c31_entry_points_are_versioned_and_documented():
    """C31: "Can't find the patched code related to this RFC any more": every public function has a
    docstring, and a page says what it is for.
    """
    root = Path(selfbyoc.__file__).parents[1]
    assert re.fullmatch(r"\d+\.\d+\.\d+", selfbyoc.__version__)
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    functions = [n for n in selfbyoc.__all__ if inspect.isfunction(getattr(selfbyoc, n))]
    assert {"extract_tasks", "each_op", "unfuse", "explain"} <= set(functions)
    for name in functions:
        assert inspect.getdoc(getattr(selfbyoc, name)), f"{name} has no docstring"
        assert re.search(rf"\b{name}\b", text), f"no page names {name}"
