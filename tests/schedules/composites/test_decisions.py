"""What the built-in composites leave open: any decision, and any of them together, is right.

A longer search for wrong ones: SELFBYOC_FUZZ=30.
"""

import json
import random
from functools import cache

import pytest
from harness import Run, assert_close, expected, model, random_args
from random_cases import EXAMPLES

import selfbyoc
from selfbyoc import BUILTIN, Case, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.records.workload import variant
from selfbyoc.codegen.tuning_record import Tuned
from selfbyoc.language.decisions import deciding
from selfbyoc.schedules.composites.inception import _ALL, _googlenet, _sizes
from selfbyoc.schedules.composites.inverted_residual import _BLOCK, _inverted
from selfbyoc.schedules.composites.inverted_residual import _sizes as inverted_sizes

COMPOSITES = {composite.name: composite for composite in BUILTIN}
TARGET = selfbyoc.host_target()


def conv(x, weight, bias, **attrs):
    return op.relu(op.bias_add(op.conv2d(x, weight, **attrs), bias))


def one(x, weight, **attrs):
    def program(x, weight, bias):
        return conv(x, weight, bias, **attrs)

    return Case(program, x=x, weight=weight, bias=weight[:1], constants=("weight", "bias"))


def chain(channels, size, dilation=1, **attrs):
    """Two convolutions, the first one with these attributes, the second one dilated."""

    def program(x, w1, b1, w2, b2):
        y = conv(x, w1, b1, padding=1, **attrs)
        return conv(y, w2, b2, padding=dilation, dilation=dilation)

    first, second, third = channels
    weights = {"w1": (second, first, 3, 3), "b1": (second,), "w2": (third, second, 3, 3)}
    weights["b2"] = (third,)
    return Case(program, x=(1, first, *size), **weights, constants=tuple(weights))


def attended(scale):
    def program(q, k, v):
        scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), scale)
        return op.batch_matmul(op.softmax(scores), v)

    return program


def dense(x, weight, bias):
    return op.relu(op.bias_add(op.dense(x, weight), bias, axis=-1))


def mlp(x, w1, b1, w2, b2):
    hidden = op.gelu(op.bias_add(op.dense(x, w1), b1, axis=-1))
    return op.bias_add(op.dense(hidden, w2), b2, axis=-1)


def normed(x, gamma, beta, weight, bias):
    return op.bias_add(op.dense(op.layer_norm(x, gamma, beta), weight), bias, axis=-1)


def rms_normed(x, gamma, weight, bias):
    return op.bias_add(op.dense(op.rms_norm(x, gamma), weight), bias, axis=-1)


MLP = {"w1": (384, 128), "b1": (384,), "w2": (45, 384), "b2": (45,)}
NORMED = {"gamma": (128,), "beta": (128,), "weight": (90, 128), "bias": (90,)}
RMS_NORMED = {name: shape for name, shape in NORMED.items() if name != "beta"}
SEPARABLE = {"w_depth": (48, 1, 3, 3), "b_depth": (48,), "w_point": (40, 48, 1, 1)}
SEPARABLE["b_point"] = (40,)


FOLDED = {**SEPARABLE, "w_point": (136, 48, 1, 1), "b_point": (136,)}  # two steps fill vectors


def separable(x, w_depth, b_depth, w_point, b_point):
    return conv(conv(x, w_depth, b_depth, groups=48, padding=1, strides=2), w_point, b_point)


# Shapes with tails: rows, columns, channels or pixels that fill no whole tile.
CASES = {
    "conv2d_relu_conv2d_relu winograd": chain((16, 24, 17), (30, 27)),
    "conv2d_relu_conv2d_relu strided": chain((9, 16, 32), (29, 26), strides=2),
    "conv2d_relu_conv2d_relu blocks of rows": chain((3, 20, 17), (45, 43), dilation=2),
    "inverted_residual one chunk": Case(
        _inverted(48, True, padding=1), x=(1, 8, 19, 17), **inverted_sizes(8, 48, 8),
        constants=_BLOCK,
    ),
    "inverted_residual chunks": Case(
        _inverted(96, False, padding=1, strides=2), x=(1, 24, 77, 65), **inverted_sizes(24, 96, 24),
        constants=_BLOCK,
    ),
    "depthwise_pointwise": Case(
        separable, x=(1, 48, 27, 25), **SEPARABLE, constants=tuple(SEPARABLE)
    ),
    "depthwise_pointwise folded": Case(separable, x=(1, 48, 27, 25), **FOLDED),
    "attention": Case(attended(0.2), q=(2, 75, 24), k=(2, 50, 24), v=(2, 50, 40)),
    "attention few": Case(attended(0.3), q=(3, 7, 32), k=(3, 33, 32), v=(3, 33, 20)),
    "dense": Case(dense, x=(2, 45, 130), weight=(70, 130), bias=(70,), constants=("weight",)),
    "dense of images": Case(
        dense, x=(3, 133, 40), weight=(37, 40), bias=(37,), constants=("weight",)
    ),
    "dense_gelu_dense of images": Case(
        mlp, x=(3, 133, 40), **MLP | {"w1": (384, 40)}, constants=tuple(MLP)
    ),
    "dense_gelu_dense of many rows": Case(mlp, x=(277, 128), **MLP, constants=tuple(MLP)),
    "dense_gelu_dense": Case(x=(45, 128), **MLP, constants=tuple(MLP)),
    "layer_norm_dense": Case(normed, x=(77, 128), **NORMED, constants=tuple(NORMED)),
    "layer_norm": Case(x=(7, 300), gamma=(300,), beta=(300,)),
    "rms_norm_dense": Case(rms_normed, x=(77, 128), **RMS_NORMED, constants=tuple(RMS_NORMED)),
    "rms_norm": Case(x=(7, 300), gamma=(300,)),
    "softmax": Case(x=(3, 20, 260)),
    "inception": Case(
        _googlenet(pad=True), x=(1, 20, 14, 13), **_sizes(20, 21, (16, 24), (7, 16), 17),
        constants=_ALL,
    ),
    "conv2d pointwise": one((1, 33, 14, 13), (64, 33, 1, 1)),
    "conv2d few pixels": one((2, 35, 5, 5), (48, 35, 1, 1)),
    "conv2d flat": one((2, 19, 25, 20), (40, 19, 1, 1)),
    "conv2d direct": one((1, 11, 28, 27), (32, 11, 3, 3), strides=2, padding=1),
    "conv2d 5x5": one((1, 16, 27, 23), (33, 16, 5, 5), padding=2),
    "conv2d narrow": one((1, 16, 9, 9), (17, 16, 3, 3), padding=1),
    "conv2d depthwise": one((1, 24, 29, 31), (24, 1, 3, 3), groups=24, padding=1),
    "batch_matmul": Case(lambda x, y: op.batch_matmul(x, y), x=(3, 37, 50), y=(3, 50, 150)),
    "resize2d": Case(lambda x: op.resize2d(x, size=(29, 35)), x=(1, 5, 11, 26)),
    "max_pool2d": Case(lambda x: op.max_pool2d(x, pool_size=3, padding=1), x=(1, 5, 27, 25)),
    "max_pool2d by rows": Case(
        lambda x: op.max_pool2d(x, pool_size=3, strides=2, padding=1), x=(1, 5, 27, 37)
    ),
    "avg_pool2d by rows": Case(
        lambda x: op.avg_pool2d(x, pool_size=2, strides=2, ceil_mode=True), x=(1, 5, 27, 37)
    ),
}  # fmt: skip


def composite_of(name):
    return COMPOSITES[name.split()[0]]


@cache
def source(name):
    """The external function of a case."""
    composite, case = composite_of(name), CASES[name]
    mod = model(composite, case, random_args(case))
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=TARGET, composites=[composite]))
    return kernel.source


def choices(name, told):
    """What is asked for under these decisions, of which some may not be."""
    with deciding(told, fitted=True):
        return variant(source(name), TARGET, Tuned(told)).choices


def drawn(name, rng):
    """Random decisions; what is asked for, and among what, may depend on others."""
    told = {}
    while (made := choices(name, told)).keys() != told.keys() or not fit(told, made):
        kept = {n: v for n, v in told.items() if n in made and v in made[n].candidates}
        told = {n: rng.choice(c.candidates) for n, c in made.items()} | kept
    return told


def fit(told, made):
    return all(value in made[name].candidates for name, value in told.items())


def build_and_compare(name, told):
    composite, case = composite_of(name), CASES[name]
    args = random_args(case)
    mod = model(composite, case, args)
    with deciding(told) as asked:
        parted = selfbyoc.partition_for_tefuse(mod, target=TARGET, composites=[composite])
        library = selfbyoc.build(parted, TARGET)
    asked.check_all_asked()
    assert selfbyoc.report(parted).counts == {composite.name: 1}
    found = library(**{name: args[name] for name, _, _ in library.inputs})
    assert_close(Run(mod, {}, found, expected(composite, case, args)))


@pytest.mark.parametrize("name", CASES)
def test_random_decisions_are_right(name):
    rng = random.Random(EXAMPLES or name)
    for told in [drawn(name, rng) for _ in range(EXAMPLES or 1)]:
        build_and_compare(name, told)


def single(name):
    """Every candidate that is no default, alone."""
    made = choices(name, {})
    return [{n: c} for n, choice in made.items() for c in choice.candidates if c != choice.default]


SINGLE = (
    "attention", "conv2d direct", "max_pool2d", "avg_pool2d by rows", "layer_norm_dense",
    "resize2d", "depthwise_pointwise folded",
    "conv2d_relu_conv2d_relu blocks of rows", "dense_gelu_dense of images",
    "dense_gelu_dense of many rows", "dense of images",
)  # fmt: skip


@pytest.mark.parametrize("name", SINGLE)
def test_single_decisions_are_right(name):
    for told in single(name):
        build_and_compare(name, told)


def frozen(value):
    return tuple(map(frozen, value)) if isinstance(value, list) else value


@pytest.mark.parametrize("name", CASES)
def test_spaces_are_small(name):
    """Some candidates each, which are the same after JSON."""
    made = choices(name, {})
    assert made, f"{name} leaves nothing open"
    for asked, choice in made.items():
        assert 2 <= len(choice.candidates) <= 6, asked
        assert len(set(choice.candidates)) == len(choice.candidates), asked
        known = [
            tuple(c) if isinstance(c, list) else c
            for c in json.loads(json.dumps(choice.candidates))
        ]
        assert known == list(choice.candidates), asked


def _of_windows(sizes):
    """The name of a case of 3x3 windows with so many channels and pixels, one of them more."""
    (c, n), name = sizes, f"conv2d {sizes}"
    CASES.setdefault(name, one((1, c, n, n), (c + 1, c, 3, 3), padding=1))
    return name


def test_weights_are_packed_as_is_decided():
    """Winograd's form is decided where a weight is packed, and asked for where it is read. Between
    which forms it is close depends on the CPU.
    """
    sizes = ((c, n) for c in (16, 24, 32, 48, 64, 96, 128) for n in (9, 14, 28))
    name = next(n for n in map(_of_windows, sizes) if "conv2d.winograd" in choices(n, {}))
    asked = choices(name, {})["conv2d.winograd"]
    assert asked.default in asked.candidates
    assert len(asked.candidates) > 1
    for m in asked.candidates:
        build_and_compare(name, {"conv2d.winograd": m})
