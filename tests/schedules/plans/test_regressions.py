"""Plans that were found to raise or to be wrong (`make plans`), each as small as shows it."""

import sys
from pathlib import Path

import pytest
from harness import assert_close, run_case

import selfbyoc
from selfbyoc import BUILTIN, Case, op
from selfbyoc.analysis.bounds.bounds import Plan, check, of_case
from selfbyoc.commands.fuzz.seeds import case_program
from selfbyoc.tvm import make_target

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

from plan_draws import cases, machines

COMPOSITES = {composite.name: composite for composite in BUILTIN}


def chain(first, second):
    return lambda x, w1, w2: op.relu(op.conv2d(op.relu(op.conv2d(x, w1, **first)), w2, **second))


def found(composite, program, cpu, *, how=(), constants=None, told=None, reader=None, **args):
    """A case of a composite, its arguments but the first constants; `how` by default all."""
    weights = tuple(list(args)[1:]) if constants is None else constants
    case = Case(program, constants=weights, **args)
    hows = how or (cases.BUILT, cases.TUNED, cases.LASTING)
    return composite, case, cpu, hows, told or {}, reader and machines.usual(reader)


def levels_of_groups(x, weight):
    image = op.dequantize(x, 0.0625, -3)
    return op.conv2d(image, op.dequantize(weight, 0.015625, 0), groups=63)


def levels(x, weight):
    image = op.dequantize(x, 0.0625, 3)
    return op.conv2d(image, op.dequantize(weight, 0.015625, 0), padding=1)


def separable(x, w_depth, w_point):
    return op.conv2d(op.relu(op.conv2d(x, w_depth, groups=48, padding=1, strides=2)), w_point)


FOUND = {
    "a weight packed by groups was read as Winograd's: a division by zero": found(
        "conv2d_relu_conv2d_relu",
        chain(
            {"groups": 24, "strides": 2, "padding": (2, 0)},
            {"groups": 24, "strides": 2, "padding": (2, 2, 0, 2)},
        ),
        "haswell", x=(4, 24, 9, 17), w1=(24, 1, 5, 1), w2=(24, 1, 7, 7),
    ),
    "a weight packed by groups was read as Winograd's: no tiles to choose from": found(
        "conv2d_relu_conv2d_relu",
        chain(
            {"dilation": (3, 1), "strides": 2, "padding": (1, 1, 2, 3)},
            {"groups": 9, "strides": 2, "padding": 1},
        ),
        "skylake-avx512", x=(1, 33, 48, 16), w1=(9, 33, 1, 3), w2=(36, 1, 3, 3),
    ),
    "channels of two groups in a block were taken for a block of each": found(
        "depthwise_pointwise",
        lambda x, w_depth, w_point: op.conv2d(
            op.relu(op.conv2d(x, w_depth, groups=38, padding=1)), w_point, groups=2
        ),
        "haswell", x=(1, 38, 5, 6), w_depth=(38, 1, 3, 3), w_point=(18, 19, 1, 1),
    ),
    "of a packed weight the tuner was asked among other lanes": found(
        "conv2d",
        lambda x, weight: op.conv2d(x, weight, strides=(1, 3), padding=(3, 0, 1, 2)),
        "nehalem", x=(3, 256, 32, 23), weight=(37, 256, 4, 4),
    ),
    "the tuner was offered steps side by side that no packing knew": found(
        "depthwise_pointwise", separable, "haswell", how=(cases.TUNED,),
        told={"steps_side_by_side": 2},
        x=(1, 48, 27, 25), w_depth=(48, 1, 3, 3), w_point=(68, 48, 1, 1),
    ),
    "L2 held no group of rows: k is a prime number": found(
        "dense", lambda x, weight: op.dense(x, weight), "haswell",
        x=(256, 4099), weight=(40, 4099),
    ),
    "L2 held no rows of a task that normalises them": found(
        "layer_norm_dense",
        lambda x, gamma, beta, weight: op.dense(op.layer_norm(x, gamma, beta), weight),
        "haswell", x=(72, 1600), gamma=(1600,), beta=(1600,), weight=(16, 1600),
    ),
    "of levels in groups two plans asked the tuner for one window": found(
        "conv2d_int8", levels_of_groups, "haswell", how=(cases.BUILT, cases.TUNED, cases.LASTING),
        x=((1, 63, 10, 7), "int8"), weight=((1071, 1, 3, 3), "int8"),
    ),
    "melted, the blocks of a weight packed for another machine were not looked at": found(
        "conv2d_relu_conv2d_relu", chain({"padding": 1}, {"padding": 1}), "skylake-avx512",
        how=(cases.BUILT,), reader="nehalem",
        x=(64, 20, 14, 14), w1=(20, 20, 3, 3), w2=(20, 20, 3, 3),
    ),
    "Winograd's words have two levels where the CPU's have four": found(
        "conv2d_int8", levels, "cascadelake", x=((1, 64, 28, 28), "uint8"),
        weight=((64, 64, 3, 3), "int8"),
    ),
    "a weight packed for Winograd was read as words of the direct one": found(
        "conv2d_int8", levels, "haswell", reader="skylake-avx512", how=(cases.BUILT, cases.LASTING),
        x=((1, 64, 28, 28), "uint8"), weight=((64, 64, 3, 3), "int8"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FOUND)
def test_the_plan(what):
    name, case, cpu, hows, told, reader = FOUND[what]
    program, constants = case_program(COMPOSITES[name], case), case.constants
    packed = [c for c in constants if COMPOSITES[name].pack_for(c) is not None]
    for how in hows:
        asked = cases.Case(
            name, program, cpu, machines.usual(cpu), tuple(packed), how, told, (131,), reader=reader
        )
        outcome = cases.checked(asked)
        assert outcome.plans == 2
        assert outcome.faults == [], how


@pytest.mark.parametrize("what", list(FOUND)[:3])
def test_the_kernel(what):
    """Nothing falls back: a warning would be an error."""
    name, case, cpu, *_ = FOUND[what]
    target = f"llvm -mcpu={cpu}"
    if why := selfbyoc.machine.host.cannot_run(target):
        pytest.skip(why)
    run = run_case(COMPOSITES[name], case, target=target)
    assert run.counts == {name: 1}
    assert_close(run)


def before_others(**attrs):
    return lambda x, w_depth, w_point: op.conv2d(op.conv2d(x, w_depth, **attrs), w_point)


OUTSIDE = {
    # TVM 0.17 copies such an image from before its buffer on, under a condition.
    "padding before an image of which the last pixels are not read": found(
        "depthwise_pointwise", before_others(groups=48, padding=(5, 4, 0, 0), strides=2), "haswell",
        constants=("w_point",), x=(1, 48, 3, 10), w_depth=(48, 1, 2, 7), w_point=(1, 48, 1, 1),
    ),
    # A Select reads both sides; TVM folds none of vectors.
    "most taps of a window are in the padding": found(
        "depthwise_pointwise", before_others(groups=2, padding=(1, 4, 5, 4)), "nehalem",
        x=(3, 2, 1, 1), w_depth=(2, 1, 6, 5), w_point=(32, 2, 1, 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", OUTSIDE)
def test_accesses(what):
    name, case, cpu, *_ = OUTSIDE[what]
    plan = Plan(make_target(f"llvm -mcpu={cpu}"), is_run=False)
    (subject,) = of_case(COMPOSITES[name], case, plan, case.constants)
    proved = check(subject, "", plan)
    assert (proved.ok, list(proved.listed)) == (True, [])
