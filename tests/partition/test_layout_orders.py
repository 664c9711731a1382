"""B9: TVM's layout planner and an external compiler on one model, in both orders: what each costs
in transposes, as the table in docs/layouts.md says it.
"""

import dataclasses

import numpy as np
import pytest
from moved_layouts import same
from scripts import ROOT

import selfbyoc
from selfbyoc import op, require
from selfbyoc.ir.generation import ir
from selfbyoc.partition.layouts.flow import size
from selfbyoc.tvm import GENERATION, tvm

SHAPES = {
    "x": (1, 16, 28, 28), "w0": (32, 16, 3, 3), "b0": (32,), "w1": (32, 32, 3, 3),
    "w2": (32, 32, 3, 3), "b2": (32,),
}  # fmt: skip


def network(x, w0, b0, w1, w2, b2):
    y = op.relu(op.bias_add(op.conv2d(x, w0, padding=1), b0, axis=1))
    z = op.tanh(op.conv2d(y, w1, padding=2, dilation=2))
    y = op.max_pool2d(op.add(z, y), pool_size=2, strides=2)
    return op.relu(op.bias_add(op.conv2d(y, w2, padding=1), b2, axis=1))


def undilated():
    """A compiler that leaves one of the three convolutions to TVM."""
    conv = next(c for c in selfbyoc.BUILTIN if c.name == "conv2d")

    def check(match):
        conv.check(match)
        dilations = [call.attrs.get("dilation", (1, 1)) for call in match.ops]
        require(all(each == (1, 1) for each in dilations), "a dilated window")

    return [dataclasses.replace(conv, check=check)]


def planned(mod):
    """By TVM's ConvertLayout, to NHWC."""
    if GENERATION == "relay":
        passes = tvm.relay.transform
        with tvm.transform.PassContext(opt_level=3):
            done = passes.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})
            return passes.InferType()(done(passes.InferType()(mod)))
    passes = tvm.relax.transform
    done = passes.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})(mod)
    return passes.DeadCodeElimination()(done)


def cost(mod):
    """`2 | 75.3 kB`: the transposes in main of what is no constant and longer than a vector."""
    found = [
        size(call.inputs[0])
        for call in ir.read_as_written(mod["main"]).graph.ops
        if call.kind in ("transpose", "layout_transform")
        and not call.inputs[0].is_constant
        and sum(extent != 1 for extent in call.inputs[0].shape) > 1
    ]
    return f"{len(found)} | {sum(found) / 1e3:.1f} kB"


@pytest.fixture(name="mod", scope="module")
def fixture_mod():
    rng = np.random.default_rng(0)
    weights = {
        name: (0.1 * rng.standard_normal(shape)).astype("float32")
        for name, shape in SHAPES.items()
        if name != "x"
    }
    return selfbyoc.emit(network, SHAPES, weights)


def parted(mod, composites=None):
    return selfbyoc.partition_for_tefuse(mod, composites=composites)


ORDERS = {
    "the planner alone": planned,
    "planner first, then the compiler": lambda mod: parted(planned(mod)),
    "compiler first, then the planner": lambda mod: planned(parted(mod)),
    "planner first; one convolution is TVM's": lambda mod: parted(planned(mod), undilated()),
    "compiler first; one convolution is TVM's": lambda mod: planned(parted(mod, undilated())),
}


@pytest.mark.parametrize("name", ORDERS)
def test_orders(name, mod):
    done = ORDERS[name](mod)
    page = (ROOT / "docs/layouts.md").read_text(encoding="utf-8")
    assert f"| {GENERATION.capitalize()} | {name} | {cost(done)} |" in page
    same(mod, done, SHAPES["x"])
