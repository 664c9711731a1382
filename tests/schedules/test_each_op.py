"""`each_op`: every op by its own schedule, stacked in one kernel, none fused (wish C30)."""

import itertools

import numpy as np
import pytest
from harness import assert_close, model, random_args, run_case

import selfbyoc
from selfbyoc import BUILTIN, Case, Composite, each_op, emit, op
from selfbyoc.errors import CompositeError, ScheduleError
from selfbyoc.tvm import make_target, te

BY_NAME = {composite.name: composite for composite in BUILTIN}


def chain(x, w1, w2):
    """The RFC's program."""
    y = op.relu(op.conv2d(x, w1, padding=(1, 1)))
    return op.relu(op.conv2d(y, w2, padding=(1, 1)))


CHAIN = Case(chain, x=(1, 3, 17, 19), w1=(8, 3, 3, 3), w2=(5, 8, 3, 3), constants=("w1", "w2"))


def conv(sch, one, target):
    """Channels in parallel, columns in vectors."""
    n, c, y, x, *sums = sch.get_loops(one.block)
    sch.parallel(sch.fuse(n, c, y))
    sch.reorder(*sums, x)
    sch.vectorize(x)

    def last():
        sch.vectorize(sch.get_loops(sch.decompose_reduction(one.block, sums[0]))[-1])

    return last


def relu(sch, one, target):
    sch.parallel(sch.fuse(*sch.get_loops(one.block)))


def only_kernel(composite, case):
    """Its melting report."""
    mod = model(composite, case, random_args(case))
    parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
    (kernel,) = selfbyoc.melting(parted, "llvm").kernels
    assert kernel.level.name == "own schedule"
    return kernel


def assert_apart(kernel):
    """One kernel whose every intermediate is whole and travels: nothing inlined, nothing melted."""
    names = [info.name for info in kernel.ops]
    assert len(names) > 1
    for producer, consumer in itertools.pairwise(names):
        assert not kernel.is_melted(producer, consumer), (producer, consumer)
    at_root = {p.buffer.bytes for p in kernel.placements if p.travels and not p.loops}
    assert {value.bytes for value in kernel.intermediates} <= at_root
    assert kernel.traffic_after >= kernel.traffic_before > 0  # an op may have stages of its own


SCHEDULES = [{"conv2d": conv, "relu": relu}, {"conv2d": conv}, {"relu": relu}, {}]


@pytest.mark.parametrize("schedules", SCHEDULES, ids=lambda s: "-".join(s) or "none")
def test_the_rfcs_chain_stacked_and_not_fused(schedules):
    """C30: each op by the schedule of its kind, the others by default."""
    composite = Composite("chain", chain, each_op(schedules))
    run = run_case(composite, CHAIN)
    assert run.counts == {"chain": 1}
    assert_close(run)
    kernel = only_kernel(composite, CHAIN)
    assert_apart(kernel)
    kinds = {stage.op: [loop.kind for loop in loops] for stage, loops in stages(kernel)}
    assert ("parallel" in kinds["relu"]) == ("relu" in schedules)  # too little work by default
    assert kinds["conv2d"][0] == "parallel" or "conv2d" not in schedules


def stages(kernel):
    from selfbyoc.analysis.melting.loop_nest import under

    return list(under(kernel.nest.body))


def rows(sch, one, target):
    """Every stage of a layer_norm over its rows, in parallel."""
    for block in one.blocks:
        sch.parallel(sch.get_loops(block)[0])


def units(sch, one, target):
    """Four units of a row at once."""
    i, u, k = sch.get_loops(one.block)
    outer, inner = sch.split(u, [None, 4])
    sch.reorder(i, outer, k, inner)
    sch.parallel(sch.fuse(i, outer))
    sch.unroll(inner)


@pytest.mark.parametrize("case", BY_NAME["layer_norm_dense_int8"].cases[:3], ids=lambda c: c.name)
def test_layer_norm_and_dense_in_int8(case):
    """C29, C30: the pair of the thread, "just want to use these schedules to each of OPs"."""
    ours = BY_NAME["layer_norm_dense_int8"]
    seen = []

    def dense(sch, one, target):
        seen.append((one.kind, one.outputs[0].dtype, str(target.kind)))
        *_, i, _, k = sch.get_loops(one.block)
        sch.unroll(sch.split(k, [None, 2])[1])
        sch.parallel(i)

    composite = Composite(
        "pair", ours.pattern, each_op({"layer_norm": rows, "dense": dense}), check=ours.check
    )
    run = run_case(composite, case)
    assert run.counts == {"pair": 1}
    assert run.found[0].dtype == "int32"
    np.testing.assert_array_equal(run.found[0], run.expected[0])
    assert seen == [("dense", "int32", "llvm")]
    assert_apart(only_kernel(composite, case))


def test_layer_norm_and_dense_in_float():
    case = Case(
        lambda x, g, b, w: op.relu(op.dense(op.layer_norm(x, g, b), w)),
        x=(7, 33), g=(33,), b=(33,), w=(18, 33), constants=("g", "b", "w"),
    )  # fmt: skip
    schedule = each_op({"layer_norm": rows, "dense": units})
    composite = Composite("pair", case.program, schedule)
    run = run_case(composite, case)
    assert run.counts == {"pair": 1}
    assert_close(run)
    assert_apart(only_kernel(composite, case))


def with_two_outputs(x):
    y = op.exp(x)
    return y, op.divide(y, op.sum(y, axis=-1, keepdims=True))


@pytest.mark.parametrize(
    ("program", "args"),
    [
        (lambda x: op.tanh(op.softmax(op.gelu(x))), {"x": (5, 33)}),
        (lambda x, y: op.softmax(op.add(op.multiply(x, 2.0), y)), {"x": (3, 4, 7), "y": (7,)}),
        (lambda x, w: op.tanh(op.max_pool2d(op.conv2d(x, w), pool_size=2)),
         {"x": (2, 3, 9, 8), "w": (4, 3, 3, 3)}),
        (lambda x, y: op.concatenate([op.relu(x), op.exp(y)], axis=1), {"x": (3, 5), "y": (3, 9)}),
        (with_two_outputs, {"x": (6, 37)}),
    ],
    ids=["softmax", "constants", "pool", "concatenate", "outputs"],
)  # fmt: skip
def test_ops_without_a_schedule_take_the_default_one_apart(program, args):
    """Several stages in an op, broadcasts, constants and several outputs."""
    composite = Composite("apart", program, each_op({}))
    case = Case(program, **args)
    run = run_case(composite, case)
    assert run.counts == {"apart": 1}
    assert_close(run)
    assert_apart(only_kernel(composite, case))


def test_computes_and_packed_weights_of_its_own():
    """A schedule for each op goes with a compute for each op."""

    def transposed(weight):
        units, k = weight.shape
        return te.compute((k, units), lambda i, u: weight(u, i), name="weight_t")

    def dense(ins, call):
        x, weight = ins
        k = te.reduce_axis((0, x.shape[1]), name="k")
        return te.compute(
            call.outputs[0].shape, lambda i, u: te.sum(x(i, k) * weight(k, u), axis=k), name="dense"
        )

    case = Case(lambda x, w: op.relu(op.dense(x, w)), x=(3, 21), w=(19, 21), constants=["w"])
    composite = Composite(
        "packed", case.program, each_op({"dense": units}), compute={"dense": dense},
        pack={"w": transposed},
    )  # fmt: skip
    run = run_case(composite, case)
    assert run.counts == {"packed": 1}
    assert_close(run)


def test_by_kind_of_target():
    composite = Composite("chain", chain, {"llvm": each_op({"relu": relu}), "cuda": each_op({})})
    assert composite.schedule_for("llvm") is not composite.schedule_for("cuda")
    assert_close(run_case(composite, CHAIN, target="llvm"))
    parted = selfbyoc.partition_for_tefuse(
        model(composite, CHAIN, random_args(CHAIN)), composites=[composite]
    )
    for target in ("llvm", {"kind": "cuda", "arch": "sm_80"}):
        (kernel,) = selfbyoc.melting(parted, make_target(target)).kernels
        assert kernel.level.name == "own schedule"
        of_relu = [loops for stage, loops in stages(kernel) if stage.op == "relu"]
        kinds = {str(loop.kind) for loops in of_relu for loop in loops}
        assert ("parallel" in kinds) == (target == "llvm")
        assert any("block" in kind for kind in kinds) == (target != "llvm")


@pytest.mark.parametrize("target", ["c", "cuda"])
def test_other_targets(target):
    """Each op in loops of its own; on a GPU bound to threads of its own."""
    args = {"x": (3, 40), "w": (5, 40)}
    composite = Composite("rows", lambda x, w: op.softmax(op.relu(op.dense(x, w))), each_op({}))
    mod = emit(composite.pattern, {n: (s, "float32") for n, s in args.items()})
    parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
    given = {"kind": "cuda", "arch": "sm_80"} if target == "cuda" else target
    (kernel,) = selfbyoc.melting(parted, make_target(given)).kernels
    assert all(info.blocks for info in kernel.ops)
    bound = [any("block" in str(loop.kind) for loop in loops) for _, loops in stages(kernel)]
    assert all(bound) if target == "cuda" else not any(bound)


# ---- errors


def build_with(schedules, program=chain, **options):
    mod = emit(program, CHAIN.args)
    composite = Composite("chain", chain, each_op(schedules), **options)
    return selfbyoc.build(mod, "llvm", composites=[composite])


def inlined(sch, one, target):
    sch.compute_inline(one.block)


def under_its_reader(sch, one, target):
    (reader,) = sch.get_consumers(one.block)
    sch.compute_at(one.block, sch.get_loops(reader)[1])


def raises(sch, one, target):
    raise IndexError("no such loop")


@pytest.mark.parametrize(
    ("schedules", "message"),
    [
        ({"relu": inlined}, "composite chain: each_op: the schedule of 'relu', at relu, inlined "
         "the result of relu; expected each op by itself"),
        ({"conv2d": under_its_reader}, "composite chain: each_op: the schedule of 'conv2d', at "
         "conv2d, put conv2d and relu under one loop"),
        ({"relu": raises}, "composite chain: each_op: the schedule of 'relu', at relu, raised "
         "IndexError: no such loop"),
        ({"relu": lambda sch, one, target: 3}, "the schedule of 'relu': expected None or a "
         "function to call at last, found 3"),
    ],
)  # fmt: skip
def test_a_schedule_that_does_not_keep_to_its_op(schedules, message):
    with pytest.raises(ScheduleError, match=message):
        build_with(schedules)


@pytest.mark.parametrize(
    ("schedules", "message"),
    [
        ({"conv2": conv}, "each_op: 'conv2' is no kind of op; did you mean 'conv2d'?"),
        ({3: conv}, "each_op: 3 is no kind of op"),
        ({"conv2d": 5}, "each_op: the schedule of 'conv2d': expected a function, found 5"),
        (conv, "each_op: expected {kind of op: function}, found <function conv"),
    ],
)
def test_what_each_op_is_given(schedules, message):
    with pytest.raises(ScheduleError) as caught:
        each_op(schedules)
    assert message in str(caught.value)


def test_a_kind_that_the_pattern_has_not():
    message = (
        r"composite chain: its schedule names \['dense'\], which the pattern has not; expected "
        r"some of \['conv2d', 'relu'\]"
    )
    with pytest.raises(CompositeError, match=message):
        Composite("chain", chain, each_op({"dense": units}))
    with pytest.raises(CompositeError, match=message):
        Composite("chain", chain, {"llvm": each_op({"dense": units})})


def test_one_compute_for_all_ops_has_no_block_for_each():
    composite = Composite(
        "whole", lambda x, w: op.relu(op.dense(x, w)), each_op({"dense": units}),
        compute=lambda x, w: te.compute((3, 4), lambda i, u: x(i, 0) * w(u, 0), name="one"),
    )  # fmt: skip
    mod = emit(composite.pattern, {"x": ((3, 5), "float32"), "w": ((4, 5), "float32")})
    with pytest.raises(ScheduleError, match="composite whole: each_op: dense has no block of its"):
        selfbyoc.build(mod, "llvm", composites=[composite])


def test_blocks_that_were_inlined_are_not_among_the_blocks():
    """`op.blocks` says what is still there."""
    seen = []

    def schedule(sch, ops, target):
        pad, _ = ops.conv2d.blocks
        sch.compute_inline(pad)
        seen.append([str(sch.get(b).name_hint) for b in ops.conv2d.blocks])
        sch.compute_inline(ops.relu.block)
        with pytest.raises(AttributeError, match="the result of relu has no block here"):
            ops.relu.block  # noqa: B018 (the access is the test)

    composite = Composite("chain", chain, schedule)
    assert_close(run_case(composite, CHAIN))
    assert seen[0] == ["conv2d"]
