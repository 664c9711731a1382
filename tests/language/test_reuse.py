"""A built-in composite's kernel under another pattern."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import BUILTIN, Case, Composite, Registry, op
from selfbyoc.errors import CompositeError

KNOWN = Registry(BUILTIN)
CONV = KNOWN["conv2d"]


def tanh_of_sum(image, weight, other):
    return op.tanh(op.add(op.conv2d(image, weight), other))


@pytest.mark.parametrize(
    "shapes",
    [((2, 5, 19, 17), (7, 5, 3, 3), (2, 7, 17, 15)), ((1, 3, 9, 11), (5, 3, 1, 1), (1, 5, 9, 11))],
)
@pytest.mark.parametrize("is_constant", [False, True])
def test_numbers(shapes, is_constant):
    """An argument may have another name, where nothing of the kernel goes by it."""
    mine = CONV.with_pattern("tanh_of_sum", tanh_of_sum)
    image, weight, other = (
        np.random.default_rng(i).standard_normal(s, np.float32) for i, s in enumerate(shapes)
    )
    weights = {"weight": weight} if is_constant else {}
    inputs = {"image": image, "weight": weight, "other": other}
    given = {n: a for n, a in inputs.items() if n not in weights}
    mod = selfbyoc.emit(tanh_of_sum, {n: a.shape for n, a in given.items()}, weights)
    library = selfbyoc.build(mod, composites=[mine])
    assert library.report.counts == {"tanh_of_sum": 1}
    (found,) = library(**given)
    _, _, height, width = weight.shape
    windows = np.lib.stride_tricks.sliding_window_view(image, (height, width), axis=(2, 3))
    sums = np.einsum("nchwyx,ocyx->nohw", windows, weight)
    np.testing.assert_allclose(found, np.tanh(sums + other), rtol=1e-4, atol=1e-4)


def test_the_kernel_is_the_same():
    mine = CONV.with_pattern("tanh_of_sum", tanh_of_sum, why="mine")
    assert mine.kernel is CONV.kernel
    assert mine.check is CONV.check
    assert (mine.name, mine.why, mine.cases, mine.reference) == ("tanh_of_sum", "mine", (), None)
    assert mine.arg_names == ("image", "weight", "other")


def test_what_is_given_counts():
    case = Case(image=(1, 3, 9, 9), weight=(4, 3, 3, 3), other=(1, 4, 7, 7))

    def reference(image, weight, other):
        return other

    mine = CONV.with_pattern(
        "tanh_of_sum", tanh_of_sum, cases=[case], reference=reference, check=None
    )
    assert (list(mine.cases), mine.reference, mine.check) == ([case], reference, None)


def test_the_check_refuses_as_before():
    """NHWC is not what this kernel computes."""

    def other_layout(image, weight, other):
        conv = op.conv2d(image, weight, data_layout="NHWC", kernel_layout="HWIO", out_layout="NHWC")
        return op.tanh(op.add(conv, other))

    mine = CONV.with_pattern("tanh_of_sum", tanh_of_sum)
    shapes = {"image": (1, 9, 9, 3), "weight": (3, 3, 3, 4), "other": (1, 7, 7, 4)}
    parted = selfbyoc.partition_for_tefuse(selfbyoc.emit(other_layout, shapes), composites=[mine])
    assert selfbyoc.report(parted).counts == {}
    assert "only NCHW, OIHW and NCHW are scheduled" in str(selfbyoc.report(parted))


@pytest.mark.parametrize("name", ["dense", "attention", "inverted_residual", "softmax"])
def test_a_compute_of_the_whole_pattern_serves_no_other(name):
    with pytest.raises(CompositeError, match=f"the compute of {name} is of its whole pattern"):
        KNOWN[name].with_pattern("mine", KNOWN[name].pattern)


def test_what_the_kernel_needs_is_asked_for():
    with pytest.raises(CompositeError, match=r"pack names \['weight'\]"):
        CONV.with_pattern("mine", lambda x, w: op.tanh(op.conv2d(x, w)))
    with pytest.raises(CompositeError, match=r"its compute names \['conv2d'\]"):
        CONV.with_pattern("mine", lambda x, weight: op.dense(x, weight))
    with pytest.raises(TypeError, match="nosuch"):
        CONV.with_pattern("mine", tanh_of_sum, nosuch=1)


def test_without_a_kernel():
    """Whatever a composite has: a schedule of one's own knows the blocks of its pattern."""
    plain = Composite("plain", lambda x: op.tanh(x))
    assert plain.with_pattern("other", lambda x: op.exp(op.tanh(x))).outputs[0].kind == "exp"
