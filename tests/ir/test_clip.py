"""Clips whose limits are in the wrong order, or beyond the dtype."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite, op

ANY_CLIP = Composite("clipped", lambda x: op.negative(op.clip(x)))
FLOATS = np.array([[-5, -1, 0, 1, 2, 7, 0.5]], "float32")
BYTES = np.array([[-128, -5, 0, 7, 127]], "int8")

PROGRAMS = {
    "clip": lambda x: op.negative(op.clip(x, a_min=2.0, a_max=-1.0)),
    "minimum of maximum": lambda x: op.negative(op.minimum(op.maximum(x, 2.0), -1.0)),
    "minimum of relu": lambda x: op.negative(op.minimum(op.relu(x), -1.0)),
    "maximum of minimum": lambda x: op.negative(op.maximum(op.minimum(x, -1.0), 2.0)),
    "a point": lambda x: op.negative(op.minimum(op.maximum(x, 1.0), 1.0)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_limits_in_the_wrong_order(name):
    """The order of minimum and maximum counts then; each as a composite of its own, and read as a
    clip where it is one.
    """
    program = PROGRAMS[name]
    wanted = {
        "clip": [2.0] * 7,
        "minimum of maximum": [-1.0] * 7,
        "minimum of relu": [-1.0] * 7,
        "maximum of minimum": [2.0] * 7,
        "a point": [1.0] * 7,
    }[name]
    mod = selfbyoc.emit(program, {"x": FLOATS.shape})
    composites = [ANY_CLIP, Composite("as_written", program)]
    parted = selfbyoc.partition_for_tefuse(mod, composites=composites)
    assert len(selfbyoc.report(parted).counts) == 1
    (found,) = selfbyoc.build(parted, "llvm")(FLOATS)
    np.testing.assert_array_equal(found, -np.array([wanted], "float32"))
    assert selfbyoc.verify(mod, composites=composites).ok


@pytest.mark.parametrize(("low", "high"), [(-300, 300), (0, 255), (-1.7, 2.7), (300, 400)])
def test_limits_beyond_the_dtype(low, high):
    mod = selfbyoc.emit(
        lambda x: op.negative(op.clip(x, a_min=low, a_max=high)), {"x": (BYTES.shape, "int8")}
    )
    parted = selfbyoc.partition_for_tefuse(mod, composites=[ANY_CLIP])
    assert selfbyoc.report(parted).counts == {"clipped": 1}
    (found,) = selfbyoc.build(parted, "llvm")(BYTES)
    wide = np.clip(BYTES.astype("int64"), int(low), int(high))
    np.testing.assert_array_equal(found, -np.clip(wide, -128, 127).astype("int8"))


NESTED = {
    "hard-swish": ((0.0, np.inf), (-np.inf, 6.0)),
    "within": ((-1.0, 2.0), (-3.0, 7.0)),
    "around": ((-9.0, 9.0), (-2.0, 0.5)),
    "apart": ((-9.0, -4.0), (1.0, 2.0)),
}


@pytest.mark.parametrize("name", sorted(NESTED))
def test_a_clip_of_a_clip_is_one(name):
    """PyTorch's hardtanh, hardswish and hardsigmoid are exported with two."""
    (low, high), (bottom, top) = NESTED[name]

    def program(x):
        inner = op.clip(x, a_min=low, a_max=high)
        return op.negative(op.clip(inner, a_min=bottom, a_max=top))

    mod = selfbyoc.emit(program, {"x": FLOATS.shape})
    parted = selfbyoc.partition_for_tefuse(mod, composites=[ANY_CLIP])
    assert selfbyoc.report(parted).counts == {"clipped": 1}
    (found,) = selfbyoc.build(parted, "llvm")(FLOATS)
    np.testing.assert_array_equal(found, -FLOATS.clip(low, high).clip(bottom, top))


NESTED_INTEGERS = {
    "within": ("int32", (-9, 9), (-100, 100)),
    "around": ("int8", (-100, 100), (-9, 9)),
    "apart": ("int8", (-90, -40), (10, 20)),
    "a point": ("int64", (3, 3), (-5, 9)),
    "fractions are cut off": ("int32", (-7.9, 7.9), (-2.5, 300.7)),
    "beyond the dtype": ("uint8", (-5, 300), (3, 1e9)),
    "without an end": ("int32", (-np.inf, np.inf), (-(2.0**31), 5)),
}


@pytest.mark.parametrize("name", sorted(NESTED_INTEGERS))
def test_a_clip_of_a_clip_of_integers_is_one(name):
    dtype, inner, outer = NESTED_INTEGERS[name]
    ends = np.iinfo(dtype)
    x = np.array([[ends.min, 0, 1, 2, 5, 9, 50, 101, ends.max]], dtype)

    def program(x):
        cut = op.clip(x, a_min=inner[0], a_max=inner[1])
        return op.negative(op.clip(cut, a_min=outer[0], a_max=outer[1]))

    mod = selfbyoc.emit(program, {"x": (x.shape, dtype)})
    parted = selfbyoc.partition_for_tefuse(mod, composites=[ANY_CLIP])
    assert selfbyoc.report(parted).counts == {"clipped": 1}
    (found,) = selfbyoc.build(parted, "llvm")(x)
    wanted = [int(each) for each in x[0]]
    for low, high in (inner, outer):
        low, high = (int(np.clip(limit, ends.min, ends.max)) for limit in (low, high))
        wanted = [min(max(each, low), high) for each in wanted]
    np.testing.assert_array_equal(found, -np.array([wanted], dtype))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("limits", [((2, -1), (-9, 9)), ((-9, 9), (2, -1)), ((2, -1), (5, 3))])
def test_limits_in_the_wrong_order_stay_two(limits, dtype):
    """The lower one counts in each."""
    (low, high), (bottom, top) = limits

    def program(x):
        inner = op.clip(x, a_min=low, a_max=high)
        return op.negative(op.clip(inner, a_min=bottom, a_max=top))

    x = np.array([[-5, -1, 0, 1, 2, 4, 7]], dtype)
    mod = selfbyoc.emit(program, {"x": (x.shape, dtype)})
    parted = selfbyoc.partition_for_tefuse(mod, composites=[ANY_CLIP])
    assert selfbyoc.report(parted).left["clip"] == 1
    wanted = np.maximum(np.minimum(x, high), low)
    wanted = np.maximum(np.minimum(wanted, top), bottom)
    np.testing.assert_array_equal(selfbyoc.build(parted, "llvm")(x)[0], -wanted)


def test_what_is_no_number_stays_so():
    def program(x):
        inner = op.clip(x, a_min=-1.0, a_max=2.0)
        return op.negative(op.clip(inner, a_min=0.0, a_max=7.0))

    x = np.array([[np.nan, -np.inf, np.inf, 0.5]], "float32")
    (found,) = selfbyoc.build(selfbyoc.emit(program, {"x": x.shape}), composites=[ANY_CLIP])(x)
    np.testing.assert_array_equal(found, -x.clip(-1, 2).clip(0, 7))


def test_a_clip_that_others_read_stays():
    def program(x):
        inner = op.clip(x, a_min=0.0, a_max=9.0)
        return op.add(op.negative(op.clip(inner, a_min=-1.0, a_max=1.0)), inner)

    mod = selfbyoc.emit(program, {"x": FLOATS.shape})
    (found,) = selfbyoc.build(mod, "llvm", composites=[ANY_CLIP])(FLOATS)
    inner = FLOATS.clip(0, 9)
    np.testing.assert_array_equal(found, inner - inner.clip(-1, 1))
