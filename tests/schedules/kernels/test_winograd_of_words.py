"""Winograd convolutions of levels: exact to the bit whatever the operands, on every CPU."""

import math

import numpy as np
import pytest
from harness import cpus, needs_headers
from levels import F32, bytes_of, sums

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.machine.features import known_cpus
from selfbyoc.schedules.kernels.winograd import integers, plan
from selfbyoc.tvm import GENERATION, make_target

FORMS = [(m, r) for r, forms in integers.FORMS_OF_WORDS.items() for m in forms]


def limits_of(matrix, low, high):
    """The least and the largest element of M d M^T, of elements of d within limits."""
    both = [np.kron(row, other) for row in np.array(matrix) for other in np.array(matrix)]
    sides = [(np.minimum(b, 0).sum(), np.maximum(b, 0).sum()) for b in both]
    return min(m * high + p * low for m, p in sides), max(m * low + p * high for m, p in sides)


@pytest.mark.parametrize(("m", "r"), FORMS)
def test_the_matrices_give_a_multiple_that_loses_two_bits(m, r):
    b, g, a = (np.array(each, object) for each in integers.matrices_of_words(m, r))
    rng, whole = np.random.default_rng(0), integers.scale(m, r)
    data, window = rng.integers(-255, 256, m + r - 1), rng.integers(-128, 128, r)
    expected = [whole * (data[i : i + r] @ window) for i in range(m)]
    assert list(a @ ((g @ window) * (b @ data))) == expected
    assert whole % 2 == 0
    assert whole % 4


@pytest.mark.parametrize(("m", "r"), FORMS)
def test_what_is_multiplied_has_sixteen_bits(m, r):
    b, g, _ = integers.matrices_of_words(m, r)
    for zero in (0, 7, 128, 255):  # of levels from 0 to 255; those of int8 are between
        image = limits_of(b, -zero, 255 - zero)
        assert -(1 << 15) <= image[0] <= image[1] < 1 << 15
    weight = limits_of(g, -128, 127)
    assert -(1 << 15) <= weight[0] <= weight[1] < 1 << 15


def by_winograd(monkeypatch, m):
    """All plans of words are F(m, r)."""
    monkeypatch.setattr(plan, "usual_form", lambda _: m)
    monkeypatch.setattr(plan, "near", lambda *_: [m])


def convolved(zero, padding=1, dilation=1, w_zero=0):
    def program(x, weight, bias):
        image, levels = op.dequantize(x, 2.0**-4, zero), op.dequantize(weight, 2.0**-7, w_zero)
        return op.bias_add(op.conv2d(image, levels, padding=padding, dilation=dilation), bias)

    return program


def built(program, target, constants, **arrays):
    """-> the result of the one kernel, which is by Winograd."""
    types = {name: (a.shape, str(a.dtype)) for name, a in arrays.items()}
    mod = selfbyoc.emit(program, types, {name: arrays[name] for name in constants})
    parted = selfbyoc.partition_for_tefuse(mod, target=target or selfbyoc.host_target())
    (kernel,) = kernels(parted)
    stacked, _ = kernel.schedule(target or selfbyoc.host_target())
    assert "Winograd" in str(stacked.plan)
    library = selfbyoc.build(mod, target)
    (found,) = library(*(a for name, a in arrays.items() if name not in constants))
    return found, library.report.counts


def scaled(total, bias):
    return total.astype(F32) * F32(2.0**-11) + bias[:, None, None]


@pytest.mark.parametrize(
    "given", cpus(None, "llvm -mcpu=haswell", "llvm", "llvm -mcpu=cascadelake")
)
@pytest.mark.parametrize(("m", "_"), FORMS)
@pytest.mark.parametrize(
    ("x", "channels", "padding", "dtype", "zero"),
    [
        ((1, 32, 13, 17), 16, 1, "uint8", 131),
        ((2, 35, 10, 9), 21, 1, "int8", -128),  # the last word has one level
        ((1, 64, 20, 8), 16, 0, "uint8", 255),
    ],
)
def test_sums_are_exact(monkeypatch, given, m, _, x, channels, padding, dtype, zero):
    by_winograd(monkeypatch, m)
    rng, shape = np.random.default_rng(0), (channels, x[1], 3, 3)
    image, weight = bytes_of(rng, x, dtype), bytes_of(rng, shape, "int8")
    bias = rng.standard_normal(channels).astype(F32)
    found, counts = built(
        convolved(zero, padding), given and make_target(given), ("weight", "bias"),
        x=image, weight=weight, bias=bias,
    )  # fmt: skip
    assert counts == {"conv2d_int8": 1}
    np.testing.assert_array_equal(found, scaled(sums(image, weight, zero, 1, padding), bias))


@pytest.mark.parametrize(("m", "_"), FORMS)
@pytest.mark.parametrize("level", [0, 255])
@pytest.mark.parametrize("of_weight", [-128, 127])
def test_the_largest_sums_are_exact(monkeypatch, m, _, level, of_weight):
    """As many products as a sum may have: in between it wraps, more than once."""
    by_winograd(monkeypatch, m)
    inputs = integers.MOST_OF_WORDS // 9
    zero = 255 - level
    image = np.full((1, inputs, 6, 5), level, "uint8")
    weight = np.full((16, inputs, 3, 3), of_weight, "int8")
    found, _ = built(
        convolved(zero), None, ("weight", "bias"), x=image, weight=weight, bias=np.zeros(16, F32)
    )
    total = sums(image, weight, zero)
    assert np.abs(total).max() * integers.scale(m, 3) ** 2 > 1 << 30
    np.testing.assert_array_equal(found, scaled(total, np.zeros(16, F32)))


@pytest.mark.parametrize("step", [2, 3])
def test_taps_that_are_apart(monkeypatch, step):
    by_winograd(monkeypatch, 2)
    rng = np.random.default_rng(1)
    image, weight = bytes_of(rng, (1, 32, 24, 27), "uint8"), bytes_of(rng, (32, 32, 3, 3), "int8")
    apart = np.zeros((32, 32, 2 * step + 1, 2 * step + 1), "int8")
    apart[:, :, ::step, ::step] = weight
    bias = np.zeros(32, F32)
    found, _ = built(
        convolved(9, step, step), None, ("weight", "bias"), x=image, weight=weight, bias=bias
    )
    np.testing.assert_array_equal(found, scaled(sums(image, apart, 9, padding=step), bias))


@pytest.mark.skipif(GENERATION == "relay", reason="Relay's are int32: data may be no level")
def test_a_zero_point_that_is_data(monkeypatch):
    by_winograd(monkeypatch, 4)
    rng = np.random.default_rng(2)
    image, weight = bytes_of(rng, (1, 32, 9, 11), "uint8"), bytes_of(rng, (16, 32, 3, 3), "int8")
    bias = np.zeros(16, F32)

    def program(x, weight, bias, point):
        levels = op.dequantize(weight, 2.0**-7, 0)
        y = op.conv2d(op.dequantize(x, 2.0**-4, point), levels, padding=1)
        return op.bias_add(y, bias)

    for zero in (0, 17, 255):
        found, counts = built(
            program, None, ("weight", "bias"),
            x=image, weight=weight, bias=bias, point=np.array(zero, "uint8"),
        )  # fmt: skip
        assert counts == {"conv2d_int8": 1}
        np.testing.assert_array_equal(found, scaled(sums(image, weight, zero), bias))


def direct(x, weight, w_zero=0, target=None):
    """Whether no plan is by Winograd."""
    target = target or selfbyoc.host_target()
    program = convolved(3, w_zero=w_zero)
    arrays = {"x": x, "weight": weight, "bias": np.zeros(len(weight), F32)}
    types = {name: (a.shape, str(a.dtype)) for name, a in arrays.items()}
    mod = selfbyoc.emit(program, types, {name: arrays[name] for name in ("weight", "bias")})
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=target))
    return "Winograd" not in str(kernel.schedule(target)[0].plan)


def test_what_could_leave_its_bits_is_direct(monkeypatch):
    by_winograd(monkeypatch, 4)
    rng = np.random.default_rng(3)
    image, weight = bytes_of(rng, (1, 32, 9, 9), "uint8"), bytes_of(rng, (16, 32, 3, 3), "uint8")
    assert not direct(image, weight, 128)
    assert direct(image, weight, 100)  # weights of nine bits
    most = integers.MOST_OF_WORDS // 9 + 1
    assert direct(np.zeros((1, most, 5, 5), "uint8"), np.ones((16, most, 3, 3), "int8"))


def test_weights_are_packed_once_and_an_input_is_not():
    rng = np.random.default_rng(4)
    image, weight = bytes_of(rng, (1, 32, 9, 9), "uint8"), bytes_of(rng, (16, 32, 3, 3), "int8")
    arrays = {"x": image, "weight": weight, "bias": np.zeros(16, F32)}
    types = {name: (a.shape, str(a.dtype)) for name, a in arrays.items()}
    mod = selfbyoc.emit(convolved(3), types, {"bias": arrays["bias"]})
    library = selfbyoc.build(mod)
    (found,) = library(image, weight)
    assert library.report.counts == {"conv2d_int8": 1}
    np.testing.assert_array_equal(found, scaled(sums(image, weight, 3), arrays["bias"]))


@pytest.mark.parametrize("shift", [6, 9])
def test_sums_that_stay_integers(monkeypatch, shift):
    """The chain of VTA: convolution, shift, clip and cast."""
    by_winograd(monkeypatch, 4)
    rng = np.random.default_rng(5)
    image, weight = bytes_of(rng, (1, 32, 14, 15), "int8"), bytes_of(rng, (24, 32, 3, 3), "int8")

    def program(x, weight):
        y = op.conv2d(x, weight, padding=1, out_dtype="int32")
        return op.cast(op.clip(op.right_shift(y, shift), a_min=-127, a_max=127), dtype="int8")

    found, counts = built(program, None, ("weight",), x=image, weight=weight)
    assert set(counts) == {"conv2d_narrowed"}
    total = np.clip(sums(image, weight, 0) >> shift, -127, 127)
    np.testing.assert_array_equal(found, total)


@needs_headers()
def test_sums_are_exact_in_c(compiler, tmp_path, monkeypatch):
    by_winograd(monkeypatch, 4)
    rng = np.random.default_rng(6)
    image, weight = bytes_of(rng, (1, 32, 9, 7), "uint8"), bytes_of(rng, (16, 32, 3, 3), "int8")
    bias = np.zeros(16, F32)
    types = {"x": (image.shape, "uint8"), "weight": (weight.shape, "int8"), "bias": bias.shape}
    mod = selfbyoc.emit(convolved(131), types, {"weight": weight, "bias": bias})
    library = selfbyoc.build(mod, "c")
    library.export_library(tmp_path / "levels.so")
    (found,) = selfbyoc.load(tmp_path / "levels.so")(image)
    np.testing.assert_array_equal(found, scaled(sums(image, weight, 131), bias))


def test_it_pays_where_a_window_has_many_channels():
    rng = np.random.default_rng(7)
    image, weight = bytes_of(rng, (1, 64, 28, 28), "uint8"), bytes_of(rng, (64, 64, 3, 3), "int8")
    assert not direct(image, weight)
    assert direct(image[:, :8], weight[:, :8])
    assert math.prod(weight.shape[1:]) < integers.MOST_OF_WORDS


@pytest.mark.parametrize(
    ("cpu", "is_direct"), [("cortex-a72", False), ("neoverse-n1", True), ("neoverse-v2", True)]
)
def test_it_does_not_pay_beside_products_of_four_levels_on_arm(cpu, is_direct):
    """SDOT multiplies eight times as many levels in a cycle as SMLAL, and a tile saves four."""
    triple = "aarch64-linux-gnu"
    if cpu not in known_cpus(triple):
        pytest.skip(f"this LLVM knows no {cpu}")
    rng = np.random.default_rng(8)
    image, weight = bytes_of(rng, (1, 64, 28, 28), "uint8"), bytes_of(rng, (64, 64, 3, 3), "int8")
    target = make_target(f"llvm -mtriple={triple} -mcpu={cpu}")
    assert direct(image, weight, target=target) == is_direct
