"""Convolutions in one kernel: one output channel, and steps wider than the window."""

import pytest
from against_numpy import normal, refusals, taken

from selfbyoc import op


def pair(groups, **attrs):
    return lambda x, w, v: op.conv2d(op.conv2d(x, w, padding=1, groups=groups), v, **attrs)


def inverted(x, e, d, p, **attrs):
    y = op.clip(op.conv2d(op.clip(op.conv2d(x, e)), d, groups=d_groups(e), **attrs))
    return op.conv2d(y, p)


def d_groups(_):
    return 16


@pytest.mark.parametrize("size", [(8, 8), (4, 8), (7, 5)], ids=str)
@pytest.mark.parametrize("out", [1, 2, 3, 17])
def test_few_output_channels(out, size):
    weights = {"w": normal(3, 1, 3, 3), "v": normal(out, 3, 1, 1)}
    counts = taken(pair(3), {"x": normal(1, 3, *size)}, weights)
    assert counts == {"depthwise_pointwise": 1}


@pytest.mark.parametrize("out", [1, 4])
def test_few_output_channels_of_an_inverted_residual(out):
    weights = {"e": normal(16, 3, 1, 1), "d": normal(16, 1, 3, 3), "p": normal(out, 16, 1, 1)}

    def program(x, e, d, p):
        return inverted(x, e, d, p, padding=1)

    assert taken(program, {"x": normal(1, 3, 8, 8)}, weights) == {"inverted_residual": 1}


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64", "llvm -mcpu=x86-64 -num-cores=4"])
def test_an_inverted_residual_that_skips_columns(target):
    def program(x, e, d, p):
        return inverted(x, e, d, p, strides=(2, 3))

    weights = {"e": normal(16, 8, 1, 1), "d": normal(16, 1, 3, 1), "p": normal(8, 16, 1, 1)}
    args = {"x": normal(1, 8, 16, 24)}
    assert "inverted_residual" not in taken(program, args, weights, target=target)
    assert "skips pixels: steps of 3" in refusals(program, args, weights)["inverted_residual"]


def test_a_pair_that_skips_pixels():
    weights = {"w": normal(16, 1, 3, 3), "v": normal(64, 16, 1, 1)}
    args = {"x": normal(1, 16, 9, 8)}
    program = pair(16, strides=(2, 1))
    assert taken(program, args, weights) == {"conv2d": 2}
    assert "steps of 2" in refusals(program, args, weights)["depthwise_pointwise"]


def test_a_chain_that_skips_rows():
    def program(x, w, v):
        return op.relu(op.conv2d(op.relu(op.conv2d(x, w, padding=1)), v, strides=(3, 1)))

    weights = {"w": normal(16, 17, 3, 3), "v": normal(3, 16, 1, 1)}
    args = {"x": normal(2, 17, 7, 14)}
    assert taken(program, args, weights) == {"conv2d": 2}
    assert "steps of 3" in refusals(program, args, weights)["conv2d_relu_conv2d_relu"]
