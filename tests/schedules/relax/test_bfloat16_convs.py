"""Convolutions of words of two bfloat16, by what every CPU computes that reads words packed for
another.
"""

import math

import numpy as np
import pytest
from bfloat16_models import (
    BF16,
    F32,
    as_if_words_paid,
    assert_rounded,
    convolved,
    image_and_weights,
    model,
    plan,
)
from symbolic_programs import UNKNOWN

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.plan import plan_of
from selfbyoc.machine import machine
from selfbyoc.runtime.tolerance import difference
from selfbyoc.schedules.kernels.conv.channels.plan import ChannelPlan
from selfbyoc.schedules.kernels.conv.pixels.plan import PixelPlan
from selfbyoc.schedules.kernels.conv.pointwise.plan import PointwisePlan
from selfbyoc.schedules.kernels.conv.rounded import RoundedPlan
from selfbyoc.tvm import make_target


@pytest.fixture
def words(monkeypatch):
    with as_if_words_paid(monkeypatch):
        yield


def plans(mod):
    return [found for _, found in plan(mod).plans]


def conv2d(**attrs):
    return lambda x, w: op.cast(op.conv2d(x, w, **attrs), dtype="float32")


# By form: its plan, the image, the weight, stride, padding, groups.
FORMS = {
    "flat pixels": (PointwisePlan, (1, 64, 28, 28), (48, 64, 1, 1), 1, 0, 1),
    "flat pixels in place": (PointwisePlan, (1, 64, 28, 28), (17, 64, 1, 1), 1, 0, 1),
    "flat pixels in parts": (PointwisePlan, (1, 2048, 28, 28), (36, 2048, 1, 1), 1, 0, 1),
    "flat pixels, an odd channel": (PointwisePlan, (3, 33, 14, 14), (40, 33, 1, 1), 1, 0, 1),
    "every other pixel": (PointwisePlan, (1, 35, 28, 28), (32, 35, 1, 1), 2, 0, 1),
    "pixels under a window": (PointwisePlan, (2, 19, 29, 31), (21, 19, 3, 3), 2, 1, 1),
    "channels": (ChannelPlan, (1, 128, 7, 7), (96, 128, 1, 1), 1, 0, 1),
    "channels of a window": (ChannelPlan, (1, 127, 7, 7), (96, 127, 3, 3), 2, 1, 1),
    "channels of groups": (ChannelPlan, (1, 60, 7, 7), (120, 15, 3, 3), 1, 1, 4),
    "rows of pixels in groups": (PixelPlan, (2, 48, 17, 10), (72, 12, 3, 3), 1, 1, 4),
}


@pytest.mark.parametrize("form", FORMS)
def test_sums_of_words_are_sums_of_floats(words, form):
    """The image is of bfloat16 as it comes: nothing is rounded, and sums are float32."""
    kind, image, weight, stride, padding, groups = FORMS[form]
    arrays = image_and_weights(x=image, w=weight)
    mod = model(conv2d(strides=stride, padding=padding, groups=groups), arrays)
    (found,) = plans(mod)
    assert isinstance(found, RoundedPlan)
    assert isinstance(found.conv, kind)
    library = selfbyoc.build(mod)
    assert library.report.counts == {"conv2d": 1}
    (made,) = library(arrays["x"])
    wanted = convolved(*arrays.values(), stride, padding, groups)
    assert difference(made, wanted, "float32", math.prod(weight[1:])) is None


@pytest.mark.parametrize("size", [7, 28])
def test_any_number_of_images(words, size):
    arrays = image_and_weights(x=(5, 33, size, size), w=(48, 33, 1, 1))
    types = {"x": ((UNKNOWN, 33, size, size), "bfloat16"), "w": ((48, 33, 1, 1), "bfloat16")}
    library = selfbyoc.build(emit(conv2d(), types, {"w": arrays["w"]}))
    assert library.report.counts == {"conv2d": 1}
    for images in (1, 5):
        x = arrays["x"][:images]
        assert difference(library(x)[0], convolved(x, arrays["w"]), "float32", 33) is None


@pytest.mark.parametrize("size", [7, 28])
def test_after_the_last_channel_comes_zero(words, size):
    """And not the last one again: infinity times the weight's zero is no number."""
    arrays = image_and_weights(x=(1, 33, size, size), w=(48, 33, 1, 1))
    arrays["x"][:, -1] = np.inf
    mod = model(conv2d(), arrays)
    assert isinstance(plans(mod)[0], RoundedPlan)
    (found,) = selfbyoc.build(mod)(arrays["x"])
    signs = np.sign(arrays["w"][:, -1, 0, 0].astype(F32)).reshape(1, -1, 1, 1)
    np.testing.assert_array_equal(found, np.broadcast_to(signs * np.inf, found.shape))


# ---- values that our kernels have in float32, and the model in bfloat16


def relu(x):
    return np.maximum(x, 0)


def chain(x, w, v):
    return op.cast(op.conv2d(op.relu(op.conv2d(x, w)), v, padding=1, strides=2), dtype="float32")


def chain_in_numpy(x, w, v, rounded):
    return convolved(rounded(relu(convolved(x, w))), v, 2, 1)


def residual(x, w):
    scaled = op.relu(op.multiply(x, 0.3))
    return op.cast(op.relu(op.add(op.conv2d(scaled, w), x)), dtype="float32")


def residual_in_numpy(x, w, rounded):
    scale = np.float64(BF16(0.3))
    return relu(convolved(rounded(relu(x * scale)), w) + x)


CASES = [
    (program, in_numpy, {"x": (1, 33, size, size), **weights})
    for size in (7, 28)
    for program, in_numpy, weights in (
        (chain, chain_in_numpy, {"w": (36, 33, 1, 1), "v": (40, 36, 3, 3)}),
        (residual, residual_in_numpy, {"w": (33, 33, 1, 1)}),
    )
]


@pytest.mark.parametrize(("program", "in_numpy", "shapes"), CASES)
def test_what_a_product_reads_is_rounded_once(words, program, in_numpy, shapes):
    """An element between two of bfloat16 may fall to the other side: most do not."""
    arrays = image_and_weights(**shapes)
    mod = model(program, arrays)
    parted = selfbyoc.partition_for_tefuse(mod)
    for kernel in kernels(parted):
        made = kernel.schedule(selfbyoc.host_target())[0].plan
        assert {type(found) for _, found in made.plans} == {RoundedPlan}
    (found,) = selfbyoc.build(parted)(arrays["x"])
    assert_rounded(found, arrays, in_numpy)


def test_it_is_verified(words):
    """What rounding to bfloat16 explains is no fault, and a fault is one yet."""
    parted = selfbyoc.partition_for_tefuse(model(residual, image_and_weights(**CASES[1][2])))
    assert "1 kernel: 1 passed" in str(selfbyoc.verify(parted))


# ---- which convolutions are of words


def test_words_are_multiplied_as_they_lie():
    """Those packed for another CPU, too; and halves where the CPU would have words."""
    mod = model(conv2d(), image_and_weights(x=(1, 64, 28, 28), w=(48, 64, 1, 1)))
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target="llvm -mcpu=znver4"))
    shapes = {"words": (3, 32, 1, 1, 16), "halves": (3, 64, 1, 1, 16)}
    for cpu in (machine(make_target(f"llvm -mcpu={name}")) for name in ("znver4", "haswell")):
        found = {n: plan_of(kernel.match, {"weight": s}, cpu).plans for n, s in shapes.items()}
        assert [isinstance(p, RoundedPlan) for ((_, p),) in found.values()] == [True, False]


@pytest.mark.parametrize(
    "weight",
    [(4, 64, 1, 1), (64, 1, 3, 3)],  # little is saved; a channel by itself fills no word
)
def test_what_is_of_floats(words, weight):
    groups = 64 // weight[1]
    mod = model(conv2d(groups=groups), image_and_weights(x=(1, 64, 28, 28), w=weight))
    assert not isinstance(plans(mod)[0], RoundedPlan)


def test_what_a_model_has_in_floats_stays_in_floats(words):
    """A weight that the model itself makes floats of is multiplied by floats."""

    def program(x, w):
        return op.conv2d(x, op.cast(w, dtype="float32"))

    arrays = image_and_weights(x=(1, 64, 28, 28), w=(48, 64, 1, 1))
    arrays["x"] = arrays["x"].astype(F32)
    assert not isinstance(plans(model(program, arrays))[0], RoundedPlan)
