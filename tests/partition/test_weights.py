"""Weights: arguments of the kernel, packed once when building, and in the exported library once."""

import numpy as np
import pytest
from harness import assert_close, run_case
from packing import BLOCK, dense, pack_weight, packed_dense

import selfbyoc
from selfbyoc import Case, Composite, op, partition_for_tefuse
from selfbyoc.ir.emit import emit
from selfbyoc.partition.generation import ir
from selfbyoc.tvm import topi

UNITS, INNER = 512, 1024
CASE = Case(
    lambda x, weight, bias: op.relu(op.bias_add(op.dense(x, weight), bias)),
    x=(4, INNER),
    weight=(UNITS, INNER),
    bias=(UNITS,),
    constants=["weight", "bias"],
)


def model(case=CASE, seed=0):
    rng = np.random.default_rng(seed)
    constants = {n: rng.standard_normal(case.args[n][0]).astype("float32") for n in case.constants}
    return emit(case.program, case.args, constants), constants


def test_an_exported_library_holds_each_weight_once(tmp_path):
    mod, constants = model()
    library = selfbyoc.build(mod, composites=[dense])
    library.export_library(tmp_path / "model.so")
    weights = sum(array.nbytes for array in constants.values())
    size = (tmp_path / "model.so").stat().st_size
    assert weights < size < 1.15 * weights, f"{size} bytes for {weights} bytes of weights"


def test_a_constant_is_packed_in_the_caller():
    mod, constants = model()
    parted = partition_for_tefuse(mod, composites=[dense])
    (sites,) = ir.call_constants(parted).values()
    (site,) = sites
    packed = next(array for array in site.values() if array.ndim == 3)
    assert packed.shape == (UNITS // BLOCK, INNER, BLOCK)
    np.testing.assert_array_equal(packed[2, 5], constants["weight"][2 * BLOCK : 3 * BLOCK, 5])


def test_packing_can_be_left_to_run_time():
    mod, _ = model()
    parted = partition_for_tefuse(mod, composites=[dense], pack=False)
    (sites,) = ir.call_constants(parted).values()
    assert all(array.ndim < 3 for array in sites[0].values())
    packed = selfbyoc.build(mod, composites=[dense])
    unpacked = selfbyoc.build(parted)
    x = np.random.default_rng(1).standard_normal((4, INNER)).astype("float32")
    np.testing.assert_array_equal(packed(x)[0], unpacked(x)[0])


def test_a_tail_is_packed_with_zeros():
    case = Case(
        lambda x, weight: op.dense(x, weight), x=(3, 6), weight=(19, 6), constants=["weight"]
    )
    mod, constants = model(case)
    parted = partition_for_tefuse(mod, composites=[dense])
    ((site,),) = ir.call_constants(parted).values()
    (packed,) = site.values()
    assert packed.shape == (2, 6, BLOCK)
    np.testing.assert_array_equal(packed[1, :, 3:], 0)
    np.testing.assert_array_equal(packed[1, :, :3], constants["weight"][16:].T)


def test_a_weight_with_another_reader_is_packed_at_run_time():
    """Its packed form must not reach the other reader."""

    def program(x, weight):
        return op.add(op.dense(x, weight), op.dense(op.relu(x), weight))

    case = Case(program, x=(5, 16), weight=(16, 16), constants=["weight"])
    run = run_case(dense, case)
    assert run.counts == {"packed_dense": 2}
    assert_close(run)


def test_one_argument_used_twice_inside_a_composite():
    twice = Composite(
        "twice",
        lambda x, w: op.dense(op.relu(op.dense(x, w)), w),
        compute={"dense": packed_dense},
        pack={"w": pack_weight},
    )
    case = Case(x=(5, 16), w=(16, 16), constants=["w"])
    run = run_case(twice, case)
    assert run.counts == {"twice": 1}
    assert_close(run)


def test_a_weight_that_importers_store_transposed():
    """[in, units] as ONNX MatMul has it: read as dense on the transposed weight, and packed at
    once.
    """
    case = Case(
        lambda x, weight: op.dense(x, op.transpose(weight, axes=(1, 0))),
        x=(5, 24), weight=(24, 20), constants=["weight"],
    )  # fmt: skip
    run = run_case(dense, case)
    assert run.counts == {"packed_dense": 1}
    assert_close(run)


@pytest.mark.parametrize("name", ["weight", "bias"])
def test_some_weights_constant_and_some_not(name):
    case = Case(CASE.program, constants=[name], x=(3, 40), weight=(24, 40), bias=(24,))
    run = run_case(dense, case)
    assert run.counts == {"packed_dense": 1}
    assert_close(run)


def test_params_by_name_do_the_same_as_constants():
    mod, constants = model()
    free = emit(CASE.program, CASE.args)
    x = np.random.default_rng(1).standard_normal((4, INNER)).astype("float32")
    by_name = selfbyoc.build(free, params=constants, composites=[dense])
    np.testing.assert_array_equal(by_name(x)[0], selfbyoc.build(mod, composites=[dense])(x)[0])


def topi_dense(ins, call):
    return topi.nn.dense(*ins, out_dtype=call.attrs["out_dtype"])


def test_a_pack_may_leave_a_weight_as_it_is():
    """Where the compute knows: a pack that depends on the shape or the machine."""
    plain = Composite(
        "plain",
        lambda x, w: op.relu(op.dense(x, w)),
        compute={"dense": topi_dense},
        pack={"w": lambda w: w},
    )
    case = Case(constants=["w"], x=(3, 40), w=(24, 40))
    run = run_case(plain, case)
    assert run.counts == {"plain": 1}
    assert_close(run)
