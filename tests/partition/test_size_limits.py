"""Declared sizes beyond any index: a typed error that names the value, before memory is taken."""

import resource

import numpy as np
import pytest

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.errors import CompositeError, InputError

F32 = "float32"
SIDE = 1 << 20
IMAGE, KERNEL = ((1, 3, 8, 8), F32), ((4, 3, 3, 3), F32)
FEW = 600 << 20  # bytes that a build of nothing large takes, and more


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def conv(**attrs):
    return lambda x, w: op.relu(op.conv2d(x, w, **attrs))


def attention(q, k, v):
    return op.batch_matmul(op.softmax(op.batch_matmul(q, k, transpose_b=True)), v)


def dense(x, w):
    return op.relu(op.dense(x, w))


def both(x, y):
    return op.relu(op.multiply(x, y))


def total(x, y):
    return op.sum(op.multiply(x, y), axis=(0, 1))


def pool(x):
    return op.max_pool2d(x, pool_size=3, padding=SIDE)


ROWS, LONG = ((1, SIDE, 8), F32), ((1, 1 << 29), F32)
CROSSED = {"x": ((SIDE, 1), F32), "y": ((1, SIDE), F32)}
WINDOWS = {"x": IMAGE, "w": KERNEL}
CASES = {
    "a weight": (dense, {"x": ((1, SIDE), F32), "w": ((SIDE, SIDE), F32)}),
    "an intermediate value": (total, CROSSED),
    "an output": (both, CROSSED),
    "padding alone": (conv(padding=SIDE, strides=SIDE), WINDOWS),
    "windows": (conv(padding=SIDE, dilation=SIDE), WINDOWS),
    "padding of a pool": (pool, {"x": IMAGE}),
    "scores": (attention, {"q": ROWS, "k": ROWS, "v": ROWS}),
    "a packed weight": (dense, {"x": LONG, "w": LONG}),
}


def said(do):
    """What it returns, or the error of ours."""
    try:
        return do(), ""
    except InputError as err:
        return None, str(err)


@pytest.mark.parametrize("name", CASES)
def test_no_kernel_of_ours(name):
    """It is TVM's then, which builds it or does not; what it says names the value."""
    program, params = CASES[name]
    before = peak()
    mod = emit(program, params)
    parted, problem = said(lambda: selfbyoc.partition_for_tefuse(mod))
    if parted is not None:
        told = "2^31 - 1 elements" in str(selfbyoc.explain(mod).to_json())
        assert told or params is CROSSED  # for a lone multiply there is no composite
        taken = {kind for r in selfbyoc.report(parted).matched for kind in r.ops}
        assert not taken & {"conv2d", "dense", "batch_matmul", "max_pool2d", "multiply"}
        _, problem = said(lambda: selfbyoc.build(parted, cache=False))
    assert not problem or "2^31 - 1 elements" in problem
    assert peak() - before < FEW


def test_padding_of_39_bits():
    """TVM 0.17 has numbers of 32 bits there, TVM 0.27 for the extents that come of it."""
    wanted = r"op.conv2d: (padding|strides): expected numbers of 32 bits|2\^31 - 1 elements"
    with pytest.raises((CompositeError, InputError), match=wanted):
        selfbyoc.build(emit(conv(padding=1 << 39), WINDOWS), cache=False)


@pytest.mark.parametrize("extent", [1 << 63, 1 << 64, 10**400])
def test_extents_of_no_64_bits(extent):
    with pytest.raises(CompositeError, match="extents from 0 to 2"):
        emit(lambda x: op.softmax(x), {"x": ((extent,), F32)})


def test_what_is_just_small_enough_is_taken():
    """Nothing is built of it."""
    program, params = CASES["a packed weight"]
    half = {name: ((1, 1 << 27 if name == "x" else (1 << 27) - 16), F32) for name in params}
    half["x"] = half["w"]
    mod = selfbyoc.partition_for_tefuse(emit(program, half))
    assert selfbyoc.report(mod).counts == {"dense": 1}


def test_other_errors_stay_what_they_are():
    from selfbyoc.partition.extents import sizes_told

    mod = emit(lambda x: op.relu(x), {"x": ((2, 3), F32)})
    with pytest.raises(ValueError, match="own"), sizes_told(mod):
        raise ValueError("own")
    x = np.ones((2, 3), F32)
    np.testing.assert_array_equal(selfbyoc.build(mod, cache=False)(x)[0], x)
