"""`intrinsic`, memory scopes, and the nest of an accelerator's kernel (WISHES A52)."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness import assert_close, model, random_args, run_case

import selfbyoc
from selfbyoc import Case, Composite, T, intrinsic, op
from selfbyoc.errors import InputError, RegistryError, ScheduleError
from selfbyoc.tvm import te

PATH = Path(__file__).parents[2] / "examples" / "tiles_of_an_accelerator.py"
SPEC = importlib.util.spec_from_file_location("tiles_of_an_accelerator", PATH)
example = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(example)

PADDED, POINTWISE = example.tiled.cases
ROWS, UNITS, STEP = 4, 16, 8


def kernel_of(composite, case):
    """The melting report of the only kernel."""
    mod = model(composite, case, random_args(case))
    parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
    (kernel,) = selfbyoc.melting(parted, "llvm").kernels
    assert kernel.level.name == "own schedule"
    return kernel


def product(factor=1.0):
    """A product of 4 x 8 by 8 x 16 floats: what it is, and how it is done; times a factor, which
    makes an instruction that is wrong.
    """

    @T.prim_func(s_tir=True)
    def what(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (ROWS, STEP), "float32", offset_factor=1)
        B = T.match_buffer(b, (STEP, UNITS), "float32", offset_factor=1)
        C = T.match_buffer(c, (ROWS, UNITS), "float32", offset_factor=1, scope="local.acc")
        with T.block("root"):
            T.reads(C[0:ROWS, 0:UNITS], A[0:ROWS, 0:STEP], B[0:STEP, 0:UNITS])
            T.writes(C[0:ROWS, 0:UNITS])
            for i, u, k in T.grid(ROWS, UNITS, STEP):
                with T.block("product"):
                    vi, vu, vk = T.axis.remap("SSR", [i, u, k])
                    C[vi, vu] = C[vi, vu] + A[vi, vk] * B[vk, vu]

    @T.prim_func(s_tir=True)
    def how(a: T.handle, b: T.handle, c: T.handle) -> None:
        at, bt, ct = T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, (ROWS, STEP), "float32", strides=[at, 1], offset_factor=1)
        B = T.match_buffer(b, (STEP, UNITS), "float32", strides=[bt, 1], offset_factor=1)
        C = T.match_buffer(
            c, (ROWS, UNITS), "float32", strides=[ct, 1], offset_factor=1, scope="local.acc"
        )
        with T.block("root"):
            T.reads(C[0:ROWS, 0:UNITS], A[0:ROWS, 0:STEP], B[0:STEP, 0:UNITS])
            T.writes(C[0:ROWS, 0:UNITS])
            for k, i in T.grid(STEP, ROWS):
                for u in T.vectorized(UNITS):
                    C[i, u] = C[i, u] + T.float32(factor) * A[i, k] * B[k, u]

    return what, how


def calling():
    """The product by a call of the C library for each step."""

    @T.prim_func(s_tir=True)
    def how(a: T.handle, b: T.handle, c: T.handle) -> None:
        at, bt, ct = T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, (ROWS, STEP), "float32", strides=[at, 1], offset_factor=1)
        B = T.match_buffer(b, (STEP, UNITS), "float32", strides=[bt, 1], offset_factor=1)
        C = T.match_buffer(
            c, (ROWS, UNITS), "float32", strides=[ct, 1], offset_factor=1, scope="local.acc"
        )
        with T.block("root"):
            T.reads(C[0:ROWS, 0:UNITS], A[0:ROWS, 0:STEP], B[0:STEP, 0:UNITS])
            T.writes(C[0:ROWS, 0:UNITS])
            for i, u, k in T.grid(ROWS, UNITS, STEP):
                C[i, u] = T.call_pure_extern("fmaf", A[i, k], B[k, u], C[i, u], dtype="float32")

    return product()[0], how


def of_a_number():
    """A function that takes no buffer."""

    @T.prim_func(s_tir=True)
    def nothing(n: T.int32) -> None:
        T.evaluate(n)

    return nothing


def dense(ins, call):
    """Of a weight that lies [in, units]."""
    x, weight = ins
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return te.compute(
        call.outputs[0].shape, lambda i, u: te.sum(x(i, k) * weight(k, u), axis=k), name="dense"
    )


def transposed(weight):
    units, k = weight.shape
    return te.compute((k, units), lambda i, u: weight(u, i), name="weight_t")


def by(name):
    """A schedule of dense and relu whose products are the intrinsic of this name."""

    def schedule(sch, ops, target):
        i, u = sch.get_loops(ops.relu.block)
        i, row = sch.split(i, [None, ROWS])
        u, lane = sch.split(u, [None, UNITS])
        sch.reorder(i, u, row, lane)
        sch.compute_at(ops.dense.block, u)
        sch.set_scope(ops.dense.block, 0, "local.acc")
        *_, row, lane, k = sch.get_loops(ops.dense.block)
        k, step = sch.split(k, [None, STEP])
        sch.reorder(k, row, lane, step)
        sch.decompose_reduction(ops.dense.block, k)
        sch.tensorize(row, name)

    return Composite(
        "by_intrinsic",
        lambda x, w: op.relu(op.dense(x, w)),
        schedule,
        lambda x, w: np.maximum(x @ w.T, 0),
        compute={"dense": dense},
        pack={"w": transposed},
    )


DENSE = Case(x=(12, 24), w=(48, 24), constants=("w",))


@pytest.mark.parametrize("case", [PADDED, POINTWISE], ids=["padded", "pointwise"])
def test_the_stages_of_a_tile_in_order(case):
    """A52: "TIR of Intertile / DMA loads / Intratile Conv2d / Intratile e_wise / DMA stores"."""
    kernel = kernel_of(example.tiled, case)
    (tiles,) = kernel.nest.body  # one loop over tiles, and nothing outside of it
    assert tiles.kind == "parallel"
    load = "conv2d_pad" if case is PADDED else "data_local.inp"
    stages = {stage.name: stage for stage in kernel.nest.stages}
    assert list(stages) == [
        "conv2d_init", load, "kernel_local.wgt", "conv2d_update_o", "right_shift", "clip", "cast",
        "cast_local.out",
    ]  # fmt: skip
    assert {b.name: b.scope for b in kernel.allocations} == {
        "conv2d_local.acc": "local.acc",
        stages[load].writes: "local.inp",
        "kernel_local.wgt": "local.wgt",
        "right_shift_local.acc": "local.acc",
        "clip_local.acc": "local.acc",
        "cast_local.out": "local.out",
    }
    # Each stage reads what the one before it left in its memory.
    assert stages["conv2d_update_o"].reads == (stages[load].writes, "kernel_local.wgt")
    assert stages["right_shift"].reads == ("conv2d_local.acc",)
    assert stages["clip"].reads == ("right_shift_local.acc",)
    assert stages["cast"].reads == ("clip_local.acc",)
    assert (stages["cast_local.out"].reads, stages["cast_local.out"].writes) == (
        ("cast_local.out",),
        "cast",
    )
    # Loads and products are under the loop over channels, elementwise ops after it.
    inner = kernel.nest.loops_of("conv2d_update_o")[1]
    assert {s.name for s in inner.stages} == {load, "kernel_local.wgt", "conv2d_update_o"}
    assert kernel.traffic_after == 0


@pytest.mark.parametrize("case", [PADDED, POINTWISE], ids=["padded", "pointwise"])
def test_the_tiles_compute_what_numpy_does(case):
    run = run_case(example.tiled, case)
    assert run.counts == {example.tiled.name: 1}
    assert_close(run)


@pytest.mark.parametrize(
    ("data", "kernel", "why"),
    [
        ((1, 8, 5, 9), (8, 8, 3, 3), "9 columns are no multiple of 8"),
        ((1, 12, 5, 8), (8, 12, 3, 3), "12 channels are no multiple of 8"),
        ((1, 8, 5, 8), (7, 8, 3, 3), "7 results are no multiple of 8"),
    ],
)
def test_what_the_instruction_cannot_do_is_refused(data, kernel, why):
    case = Case(example.padded, data=(data, "int8"), kernel=(kernel, "int8"))
    mod = model(example.tiled, case, random_args(case))
    parted = selfbyoc.partition_for_tefuse(mod, composites=[example.tiled])
    records = selfbyoc.report(parted).records
    assert [(r.status, r.reason) for r in records] == [("refused", why)]


@pytest.mark.parametrize("functions", [product, calling])
def test_an_intrinsic_of_floats(functions):
    run = run_case(by(intrinsic(f"test.{functions.__name__}", *functions())), DENSE)
    assert run.counts == {"by_intrinsic": 1}
    assert_close(run)


def test_it_is_the_implementation_that_runs():
    """One that multiplies by 2 doubles the result, which verification finds."""
    composite = by(intrinsic("test.double", *product(2.0)))
    run = run_case(composite, DENSE)
    np.testing.assert_allclose(run.found[0], 2 * run.expected[0], rtol=1e-5, atol=1e-4)
    mod = model(composite, DENSE, random_args(DENSE))
    assert not selfbyoc.verify(mod, None, None, [composite]).ok


def test_the_same_functions_may_be_given_again():
    assert [intrinsic("test.again", *product()) for _ in range(2)] == ["test.again"] * 2
    with pytest.raises(RegistryError, match=r"^intrinsic test\.again: taken already"):
        intrinsic("test.again", *product(3.0))


@pytest.mark.parametrize(
    ("name", "functions", "error", "text"),
    [
        (7, product(), InputError, "intrinsic: name: expected a text, found 7"),
        ("test.x", (None, None), InputError, "description: expected a PrimFunc, found NoneType"),
        ("test.x", (product()[0], dense), InputError, "implementation: expected a PrimFunc, found"),
        (
            "test.x",
            (product()[0], example.multiply),
            InputError,
            "implementation: expected the parameters of the description, float32[4, 8] in global, "
            "float32[8, 16] in global, float32[4, 16] in local.acc, found int8[8, 8, 1, 1] in "
            "local.wgt, int8[8, 1, 8] in local.inp, int32[8, 1, 8] in local.acc",
        ),
        ("test.x", (of_a_number(), of_a_number()), ScheduleError, "intrinsic test.x: "),
    ],
)  # fmt: skip
def test_what_is_no_intrinsic(name, functions, error, text):
    with pytest.raises(error) as raised:
        intrinsic(name, *functions)
    assert text in str(raised.value)


@pytest.mark.parametrize("name", ["test.nobody", "example.multiply"])
def test_one_that_does_not_fit_names_the_composite(name):
    """Unknown, or of other loops."""
    with pytest.raises(ScheduleError, match=r"^composite by_intrinsic: its schedule raised"):
        run_case(by(name), DENSE)


def test_another_schedule_needs_no_intrinsic():
    """The composite's default schedule is right where the instruction is not wanted."""
    run = run_case(replace(by("test.nobody"), schedule=None), DENSE)
    assert_close(run)
