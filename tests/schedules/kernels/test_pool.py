"""Pools in both forms, rows and flat lanes: borders, strides, dilation, windows of odd sizes."""

import numpy as np
import pytest
from harness import assert_close, run_case

import selfbyoc
from selfbyoc import Case, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.ir.emit import emit
from selfbyoc.schedules.composites.pool import avg_pool2d, max_pool2d
from selfbyoc.tvm import GENERATION, make_target

# name: shape, attributes, whether it is computed row by row
WINDOWS = {
    "strided": ((1, 5, 17, 23), {"pool_size": 3, "strides": 2}, True),
    "whole vectors": ((2, 3, 32, 64), {"pool_size": 3, "strides": 2}, True),
    "bordered": ((1, 4, 15, 14), {"pool_size": 3, "strides": 2, "padding": 1}, True),
    "two by two": ((1, 3, 14, 14), {"pool_size": 2, "strides": 2}, True),
    "wide": ((1, 3, 9, 41), {"pool_size": 3, "padding": 1}, True),
    "narrow": ((1, 3, 9, 13), {"pool_size": 3, "padding": 1}, False),
    "one side": ((2, 2, 13, 34), {"pool_size": (2, 5), "padding": (1, 0, 0, 4)}, True),
    "ceil": ((1, 3, 14, 17), {"pool_size": 3, "strides": 2, "ceil_mode": True}, True),
    "far apart": ((1, 2, 40, 50), {"pool_size": 2, "strides": 5}, True),
    "large window": ((1, 2, 40, 40), {"pool_size": 13, "strides": 3}, False),
    "to one column": ((1, 6, 21, 7), {"pool_size": 7, "strides": 7}, False),
    "one image": ((1, 1, 65, 33), {"pool_size": 3, "strides": (1, 2)}, True),
}  # fmt: skip


def stages(composite, program, shape, target="llvm -mcpu=haswell"):
    mod = selfbyoc.partition_for_tefuse(
        emit(program, {"x": shape}), target=target, composites=[composite]
    )
    (kernel,) = kernels(mod)
    stacked, scheduled = kernel.schedule(make_target(target))
    return stacked.func.script(), scheduled.mod["main"].script()


@pytest.mark.parametrize("name", sorted(WINDOWS))
@pytest.mark.parametrize("kind", ["max", "avg", "avg with padding"])
def test_both_forms(kind, name):
    shape, attrs, is_rows = WINDOWS[name]
    composite = max_pool2d if kind == "max" else avg_pool2d
    if kind == "avg with padding":
        attrs = {**attrs, "count_include_pad": True}
    make = op.max_pool2d if kind == "max" else op.avg_pool2d
    case = Case(lambda x: make(x, **attrs), x=shape)
    run = run_case(composite, case)
    assert run.counts == {composite.name: 1}
    assert_close(run)
    stacked, _ = stages(composite, case.program, shape)
    assert ("_down" in stacked) == is_rows


OUTSIDE = {
    "before": ((1, 2, 9, 11), {"pool_size": 2, "padding": (3, 2, 0, 0)}),
    "before, by rows": ((1, 2, 9, 40), {"pool_size": 2, "padding": (3, 3, 1, 1)}),
    "around": ((1, 2, 9, 40), {"pool_size": (2, 3), "strides": 2, "padding": 4}),
    "by a large window": ((1, 2, 20, 20), {"pool_size": 9, "padding": 9}),
    "in channels last": ((1, 9, 11, 2), {"pool_size": 2, "padding": 3, "layout": "NHWC"}),
}  # fmt: skip
if GENERATION == "relay":  # on Relax such windows are none
    ceil = {"strides": (2, 2), "padding": 1, "ceil_mode": True}
    OUTSIDE["after"] = ((1, 3, 10, 11), {"pool_size": (3, 2), **ceil})
    OUTSIDE["after, by rows"] = ((1, 3, 10, 41), {"pool_size": (3, 2), **ceil})


@pytest.mark.parametrize("name", sorted(OUTSIDE))
@pytest.mark.parametrize("counts", [False, True])
def test_windows_that_lie_outside_the_image(counts, name):
    """Their average is 0, as TVM alone says, and not 0 / 0."""
    shape, attrs = OUTSIDE[name]
    case = Case(lambda x: op.avg_pool2d(x, **attrs, count_include_pad=counts), x=shape)
    any_layout = selfbyoc.Composite("average", lambda x: op.avg_pool2d(x))
    for composite in (any_layout, *([] if "layout" in attrs else [avg_pool2d])):
        run = run_case(composite, case)
        assert run.counts == {composite.name: 1}
        assert all(np.isfinite(result).all() for result in run.found)
        assert_close(run)


def test_numpy_averages_dilated_windows():
    """No compute of ours takes them; what is compared with NumPy must mean what TVM means."""
    attrs = {"pool_size": (2, 3), "padding": (1, 1, 0, 2), "dilation": (2, 1)}
    case = Case(lambda x: op.avg_pool2d(x, **attrs), x=(1, 2, 7, 9))
    run = run_case(avg_pool2d, case)
    assert run.counts == {}
    assert_close(run)


@pytest.mark.parametrize("counts", [False, True])
def test_averages_of_dilated_windows_over_both_borders(counts):
    """Vectors of TVM's divide negative numbers by rounding down; one pixel was counted too many."""
    attrs = {"pool_size": (5, 7), "strides": 3, "padding": (2, 3, 3, 2), "dilation": (1, 3)}
    for shape in ((1, 1, 1, 20), (1, 2, 6, 43)):
        case = Case(lambda x: op.avg_pool2d(x, **attrs, count_include_pad=counts), x=shape)
        run = run_case(avg_pool2d, case)
        assert run.counts == {}  # the default schedule's on Relax
        assert_close(run)


@pytest.mark.parametrize("dilation", [(1, 2), (2, 1), (3, 2)])
def test_dilated(dilation):
    attrs = {"pool_size": 3, "strides": (1, 2), "padding": (1, 2, 1, 2), "dilation": dilation}
    case = Case(lambda x: op.max_pool2d(x, **attrs), x=(1, 3, 19, 38))
    run = run_case(max_pool2d, case)
    assert run.counts == {"max_pool2d": 1}
    assert_close(run)


def test_nothing_but_negative_numbers_at_the_border():
    """The padding never wins, and a row outside is not read instead."""
    x = np.full((1, 2, 9, 33), -7.0, "float32")
    program = Case(lambda x: op.max_pool2d(x, pool_size=3, strides=2, padding=1), x=x.shape).program
    library = selfbyoc.build(emit(program, {"x": x.shape}))
    assert library.report.counts == {"max_pool2d": 1}
    assert (library(x)[0] == -7.0).all()


def test_rows_are_in_vectors_without_a_copy():
    text = stages(max_pool2d, lambda x: op.max_pool2d(x, pool_size=3, strides=2), (1, 8, 33, 64))[1]
    assert "vectorized" in text
    assert "_pad" not in text
    assert text.count("parallel") == 1
