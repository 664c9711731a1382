"""qnn ops of levels as TVM lowers them, of all pairs of bytes; and in the kernel before them."""

import numpy as np
import pytest
from levels import bytes_of
from qnn_models import alone, number
from tvm import relay

import selfbyoc
from selfbyoc.ir.relay.rewrite import rewritten
from selfbyoc.simplify.relay.lowered import as_lowered
from selfbyoc.tvm import tvm

F32 = "float32"
qnn = relay.qnn.op
SCALES = {  # of both sides and of the result, with zero points
    "apart": ((0.1, 3), (0.037, -4), (0.25, 5)),
    "powers": ((0.5, 0), (0.125, 7), (0.25, -9)),
    "alike": ((0.3, 5), (0.3, 5), (0.3, 5)),
    "one-alike": ((0.3, 5), (0.011, 2), (0.3, 5)),
    "larger": ((3.0, -128), (7.0, 127), (0.02, 0)),
}


def scale(pair):
    return number(pair[0], F32), number(pair[1])


def of_two(op, name, x, y):
    sides = SCALES[name]
    return op(x, y, *(factor for side in sides for factor in scale(side)))


def joined(x, y, name):
    (a, za), (b, zb), (c, zc) = map(scale, SCALES[name])
    parts = relay.Tuple([x, y]), relay.Tuple([a, b]), relay.Tuple([za, zb])
    return qnn.concatenate(*parts, c, zc, axis=1)


OPS = {
    "add": lambda x, y, name: of_two(qnn.add, name, x, y),
    "subtract": lambda x, y, name: of_two(qnn.subtract, name, x, y),
    "mul": lambda x, y, name: of_two(qnn.mul, name, x, y),
    "concatenate": joined,
    "leaky_relu": lambda x, y, name: qnn.leaky_relu(
        x, 0.07, *scale(SCALES[name][0]), *scale(SCALES[name][2])
    ),
}


def both(dtype, *shape):
    return [relay.var(name, shape=shape, dtype=dtype) for name in "xy"]


def lowered(mod):
    """Without one qnn op but a requantize."""
    done = rewritten(relay.transform.InferType()(mod), as_lowered)
    assert not [word for word in str(done).split("(") if word.endswith(("qnn.add", "qnn.mul"))]
    return done


def module(y, *inputs):
    return tvm.IRModule.from_expr(relay.Function(list(inputs), y))


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "int8") for name in SCALES), ("one-alike", "uint8")]
)
@pytest.mark.parametrize("kind", OPS)
def test_all_pairs(kind, name, dtype):
    x, y = both(dtype, 256, 256)
    mod = module(OPS[kind](x, y, name), x, y)
    every = np.arange(256, dtype="uint8").view(dtype)
    given = dict(zip("xy", map(np.ascontiguousarray, np.meshgrid(every, every)), strict=True))
    if kind == "leaky_relu":
        mod, given = module(mod["main"].body, x), {"x": given["x"]}
    np.testing.assert_array_equal(alone(lowered(mod), **given), alone(mod, **given))


@pytest.mark.parametrize("name", ["apart", "alike"])
def test_an_average(name):
    """Padding counts, and does not."""
    x, _ = both("int8", 1, 9, 11, 5)
    given = bytes_of(np.random.default_rng(3), (1, 9, 11, 5), "int8")
    for counts in (False, True):
        y = qnn.avg_pool2d(
            x, *scale(SCALES[name][0]), *scale(SCALES[name][2]), pool_size=(3, 2), strides=(2, 2),
            padding=(1, 0, 1, 1), dilation=(1, 1), count_include_pad=counts, layout="NHWC",
        )  # fmt: skip
        mod = module(y, x)
        assert "qnn.avg_pool2d" not in str(lowered(mod))
        np.testing.assert_array_equal(alone(lowered(mod), x=given), alone(mod, x=given))


def test_halves_are_rounded_as_the_configuration_says():
    x, y = both("int8", 256, 256)
    mod = module(OPS["add"](x, y, "powers"), x, y)
    every = np.arange(256, dtype="uint8").view("int8")
    given = dict(zip("xy", map(np.ascontiguousarray, np.meshgrid(every, every)), strict=True))
    with qnn.requantize_config(rounding="TONEAREST", compute_dtype="int64"):
        done, wanted = lowered(mod), alone(mod, **given)
    np.testing.assert_array_equal(alone(done, **given), wanted)
    assert (wanted != alone(mod, **given)).any()


def conv(x, outputs=6):
    """Levels of "apart"'s first side."""
    weight = bytes_of(np.random.default_rng(1), (outputs, 6, 3, 3), "int8")
    y = qnn.conv2d(
        x, number(weight, "int8"), number(4), number(0), number(0.02, F32), number(0.01, F32),
        kernel_size=(3, 3), channels=outputs, padding=(1, 1, 1, 1),
    )  # fmt: skip
    return qnn.requantize(y, number(0.001, F32), number(0), *scale(SCALES["apart"][0]))


@pytest.mark.parametrize("kind", ["add", "subtract", "mul", "leaky_relu"])
def test_it_joins_the_convolution_before(kind):
    x, y = both("int8", 1, 6, 9, 13)
    mod = module(relay.clip(OPS[kind](conv(x), y, "apart"), -100, 90), x, y)
    library = selfbyoc.build(mod)
    assert library.report.counts == {"conv2d_narrowed": 1}
    assert set(library.report.left) <= {"nn.pad"}
    rng = np.random.default_rng(9)
    given = {name: bytes_of(rng, (1, 6, 9, 13), "int8") for name in "xy"}
    np.testing.assert_array_equal(library(**given)[0], alone(mod, **given))


def test_branches_of_other_scales_are_joined_as_levels():
    """What brings them to one scale is in the kernel of each."""
    x, _ = both("int8", 1, 6, 9, 13)
    mod = module(joined(conv(x), conv(x, 9), "apart"), x)
    library = selfbyoc.build(mod)
    assert library.report.counts == {"conv2d_narrowed": 2}
    assert set(library.report.left) <= {"concatenate", "nn.pad"}
    given = bytes_of(np.random.default_rng(9), (1, 6, 9, 13), "int8")
    np.testing.assert_array_equal(library(x=given)[0], alone(mod, x=given))


def test_scales_of_channels_stay():
    x, y = both("int8", 1, 9, 6)
    scales = number(np.linspace(0.1, 0.4, 6), F32)
    own = scale(SCALES["apart"][1])
    mod = module(qnn.add(x, y, scales, number(0), *own, *scale((0.3, 0)), lhs_axis=2), x, y)
    done = rewritten(relay.transform.InferType()(mod), as_lowered)
    assert "qnn.add" in str(done)
