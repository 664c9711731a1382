"""conv2d-relu-conv2d-relu: the melted form on shapes for which the rule would go stage by stage."""

from dataclasses import dataclass, replace

import pytest
from harness import assert_close, run_case

from selfbyoc import BUILTIN, Case, Composite, op
from selfbyoc.codegen.info.ops import Packing
from selfbyoc.machine import machine
from selfbyoc.schedules.kernels.conv.chain.plan import melted, melts
from selfbyoc.tvm import make_target

CHAIN = next(c for c in BUILTIN if c.name == "conv2d_relu_conv2d_relu")


def plan(ops, machine):
    """Always melted, whatever pays."""
    return melted(ops, machine)


MELTED = Composite(
    "melted", CHAIN.pattern, kernel=replace(CHAIN.kernel, plan=plan), check=CHAIN.check
)


def pair(first, second):
    return lambda x, w1, b1, w2, b2: op.relu(
        op.bias_add(
            op.conv2d(op.relu(op.bias_add(op.conv2d(x, w1, **first), b1)), w2, **second), b2
        )
    )


@pytest.mark.parametrize(
    ("first", "second", "sizes"),
    [
        ({"padding": 1}, {"padding": 1}, ((1, 3, 31, 45), (8, 3, 3, 3), (8, 8, 3, 3))),
        ({"padding": (0, 1, 2, 1)}, {}, ((2, 5, 23, 40), (9, 5, 3, 3), (17, 9, 3, 3))),
        (
            {"strides": 2},
            {"padding": 2, "dilation": 2},
            ((1, 4, 67, 71), (10, 4, 3, 3), (5, 10, 3, 3)),
        ),
        ({}, {"padding": (2, 0, 1, 3)}, ((1, 7, 40, 37), (12, 7, 1, 1), (6, 12, 5, 4))),
    ],
)
@pytest.mark.parametrize("constants", [(), ("w1", "b1", "w2", "b2")])
def test_melted(first, second, sizes, constants):
    x, w1, w2 = sizes
    case = Case(pair(first, second), x=x, w1=w1, b1=w1[:1], w2=w2, b2=w2[:1], constants=constants)
    run = run_case(MELTED, case)
    assert run.counts == {"melted": 1}
    assert_close(run)


@dataclass
class View:
    name: str
    attrs: dict
    inputs: list
    outputs: list


@dataclass
class Pair:
    conv2d: View
    conv2d_1: View

    def packing(self, view, index):
        return Packing("", False)


def views(height, width, strides=(1, 1), groups=1):
    image = ((1, 32, height, width), "float32")
    types = [image, ((32, 32 // groups, 3, 3), "float32")]
    attrs = {"groups": groups, "strides": strides, "padding": (1, 1, 1, 1), "dilation": (1, 1)}
    out = ((1, 32, -(-height // strides[0]), -(-width // strides[1])), "float32")
    first = View("conv2d", {**attrs, "strides": (1, 1)}, types, [image])
    return Pair(first, View("conv2d_1", {**attrs, "groups": 1}, types, [out]))


@pytest.mark.parametrize("mcpu", ["cascadelake", "haswell"])
def test_the_rule_melts_what_leaves_the_caches(mcpu):
    cpu = machine(make_target({"kind": "llvm", "mcpu": mcpu, "num-cores": 2}))
    cpu = replace(cpu, l2_bytes=1 << 20)
    assert melts(views(224, 224), cpu)
    assert not melts(views(56, 56), cpu)
    assert not melts(views(224, 224, strides=(2, 2)), cpu)
    assert not melts(views(224, 224, groups=4), cpu)
    assert not melts(views(2000, 8), cpu)
    assert not melts(views(224, 224), replace(cpu, cores=8))  # the intermediate is in eight L2s
