"""Winograd convolutions: the matrices, the error, odd sizes, other machines, and where they are
left.
"""

from dataclasses import replace

import numpy as np
import pytest
from harness import assert_close, cpus, model, random_args, run_case
from random_cases import RANDOM, hypothesis

import selfbyoc
from selfbyoc import BUILTIN, Case, Composite, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.runtime.tolerance import tolerance
from selfbyoc.schedules.kernels.conv.pack import pack as pack_direct
from selfbyoc.schedules.kernels.winograd import plan as winograd
from selfbyoc.schedules.kernels.winograd.matrices import FORMS, matrices
from selfbyoc.tvm import make_target

st = hypothesis.strategies
BY_NAME = {c.name: c for c in BUILTIN}
ALL = [(m, r) for r, forms in FORMS.items() for m in forms]


def conv(padding=1):
    def program(x, weight, bias):
        return op.relu(op.bias_add(op.conv2d(x, weight, padding=padding), bias))

    return program


def case_of(x, channels, padding=1, constant=True, window=3):
    weight = (channels, x[1], window, window)
    constants = ("weight", "bias") if constant else ()
    return Case(conv(padding), x=x, weight=weight, bias=weight[:1], constants=constants)


def blocks(case, target=None):
    """The names of the ops' blocks in the one kernel of a case."""
    target = target or selfbyoc.host_target()
    mod = model(BY_NAME["conv2d"], case, random_args(case))
    parted = selfbyoc.partition_for_tefuse(mod, target=target, composites=[BY_NAME["conv2d"]])
    (kernel,) = kernels(parted)
    stacked, _ = kernel.schedule(target)
    return {name for info in selfbyoc.op_info(stacked.func) for name in info.blocks}


@pytest.mark.parametrize(("m", "r"), ALL)
def test_matrices_compute_the_convolution(m, r):
    b, g, a = map(np.array, matrices(m, r))
    rng = np.random.default_rng(0)
    data, window = rng.standard_normal(m + r - 1), rng.standard_normal(r)
    expected = [data[i : i + r] @ window for i in range(m)]
    np.testing.assert_allclose(a @ ((g @ window) * (b @ data)), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize(("m", "r"), ALL)
def test_matrices_of_the_input_and_the_output_are_exact_in_float32(m, r):
    for matrix in matrices(m, r)[::2]:
        assert np.array_equal(np.array(matrix), np.array(matrix, dtype="float32"))


@pytest.mark.parametrize(
    ("x", "channels", "padding", "window"),
    [
        ((1, 16, 13, 17), 16, 1, 3),  # tiles that reach over both borders
        ((2, 19, 14, 15), 37, (0, 1, 2, 1), 3),  # no multiple of 16, four paddings, two images
        ((3, 33, 12, 9), 16, 0, 3),
        ((1, 16, 58, 11), 48, 2, 3),  # several blocks, the last with tiles that nobody reads
        ((2, 33, 15, 14), 48, (1, 2, 0, 3), 5),
        ((1, 48, 59, 11), 32, 2, 5),
    ],
)
def test_odd_sizes(x, channels, padding, window):
    case = case_of(x, channels, padding, window=window)
    assert "conv2d_wino_sums" in blocks(case)
    run = run_case(BY_NAME["conv2d"], case)
    assert run.counts == {"conv2d": 1}
    assert_close(run)


def dilated(x, channels, step, padding=None, window=3):
    weight = (channels, x[1], window, window)
    program = lambda x, weight, bias: op.relu(  # noqa: E731
        op.bias_add(op.conv2d(x, weight, padding=step if padding is None else padding,
                              dilation=step), bias)
    )  # fmt: skip
    return Case(program, constants=("weight", "bias"), x=x, weight=weight, bias=weight[:1])


@pytest.mark.parametrize("given", cpus(None, "llvm -mcpu=haswell", "llvm"))
@pytest.mark.parametrize(
    ("x", "channels", "step", "padding", "window"),
    [
        ((1, 32, 24, 24), 32, 2, None, 3),
        ((1, 19, 23, 26), 37, 2, None, 3),  # images of different sizes
        ((2, 32, 31, 17), 16, 3, (3, 1, 0, 4), 3),
        ((1, 16, 34, 30), 48, 4, 0, 3),
        ((1, 32, 29, 24), 32, 2, 4, 5),
    ],
)
def test_taps_that_are_apart(x, channels, step, padding, window, given):
    target = given and make_target(given)
    case = dilated(x, channels, step, padding, window)
    assert "conv2d_wino_sums" in blocks(case, target)
    run = run_case(BY_NAME["conv2d"], case, target=target)
    assert run.counts == {"conv2d": 1}
    assert_close(run)


@pytest.mark.parametrize("steps", [(2, 1), (1, 2), (2, 2), (2, 3)])
def test_two_in_a_row_of_which_some_are_apart(steps):
    def program(x, w1, w2):
        y = op.relu(op.conv2d(x, w1, padding=steps[0], dilation=steps[0]))
        return op.relu(op.conv2d(y, w2, padding=steps[1], dilation=steps[1]))

    shapes = {"x": (1, 16, 25, 22), "w1": (32, 16, 3, 3), "w2": (17, 32, 3, 3)}
    case = Case(program, constants=("w1", "w2"), **shapes)
    run = run_case(BY_NAME["conv2d_relu_conv2d_relu"], case)
    assert_close(run)


@pytest.mark.parametrize("step", [2, 3])
def test_a_residual_of_a_window_whose_taps_are_apart(step):
    def program(x, weight, bias, residual):
        y = op.conv2d(x, weight, padding=step, dilation=step)
        return op.relu(op.add(op.bias_add(y, bias), residual))

    shapes = {"x": (2, 24, 20, 27), "weight": (40, 24, 3, 3), "bias": (40,)}
    case = Case(program, constants=("weight", "bias"), residual=(2, 40, 20, 27), **shapes)
    run = run_case(BY_NAME["conv2d_add"], case)
    assert run.counts == {"conv2d_add": 1}
    assert_close(run)


def test_a_weight_that_is_no_constant():
    case = case_of((1, 17, 15, 16), 18, constant=False)
    # To transform it at every call would cost too much.
    assert any("_wino_" in name for name in blocks(case_of((1, 17, 15, 16), 18)))
    assert not any("_wino_" in name for name in blocks(case))
    assert_close(run_case(BY_NAME["conv2d"], case))


@pytest.mark.parametrize(("m", "r"), ALL)
@pytest.mark.parametrize(
    ("scale", "offset"), [(1e-30, 0), (1e-3, 0), (1, 0), (1e3, 0), (1e12, 0), (1, 1e3), (1e3, -10)]
)
def test_the_error_is_that_of_rounding(monkeypatch, m, r, scale, offset):
    """As large as the largest output: cancellation grows with it, and must stay in the bound."""
    monkeypatch.setattr(winograd, "usual_form", lambda _: m)
    monkeypatch.setattr(winograd, "near", lambda *_: [m])
    x, channels = (1, 64, 20, 20), 32
    rng = np.random.default_rng(0)
    data = ((rng.standard_normal(x) + offset) * scale).astype("float32")
    weight = rng.standard_normal((channels, x[1], r, r)).astype("float32")
    mod = selfbyoc.emit(
        lambda x, w: op.conv2d(x, w, padding=1), {"x": x, "w": weight.shape}, {"w": weight}
    )
    (found,) = selfbyoc.build(mod, composites=[BY_NAME["conv2d"]])(data)
    padded = np.pad(data.astype("float64"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (r, r), axis=(2, 3))
    expected = np.einsum("nchwij,ocij->nohw", view, weight.astype("float64"), optimize=True)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert error < tolerance("float32", r * r * x[1]) / 2


@pytest.mark.parametrize("given", cpus("llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512", "llvm"))
def test_other_machines(given):
    target = make_target(given)
    case = case_of((1, 18, 21, 14), 35)
    assert "conv2d_wino_sums" in blocks(case, target)
    assert_close(run_case(BY_NAME["conv2d"], case, target=target))


def test_a_pack_function_may_ask_for_its_reader():
    """It must be given the call then; one with a default stays its own."""
    seen = []

    base = BY_NAME["conv2d"]

    def pack(weight, plan, call):
        seen.append((call.kind, call.inputs[1].is_constant))
        return base.pack["weight"](weight, plan, call)

    def direct(weight, plan, factor=1):
        assert factor == 1
        return pack_direct(weight)

    for function, constant in ((pack, True), (pack, False), (direct, True)):
        kernel = replace(base.kernel, pack={"weight": function})
        composite = Composite("conv2d", base.pattern, check=base.check, kernel=kernel)
        run = run_case(composite, case_of((1, 16, 9, 9), 16, constant=constant))
        assert run.counts == {"conv2d": 1}
        assert_close(run)
    assert {*seen} == {("conv2d", True), ("conv2d", False)}


def test_two_in_a_row_keep_their_channels_last():
    """What lies between them is part of the second one's image: no NCHW tensor in between."""
    program = lambda x, w1, w2: op.relu(  # noqa: E731
        op.conv2d(op.relu(op.conv2d(x, w1, padding=1)), w2, padding=1)
    )
    shapes = {"x": (1, 16, 19, 18), "w1": (32, 16, 3, 3), "w2": (17, 32, 3, 3)}
    case = Case(program, constants=("w1", "w2"), **shapes)
    composite = BY_NAME["conv2d_relu_conv2d_relu"]
    run = run_case(composite, case)
    assert_close(run)
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(run.mod, composites=[composite]))
    _, scheduled = kernel.schedule(selfbyoc.host_target())
    left = {name for info in selfbyoc.op_info(scheduled.mod["main"]) for name in info.blocks}
    assert {"conv2d_wino_pixels", "conv2d_1_wino_image"} <= left
    assert not left & {"conv2d", "relu"}


def test_it_can_be_switched_off(monkeypatch):
    case = case_of((1, 16, 20, 20), 16)
    assert any("_wino_" in name for name in blocks(case))
    monkeypatch.setenv("SELFBYOC_WINOGRAD", "0")
    assert not any("_wino_" in name for name in blocks(case))
    assert_close(run_case(BY_NAME["conv2d"], case))


@RANDOM
@hypothesis.given(
    st.tuples(st.integers(1, 3), st.integers(16, 40), st.integers(3, 30), st.integers(3, 30)),
    st.integers(16, 50),
    st.tuples(*[st.integers(0, 2)] * 4),
)
def test_random_shapes(x, channels, padding):
    assert_close(run_case(BY_NAME["conv2d"], case_of(x, channels, padding)))
