"""`optimize_layouts` on what only Relay has: layout_transform, ConvertLayout, tuples, branches."""

import json

import numpy as np
from moved_layouts import same
from tvm import relay

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.partition.layouts.record import LAYOUTS, Layouts
from selfbyoc.tvm import tvm

NHWC, BACK = (0, 3, 1, 2), (0, 2, 3, 1)


def told(mod):
    return Layouts(**json.loads(str(mod.attrs[LAYOUTS])))


def moving(mod):
    graph = ir.read_as_written(mod["main"]).graph
    return [c for c in graph.ops if c.kind in ("transpose", "layout_transform")]


def typed(body, *inputs):
    mod = tvm.IRModule.from_expr(relay.Function(list(inputs), body))
    return relay.transform.InferType()(mod)


def test_after_convert_layout():
    """TVM's pass puts layout_transform around what it converts."""

    def program(x, w, b, v):
        conv = {"data_layout": "NHWC", "kernel_layout": "HWIO", "padding": 1}
        y = op.relu(op.bias_add(op.conv2d(x, w, **conv), b, axis=3))
        y = op.softmax(op.max_pool2d(y, pool_size=2, layout="NHWC"))
        return op.conv2d(y, v, **conv)

    shapes = {"x": (1, 9, 8, 3), "w": (3, 3, 3, 5), "b": (5,), "v": (3, 3, 5, 6)}
    rng = np.random.default_rng(5)
    fixed = {n: rng.standard_normal(shapes[n]).astype("float32") for n in "wbv"}
    mod = emit(program, shapes, fixed)
    with tvm.transform.PassContext(opt_level=3):
        converted = relay.transform.ConvertLayout({"nn.conv2d": ["NCHW", "OIHW"]})(mod)
    done = selfbyoc.optimize_layouts(converted)
    assert told(done).bytes_left <= told(done).bytes_written
    assert len(moving(done)) <= 4  # image, before and after softmax, result
    same(mod, done, (1, 9, 8, 3))


def test_blocks_of_channels_are_no_transpose():
    x = relay.var("x", shape=(1, 8, 5, 7))
    y = relay.layout_transform(relay.nn.relu(x), "NCHW", "NCHW4c")
    mod = typed(relay.layout_transform(relay.tanh(y), "NCHW4c", "NCHW"), x)
    done = selfbyoc.optimize_layouts(mod)
    assert told(done).written == told(done).moved == 0
    assert len(moving(done)) == 2
    same(mod, done, (1, 8, 5, 7))


def test_padding():
    x = relay.var("x", shape=(1, 5, 7, 3))
    widths = ((0, 0), (0, 0), (1, 2), (3, 4))
    y = relay.nn.pad(relay.transpose(x, NHWC), widths, pad_value=1.5)
    mod = typed(relay.transpose(y, BACK), x)
    done = selfbyoc.optimize_layouts(mod)
    assert moving(done) == []
    same(mod, done, (1, 5, 7, 3))


def test_a_sum_over_the_other_axes_stays():
    x = relay.var("x", shape=(2, 5, 7, 3))
    mod = typed(relay.sum(relay.transpose(x, NHWC), axis=1, exclude=True), x)
    done = selfbyoc.optimize_layouts(mod)
    assert told(done).moved == 0
    same(mod, done, (2, 5, 7, 3))


def test_tuples():
    """Into ops that move, ops that do not, and out of the function."""
    x = relay.var("x", shape=(2, 5, 7, 3))
    parts = relay.split(relay.nn.relu(relay.transpose(x, NHWC)), 3, axis=1)
    whole = relay.concatenate(parts.astuple(), axis=1)
    rows = relay.stack([parts[0], parts[2]], axis=0)
    mod = typed(relay.Tuple([relay.transpose(whole, BACK), rows, parts[1]]), x)
    done = selfbyoc.optimize_layouts(mod)
    assert told(done).bytes_left <= told(done).bytes_written
    same(mod, done, (2, 5, 7, 3))


def test_a_branch_is_left_alone():
    x, yes = relay.var("x", shape=(2, 3)), relay.var("yes", shape=(), dtype="bool")
    y = relay.transpose(x)
    mod = typed(relay.If(yes, relay.transpose(relay.nn.relu(y)), relay.transpose(y)), x, yes)
    done = selfbyoc.optimize_layouts(mod)
    assert told(done).reason == "main holds a Relay If"
    assert "Layouts: unchanged: main holds a Relay If" in str(selfbyoc.explain(done))


def test_a_batch_that_is_not_known():
    x = relay.var("x", shape=(relay.Any(), 5, 7, 3))
    y = relay.nn.relu(relay.transpose(x, NHWC))
    done = selfbyoc.optimize_layouts(typed(relay.transpose(y, BACK), x))
    assert moving(done) == []
