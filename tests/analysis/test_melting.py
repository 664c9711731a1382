"""The melting report: loop nests, where values lie, exact counts, and the proof of melting."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from harness import assert_close, model, random_args, run_case
from melting_programs import executed

import selfbyoc
from selfbyoc import BUILTIN, Case, Composite, host_target, melting, op
from selfbyoc.__main__ import main
from selfbyoc.analysis.kernels import kernels
from selfbyoc.analysis.melting import report as melting_module
from selfbyoc.analysis.melting.counting import Range, count
from selfbyoc.analysis.melting.flops import flops_of
from selfbyoc.codegen.info.op_info import OpInfo
from selfbyoc.errors import InputError
from selfbyoc.machine import host
from selfbyoc.schedules.kernels.conv.chain.plan import melted
from selfbyoc.tvm import Schedule, get_block, make_target, module_source, te, tir, tvm
from selfbyoc.tvm.build import build_module

BY_NAME = {composite.name: composite for composite in BUILTIN}
AVX512 = make_target({"kind": "llvm", "mcpu": "cascadelake", "num-cores": 2})


def partitioned(composite, case, target=None):
    """Its weights are packed for the target, or for this machine."""
    return selfbyoc.partition_for_tefuse(
        model(composite, case, random_args(case)), composites=[composite], target=target
    )


def case_of(name, label):
    return next(case for case in BY_NAME[name].cases if case.name == label)


def report_of(name, label):
    (kernel,) = melting(partitioned(BY_NAME[name], case_of(name, label)), AVX512).kernels
    return kernel


# ---- counting, against an interpreter of the printed function


def chain(size, tile, pad):
    """Two 3x3 stencils; the first is computed under the row blocks of the second."""
    x = te.placeholder((size, size), name="x")

    def stencil(source, name):
        i, j = (te.reduce_axis((0, 3), name=n) for n in "ij")
        low = (lambda a: tir.Max(a, 0)) if pad else (lambda a: a)
        high = int(source.shape[0]) - 1
        extent = size if pad else int(source.shape[0]) - 2
        shift = 1 if pad else 0
        return te.compute(
            (extent, extent),
            lambda a, b: te.sum(
                source[tir.Min(low(a + i - shift), high), tir.Min(low(b + j - shift), high)],
                axis=[i, j],
            ),
            name=name,
        )

    first = stencil(x, "first")
    last = stencil(first, "last")
    sch = Schedule(tvm.IRModule({"main": te.create_prim_func([x, last])}))
    consumer = get_block(sch, "last")
    rows, *_ = sch.get_loops(consumer)
    outer, _ = sch.split(rows, [None, tile])
    sch.compute_at(get_block(sch, "first"), outer)
    return sch.mod["main"]


@pytest.mark.parametrize(
    ("size", "tile", "pad"), [(14, 4, False), (14, 4, True), (13, 5, False), (9, 3, True)]
)
def test_the_halo_is_counted_as_the_program_runs_it(size, tile, pad):
    """The interpreter runs the function as TVM prints it: it shares no code with the report."""
    func = chain(size, tile, pad)
    points = executed(func)
    (kernel,) = melting(func, AVX512).kernels
    for stage in kernel.nest.stages:
        seen = points[stage.name]
        assert stage.exact
        assert (stage.runs, stage.covers) == (len(seen), len(set(seen)))
        assert stage.recompute == len(seen) / len(set(seen))
    assert kernel.recompute > 1
    assert kernel.is_melted("first", "last")
    assert "computed again" in str(kernel)


def own_chain(in_order, tile):
    """A composite of its own, whose schedule computes the first convolution under row blocks."""

    def pattern(x, w1, w2):
        return op.relu(op.conv2d(op.relu(op.conv2d(x, w1)), w2))

    def schedule(sch, ops, target):
        sch.compute_inline(ops.relu.block)
        _, channels, rows, columns = sch.get_loops(ops.relu_1.block)
        outer, inner = sch.split(rows, [None, tile])
        if in_order:
            sch.reorder(outer, channels, inner, columns)
        for producer in (ops.conv2d_1, ops.conv2d):
            sch.compute_at(producer.block, outer)

    return Composite("own", pattern, schedule)


@pytest.mark.parametrize(("in_order", "tile"), [(True, 2), (True, 3), (False, 3)])
def test_the_halo_of_a_chain_of_convolutions(in_order, tile):
    """6 rows of the second convolution, in blocks; 8 of the first, of which blocks share two."""
    case = Case(x=(1, 2, 10, 9), w1=(3, 2, 3, 3), w2=(4, 3, 3, 3))
    composite = own_chain(in_order, tile)
    mod = partitioned(composite, case)
    (kernel,) = melting(mod, AVX512).kernels
    (source,) = kernels(mod)
    points = executed(source.schedule(AVX512)[1].mod["main"])
    for stage in kernel.nest.stages:
        seen = points[stage.name]
        assert (stage.runs, stage.covers) == (len(seen), len(set(seen)))
    again = (6 // tile) * (tile + 2) / 8 * (1 if in_order else 4)
    assert kernel.recompute == kernel.work_of("conv2d") == again > 1
    assert kernel.work_of("conv2d_1") == 1
    assert kernel.is_melted("conv2d", "conv2d_1")
    assert kernel.is_melted("relu", "conv2d_1")  # inlined
    assert "inlined into conv2d_1: relu" in str(kernel)
    assert_close(run_case(composite, case, target=AVX512 if host.runs(AVX512) else None))


def test_nothing_is_computed_again_without_a_halo():
    x = te.placeholder((6, 35), name="x")
    first = te.compute((6, 35), lambda i, j: x[i, j] + 1.0, name="first")
    last = te.compute((6, 35), lambda i, j: first[i, j] * 2.0, name="last")
    sch = Schedule(tvm.IRModule({"main": te.create_prim_func([x, last])}))
    fused = sch.fuse(*sch.get_loops(get_block(sch, "last")))
    outer, _ = sch.split(fused, [None, 16])  # 210 elements: the last tile is cut by a predicate
    sch.compute_at(get_block(sch, "first"), outer)
    func = sch.mod["main"]
    (kernel,) = melting(func, AVX512).kernels
    points = executed(func)
    assert {s.name: s.runs for s in kernel.nest.stages} == {n: len(p) for n, p in points.items()}
    last = kernel.nest.stages[-1]
    assert (last.runs, last.domain, last.recompute) == (210, 210, 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_counts_of_random_predicates(seed):
    rng = np.random.default_rng(seed)
    names = "abcd"
    extents = [int(e) for e in rng.integers(1, 7, len(names))]
    loops = [te.var(name) for name in names]
    a, b, c, d = loops
    cut = int(rng.integers(1, 20))
    holds = tir.And(a * 5 + b < cut, tir.floormod(c, 3) <= 1)
    results = [a * 5 + b, tir.floordiv(c + d, 2)]
    grid = [
        (i, j, k, m)
        for i in range(extents[0])
        for j in range(extents[1])
        for k in range(extents[2])
        for m in range(extents[3])
        if i * 5 + j < cut and k % 3 <= 1
    ]
    ranges = [Range(var, 0, extent) for var, extent in zip(loops, extents, strict=True)]
    assert count(ranges, [holds]).times == len(grid)
    different = {(i * 5 + j, (k + m) // 2) for i, j, k, m in grid}
    assert count(ranges, [holds], results=results).times == len(different)


def test_a_count_that_costs_too_much_is_a_bound():
    a, b = te.var("a"), te.var("b")
    ranges = [Range(a, 0, 1 << 14), Range(b, 0, 1 << 14)]
    found = count(ranges, [a + b < 5])
    assert (found.times, found.exact) == (1 << 28, False)
    assert count(ranges, [a < 5]).times == 5 << 14  # the other loop is not in the predicate


# ---- sizes, against what the compiled code asks the runtime for

WORKSPACE = re.compile(r"i64 (?:noundef )?(\d+), i32 (?:noundef )?2, i32 (?:noundef )?\d+\)")


@pytest.mark.parametrize(
    ("name", "label"), [("conv2d_relu_conv2d_relu", "rfc"), ("attention", ""), ("conv2d", "")]
)
def test_buffers_are_as_large_as_the_compiled_code_allocates(name, label):
    """LLVM IR holds the sizes of TVMBackendAllocWorkspace; some of ours share one of those."""
    composite = BY_NAME[name]
    case = case_of(name, label) if label else composite.cases[0]
    (kernel,) = kernels(partitioned(composite, case))
    _, scheduled = kernel.schedule(AVX512)
    source = module_source(build_module(scheduled.mod, AVX512))
    asked = {int(n) for n in WORKSPACE.findall(source)}
    (found,) = melting(scheduled.mod["main"], AVX512).kernels
    heap = {b.bytes for b in found.allocations if b.memory != "stack"}
    assert asked
    assert asked <= heap
    assert max(asked) == max(heap)
    for buffer in (b for b in found.allocations if b.memory == "stack"):
        if buffer.bytes in heap:  # a tile is as large: LLVM names what is on the stack
            elements = math.prod(buffer.shape)
            assert re.search(rf"%{buffer.name}\d* = alloca \[{elements} x float\]", source)
        else:
            assert buffer.bytes not in asked


# ---- the built-in composites: which melt, and which honestly do not


def melted_chain():
    composite = BY_NAME["conv2d_relu_conv2d_relu"]

    kernel = replace(composite.kernel, plan=melted)
    return Composite("melted", composite.pattern, kernel=kernel)


def test_the_rfc_program_melts(monkeypatch):
    """The nest that a person draws: rows of the first convolution under a block of the second."""
    monkeypatch.setenv("SELFBYOC_WINOGRAD", "0")
    kernel = report_of("conv2d_relu_conv2d_relu", "rfc")
    assert kernel.is_melted("conv2d", "conv2d_1")
    assert kernel.is_melted("conv2d_1", "relu_1")
    assert not kernel.is_melted("conv2d_pad", "conv2d_1")
    shared = kernel.nest.loops_of("relu_1")[0]
    assert (shared.kind, shared.axis) == ("parallel", "y of relu_1")
    inside = [stage.name for stage in shared.stages]
    assert inside == [
        "conv2d_tiles", "conv2d_tiles_local", "conv2d_1_pad", "conv2d_1_tiles",
        "conv2d_1_tiles_local", "relu_1",
    ]  # fmt: skip
    assert kernel.bytes_before == 3 * 4 * 32 * 224 * 224
    assert kernel.bytes_after < kernel.bytes_before / 9
    assert kernel.traffic_before == 2 * kernel.bytes_before
    assert kernel.traffic_after == 0
    assert kernel.traffic_copies == 2 * 4 * 3 * 51075  # the image, before the parallel loop
    assert kernel.flops == 2 * 224 * 224 * 32 * (27 + 288) + 2 * 224 * 224 * 32
    halo = 16 * 16 / 224  # 16 blocks of 14 rows compute 16 rows each
    tail = 5 * 48 / 224  # a row is 5 tiles of 48 pixels
    assert kernel.work_of("conv2d") == pytest.approx(halo * tail)


def test_a_small_chain_melts_as_well():
    def pair(x, w1, w2):
        return op.relu(op.conv2d(op.relu(op.conv2d(x, w1, padding=1)), w2, padding=1))

    case = Case(pair, x=(1, 3, 31, 45), w1=(8, 3, 3, 3), w2=(8, 8, 3, 3), constants=("w1", "w2"))
    (kernel,) = melting(partitioned(melted_chain(), case), AVX512).kernels
    assert kernel.is_melted("conv2d", "conv2d_1")
    (alone,) = melting(partitioned(BY_NAME["conv2d_relu_conv2d_relu"], case), AVX512).kernels
    assert not alone.is_melted("conv2d", "conv2d_1")  # it is small: stage by stage is faster
    assert alone.traffic_after > 0
    assert kernel.work_of("conv2d") > alone.work_of("conv2d")


def test_attention_melts():
    kernel = report_of("attention", BY_NAME["attention"].cases[0].name)
    for producer in ("queries", "products", "scores", "peak", "power", "total", "weighted"):
        assert kernel.is_melted(producer, "result"), producer
    assert kernel.traffic_after == 0
    assert kernel.bytes_after < kernel.bytes_before / 20
    with pytest.raises(InputError, match="no stage is 'batch_matmul'"):
        kernel.is_melted("batch_matmul", "result")  # one compute: its stages have their own names


def test_loops_that_end_early():
    """Of attention with a mask, those over keys; a convolution has none."""
    masked = next(c for c in BY_NAME["attention"].cases if "1x197x197" in c.name)
    kernel = report_of("attention", masked.name)
    assert re.search(r"for n of peak \(at most \d+\)", str(kernel))
    assert "for s of total (at most 197)" in str(kernel)
    assert "at most" not in str(report_of("attention", BY_NAME["attention"].cases[0].name))


def test_the_expanded_image_never_is_whole():
    """In chunks of rows: some blocks of channels of the expanded rows at a time."""
    kernel = report_of("inverted_residual", "mobilenet-v2")
    for producer in ("conv2d_sums", "conv2d_1_framed", "conv2d_1_lanes", "conv2d_2_sums"):
        assert kernel.is_melted(producer, "add"), producer
    assert kernel.traffic_after == 0
    assert kernel.bytes_after < kernel.bytes_before / 4


def test_a_small_image_is_two_regions():
    def block(x, w_expand, w_depth, w_project):
        y = op.clip(op.conv2d(x, w_expand))
        return op.conv2d(op.clip(op.conv2d(y, w_depth, groups=96, padding=1)), w_project)

    weights = {"w_expand": (96, 16, 1, 1), "w_depth": (96, 1, 3, 3), "w_project": (16, 96, 1, 1)}
    case = Case(block, x=(1, 16, 7, 7), **weights, constants=tuple(weights))
    (kernel,) = melting(partitioned(BY_NAME["inverted_residual"], case), AVX512).kernels
    assert kernel.is_melted("conv2d_1_framed", "conv2d_1_lanes")
    assert not kernel.is_melted("conv2d_1_lanes", "conv2d_2_sums")


def of_largest_case(name):
    case = max(BY_NAME[name].cases, key=lambda c: int(np.prod(c.args["x"][0])))
    (kernel,) = melting(partitioned(BY_NAME[name], case), AVX512).kernels
    assert kernel.recompute == 1.0
    assert kernel.work == pytest.approx(1.0)
    return kernel


def test_rows_melt_where_the_weights_are_packed_and_stay_in_the_cache():
    kernel = report_of("layer_norm_dense", "1x45x96-96-96-130x96-130")
    assert kernel.is_melted("normalised", "result")
    assert kernel.traffic_after == 0


def test_a_large_weight_is_read_by_columns():
    kernel = of_largest_case("layer_norm_dense")
    assert not kernel.is_melted("normalised", "result")
    assert kernel.is_melted("products_last", "result")


def test_a_feed_forward_block_is_two_regions():
    """A core has columns of its own in each dense, which reads every weight once: between the two
    the hidden activations are complete. Each dense is melted with its own epilogue.
    """
    kernel = of_largest_case("dense_gelu_dense")
    assert kernel.is_melted("hidden_products_last", "hidden")
    assert kernel.is_melted("products_last", "result")
    assert not kernel.is_melted("hidden", "result")
    first, second = (kernel.nest.loops_of(name)[0] for name in ("hidden", "result"))
    assert (first.kind, first.axis) == ("parallel", "i1 of hidden")
    assert (second.kind, second.axis) == ("parallel", "i1 of result")
    (travels,) = (p for p in kernel.placements if p.travels)
    assert travels.buffer.name == "hidden"
    assert kernel.traffic_after == 2 * 4 * 128 * 3072


@pytest.mark.parametrize(
    ("name", "label", "producer", "consumer"),
    [
        ("inception", 0, "relu_1", "conv2d_2"),
    ],
)
def test_those_that_run_stage_by_stage_say_so(name, label, producer, consumer):
    kernel = report_of(name, BY_NAME[name].cases[label].name)
    assert not kernel.is_melted(producer, consumer)
    (place,) = (p for p in kernel.placements if p.buffer.name == producer)
    assert (place.depth, place.travels) == (0, True)
    assert "at the root, before" in str(place)
    if name != "inception":  # each convolution's tiles are melted with its own activation
        assert kernel.is_melted("conv2d", "clip")


def test_tiles_melt_with_what_follows_but_not_always():
    for label in ("1x1", "3x3"):  # the direct convolution and Winograd's
        tile = report_of("conv2d", label)
        assert tile.is_melted("conv2d", "relu")
        assert tile.traffic_after <= 2 * 4 * 32  # of 1x1, the copied end of the last channel
    small = report_of("conv2d", "asymmetric")  # its lanes are output channels: turned at the end
    assert small.traffic_after > 0
    branches = report_of("parallel_conv2d", "fire")
    assert not branches.is_melted("conv2d", "concatenate")
    assert not branches.is_melted("conv2d_1", "concatenate")


# ---- the records, the text and the failures


def test_equal_kernels_are_told_once():
    def twice(x, w0, w1):
        return op.relu(op.dense(op.relu(op.dense(x, w0)), w1))

    case = Case(twice, x=(5, 33), w0=(33, 33), w1=(33, 33), constants=("w0", "w1"))
    found = melting(partitioned(BY_NAME["dense"], case), AVX512)
    (kernel,) = found.kernels
    assert (kernel.count, len(kernel.roots)) == (2, 2)
    assert found.kernel("dense") is found.kernel(kernel.symbol) is found.kernel(kernel.roots[1])
    assert "and 1 more like it" in str(found)
    with pytest.raises(InputError, match="no kernel 'lstm'; known composites: \\['dense'\\]"):
        found.kernel("lstm")


def test_what_is_inlined_is_melted():
    def pattern(x):
        return op.tanh(op.relu(x))

    composite = Composite("two", pattern, lambda sch, ops, _: sch.compute_inline(ops.relu.block))
    (kernel,) = melting(partitioned(composite, Case(x=(5, 7))), AVX512).kernels
    assert [stage.op for stage in kernel.nest.stages] == ["tanh"]
    assert kernel.is_melted("relu", "tanh")
    assert "inlined into tanh: relu" in str(kernel)


def test_the_report_is_deterministic_and_data():
    mod = partitioned(BY_NAME["dense"], BY_NAME["dense"].cases[0])
    one, two = melting(mod, AVX512), melting(mod, AVX512)
    assert str(one) == str(two)
    assert one == two
    data = json.loads(one.to_json())
    assert data["kernels"][0]["composite"] == "dense"
    assert data["sums"][0]["flops"] == one.kernels[0].flops


@pytest.mark.parametrize("composite", BUILTIN, ids=lambda c: c.name)
def test_every_composite_has_a_report_of_100_columns(composite):
    case = composite.cases[0]
    if selfbyoc.tvm.GENERATION not in case.generations:
        pytest.skip("the case exists on the other generation")
    found = melting(partitioned(composite, case), AVX512)
    assert not found.failures
    text = str(found)
    assert max(map(len, text.splitlines())) <= 100
    for kernel in found.kernels:
        assert kernel.flops > 0 or "cast" in text
        assert kernel.work is None or kernel.work > 0.2


@pytest.mark.parametrize(
    ("name", "number", "wanted"),
    [
        ("dense", 3, (1024 / 1000,) * 2), ("dense_int8", 2, (1024 / 1000,) * 2),
        ("conv2d_int8", 2, None),
        ("layer_norm_dense_int8", 1, None), ("conv2d_narrowed", 0, (16 / 14, 1.0)),
    ],
)  # fmt: skip
def test_multiply_adds_of_words_count_each_level(name, number, wanted, monkeypatch):
    """What is multiplied four at a time, or two, is done no less often than the ops ask for."""
    monkeypatch.setenv("SELFBYOC_WINOGRAD", "0")
    composite = BY_NAME[name]
    case = composite.cases[number]
    for n, target in enumerate((AVX512, "llvm -mcpu=haswell")):
        (kernel,) = melting(partitioned(composite, case, target), target).kernels
        if wanted is None:
            assert 1.0 <= kernel.work < 1.1
        else:  # by AVX-512, and by AVX2: 14 pixels fill 14 of 16 lanes, or channels are the lanes
            assert kernel.work == pytest.approx(wanted[n])


@pytest.mark.parametrize("target", ["llvm -mcpu=haswell", "llvm -mcpu=nehalem"])
def test_winograd_of_words_multiplies_less(target):
    """14x14 by F(4, 3) or F(2, 3): 36 or 16 products of a tile, of two levels each."""
    composite = BY_NAME["conv2d_narrowed"]
    (kernel,) = melting(partitioned(composite, composite.cases[0], target), target).kernels
    assert 16 * 36 / (196 * 9) <= kernel.work < 0.6


def test_a_kernel_that_cannot_be_analysed_breaks_nothing(monkeypatch):
    mod = partitioned(BY_NAME["dense"], BY_NAME["dense"].cases[0])

    def broken(func):
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(melting_module, "loop_nest", broken)
    found = melting(mod, AVX512)
    (failure,) = found.failures
    assert failure.reason == "ZeroDivisionError: on purpose"
    assert failure.composite == "dense"
    assert "not analysed: ZeroDivisionError: on purpose" in str(found)


def test_what_is_no_module_is_said():
    with pytest.raises(InputError, match="expected a partitioned IRModule or a scheduled PrimFunc"):
        melting(3)
    case = BY_NAME["dense"].cases[0]
    plain = model(BY_NAME["dense"], case, random_args(case))
    with pytest.raises(InputError, match="not partitioned"):
        melting(plain, AVX512)


def test_a_scheduled_function_by_itself():
    case = Case(lambda x, w: op.relu(op.dense(x, w)), x=(37, 24), w=(65, 24))
    (kernel,) = kernels(partitioned(BY_NAME["dense"], case))
    _, scheduled = kernel.schedule(AVX512)
    (found,) = melting(scheduled.mod["main"], AVX512).kernels
    assert found.ops[0].kind == "dense"
    assert found.is_melted("products", "result")


def test_a_function_for_a_gpu_without_op_info():
    a = te.placeholder((128, 96), name="a")
    b = te.compute((128, 96), lambda i, j: a[i, j] + 1.0, name="b")
    sch = Schedule(tvm.IRModule({"main": te.create_prim_func([a, b])}))
    rows, columns = sch.get_loops(get_block(sch, "b"))
    sch.bind(rows, "blockIdx.x")
    sch.bind(columns, "threadIdx.x")
    gpu = {
        "kind": "cuda", "arch": "sm_80", "max_threads_per_block": 1024, "thread_warp_size": 32,
        "max_shared_memory_per_block": 49152,
    }  # fmt: skip
    text = str(melting(sch.mod["main"], gpu))
    assert "b  from a; blockIdx.x 128; threadIdx.x 96" in text
    assert "operations        " not in text
    with pytest.raises(InputError, match="timed for llvm only, not cuda"):
        melting(sch.mod["main"], gpu, time=True)


def test_time_is_measured_on_request():
    case = BY_NAME["dense"].cases[0]
    found = melting(partitioned(BY_NAME["dense"], case), host_target(), time=True)
    (kernel,) = found.kernels
    assert found.peak.gflops > 1
    assert 0 < kernel.timing.milliseconds < 1000
    assert "GFLOP/s" in str(found)


F32 = "float32"


@pytest.mark.parametrize(
    ("info", "flops"),
    [
        (OpInfo("c", "conv2d", {"kernel_layout": "OIHW"},
                (((1, 3, 9, 9), F32), ((8, 3, 3, 3), F32)), (((1, 8, 7, 7), F32),)),
         2 * 8 * 49 * 27),
        (OpInfo("c", "conv2d", {"kernel_layout": "HWIO"},
                (((1, 9, 9, 3), F32), ((3, 3, 3, 8), F32)), (((1, 7, 7, 8), F32),)),
         2 * 8 * 49 * 27),
        (OpInfo("c", "conv2d", {"kernel_layout": "OIHW", "groups": 8},
                (((1, 8, 9, 9), F32), ((8, 1, 3, 3), F32)), (((1, 8, 7, 7), F32),)),
         2 * 8 * 49 * 9),
        (OpInfo("d", "dense", {}, (((5, 33), F32), ((7, 33), F32)), (((5, 7), F32),)),
         2 * 5 * 7 * 33),
        (OpInfo("b", "batch_matmul", {"transpose_a": True},
                (((2, 33, 5), F32), ((2, 33, 7), F32)), (((2, 5, 7), F32),)), 2 * 2 * 5 * 7 * 33),
        (OpInfo("p", "max_pool2d", {"pool_size": (3, 2)},
                (((1, 4, 9, 9), F32),), (((1, 4, 4, 4), F32),)), 64 * 6),
        (OpInfo("s", "softmax", {}, (((5, 7), F32),), (((5, 7), F32),)), 5 * 35),
        (OpInfo("l", "layer_norm", {}, (((5, 7), F32),), (((5, 7), F32),)), 8 * 35),
        (OpInfo("r", "relu", {}, (((5, 7), F32),), (((5, 7), F32),)), 35),
        (OpInfo("t", "transpose", {}, (((5, 7), F32),), (((7, 5), F32),)), 0),
    ],
)  # fmt: skip
def test_flops(info, flops):
    assert flops_of(info) == flops


def test_melting_command(tmp_path, capsys):
    onnx = pytest.importorskip("onnx")
    from models import onnx_model

    path, data = tmp_path / "small.onnx", tmp_path / "small.json"
    onnx.save(onnx_model(), path)
    assert main(["melting", str(path), "--json", str(data)]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 100
    assert "conv2d_batch_norm_relu at " in printed
    kernels_ = json.loads(data.read_text())["kernels"]
    assert {k["composite"] for k in kernels_} >= {"conv2d", "conv2d_batch_norm_relu", "dense"}
    assert main(["melting", str(path), "--composite", "dense"]) == 0
    printed = capsys.readouterr().out
    assert "dense at " in printed
    assert "conv2d" not in printed
    assert main(["melting", str(path), "--composite", "lstm"]) == 1
    assert capsys.readouterr().err.startswith("error: no kernel 'lstm'; known composites: ")
    assert main(["melting", str(tmp_path / "none.onnx")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_changed_layout_does_not_change_the_arithmetic():
    def schedule(sch, ops, target):
        sch.transform_layout(ops.relu.block, ("write", 0), lambda i, j: (j, i))

    def pattern(x, w):
        return op.tanh(op.relu(op.dense(x, w)))

    case = Case(x=(5, 12), w=(7, 12))
    (plain,) = melting(
        partitioned(Composite("one", pattern, lambda *_: None), case), AVX512
    ).kernels
    (turned,) = melting(partitioned(Composite("one", pattern, schedule), case), AVX512).kernels
    assert turned.arithmetic == plain.arithmetic
    assert turned.bytes_before == plain.bytes_before
    assert [stage.op for stage in turned.nest.stages] == ["dense", "relu", "tanh"]


def test_a_block_in_a_block_counts_with_the_axes_of_the_outer_one():
    """What blockize leaves, as for tensorize: the inner block's own axes say a part."""
    a = te.placeholder((16, 24), name="a")
    b = te.compute((16, 24), lambda i, j: a[i, j] + 1.0, name="b")
    sch = Schedule(tvm.IRModule({"main": te.create_prim_func([a, b])}))
    _, columns = sch.get_loops(get_block(sch, "b"))
    sch.blockize(sch.split(columns, [None, 8])[1])
    (found,) = melting(sch.mod["main"], AVX512).kernels
    assert found.recompute == 1.0
    assert [stage.runs for stage in found.nest.stages] == [16 * 24]


def test_functions_without_loops():
    a = te.placeholder((), name="a")
    b = te.compute((), lambda: a() * 2.0, name="b")
    (found,) = melting(te.create_prim_func([a, b]), AVX512).kernels
    assert [(str(stage), stage.runs) for stage in found.nest.stages] == [("b", 1)]
    rows = te.var("n")
    a = te.placeholder((rows, 4), name="a")
    b = te.compute((rows, 4), lambda i, j: a[i, j] * 2.0, name="b")
    with pytest.raises(InputError, match=r"^prim_func: .*\bn\b"):
        melting(te.create_prim_func([a, b]), AVX512)


def test_sizes_where_nothing_is_symbolic():
    composite = BY_NAME["dense"]
    with pytest.raises(InputError, match="sizes: found 'n'; expected none: nothing here is symb"):
        melting(partitioned(composite, composite.cases[0]), AVX512, sizes={"n": 8})
