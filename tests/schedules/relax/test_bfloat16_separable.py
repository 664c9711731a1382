"""A depthwise convolution whose pointwise ones are of words of two bfloat16, by what every CPU
computes that reads words packed for another.
"""

import numpy as np
import pytest
from bfloat16_models import (
    as_if_words_paid,
    assert_rounded,
    convolved,
    image_and_weights,
    model,
    plan,
)

import selfbyoc
from selfbyoc import op
from selfbyoc.language.decisions import deciding
from selfbyoc.schedules.kernels.separable.plan import SeparablePlan
from selfbyoc.schedules.kernels.separable.staged import StagedPlan

ONE_CORE = "llvm -mcpu=haswell -num-cores=1"


@pytest.fixture
def words(monkeypatch):
    with as_if_words_paid(monkeypatch):
        yield


def pair(groups, stride=1, padding=1):
    """A depthwise convolution and a pointwise one."""

    def program(x, w, v):
        hidden = op.conv2d(x, w, groups=groups, padding=padding, strides=stride)
        return op.cast(op.conv2d(op.clip(hidden), v), dtype="float32")

    def in_numpy(x, w, v, rounded):
        hidden = convolved(x, w, stride, padding, groups)
        return convolved(rounded(np.clip(hidden, 0, 6)), v)

    return program, in_numpy


def block(groups, stride=1, padding=1, first=(1, 0)):
    """The same after an expansion; with its stride and padding a network's first."""

    def program(x, u, w, v):
        y = op.clip(op.conv2d(x, u, strides=first[0], padding=first[1]))
        y = op.clip(op.conv2d(y, w, groups=groups, padding=padding, strides=stride))
        return op.cast(op.conv2d(y, v), dtype="float32")

    def in_numpy(x, u, w, v, rounded):
        y = np.clip(convolved(x, u, *first), 0, 6)
        y = np.clip(convolved(y, w, stride, padding, groups), 0, 6)
        return convolved(rounded(y), v)

    return program, in_numpy


def pair_of(image, channels, out, window=3, **attrs):
    shapes = {"x": image, "w": (channels, 1, window, window), "v": (out, channels, 1, 1)}
    return "depthwise_pointwise", pair(channels, **attrs), shapes


def block_of(image, channels, out, window=1, **attrs):
    shapes = {
        "x": image, "u": (channels, image[1], window, window), "w": (channels, 1, 3, 3),
        "v": (out, channels, 1, 1),
    }  # fmt: skip
    return "inverted_residual", block(channels, **attrs), shapes


# By what is said of the plan: the composite, the model and NumPy, the shapes, what is decided. One
# core has an image in one chunk.
FOLDED = {"steps_side_by_side": 2}
BY_BLOCKS = {
    "in chunks": (*pair_of((1, 64, 56, 56), 64, 128), {}),
    "in one chunk": (*pair_of((1, 128, 13, 14), 128, 40), {}),
    "an odd channel, in one chunk": (*pair_of((2, 35, 9, 10), 35, 33, stride=2), {}),
    "two steps side by side": (*pair_of((1, 64, 19, 18), 64, 20), FOLDED),
    "as many as are odd": (*pair_of((1, 67, 19, 18), 67, 20), FOLDED),
    "expanded in chunks": (*block_of((1, 24, 56, 56), 144, 24), {}),
    "expanded in one chunk": (*block_of((1, 33, 12, 11), 99, 32), {}),
    "expanded, stride 2": (*block_of((2, 16, 31, 27), 97, 24, stride=2), {}),
    "a picture": (*block_of((1, 3, 35, 32), 48, 24, window=3, first=(2, 1)), {}),
    "a picture in one chunk": (*block_of((1, 3, 35, 32), 48, 24, 3, first=(2, 1)), {}),
}
STAGED = {
    "more of each channel": ("depthwise_pointwise", pair(18, padding=3), {
        "x": (1, 18, 14, 13), "w": (36, 1, 3, 3), "v": (37, 36, 1, 1)}),
    "windows in the padding": pair_of((1, 33, 8, 9), 33, 40, padding=3),
}  # fmt: skip


def check(name, programs, shapes, target=None):
    """Rounded as the model has it, but for an element between two of bfloat16; -> the plan."""
    program, in_numpy = programs
    arrays = image_and_weights(**shapes)
    mod = model(program, arrays)
    library = selfbyoc.build(mod, target=target)
    assert library.report.counts == {name: 1}
    (found,) = library(arrays["x"])
    assert_rounded(found, arrays, in_numpy)
    return plan(mod, target)


@pytest.mark.parametrize("form", BY_BLOCKS)
def test_by_blocks_of_channels(words, form):
    name, programs, shapes, told = BY_BLOCKS[form]
    with deciding(told, fitted=True):
        found = check(name, programs, shapes, ONE_CORE if "one chunk" in form else None)
    assert isinstance(found, SeparablePlan)
    assert found.words == (name == "inverted_residual", True)
    assert found.chunked == ("one chunk" not in form)
    assert found.fold == (2 if told else 1)


@pytest.mark.parametrize("form", STAGED)
def test_stage_by_stage(words, form):
    found = check(*STAGED[form])
    assert isinstance(found, StagedPlan)
    assert found.words == (False, True)
