"""`optimize_layouts` on what only Relax has: symbolic extents, tuples, branches, ConvertLayout."""

import json

import numpy as np
from moved_layouts import same
from tvm import relax
from tvm.script import relax as R

import selfbyoc
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.language.pattern import op
from selfbyoc.partition.layouts.record import LAYOUTS, Layouts
from selfbyoc.tvm import tir, tvm

NHWC, BACK = (0, 3, 1, 2), (0, 2, 3, 1)


def told(mod):
    return Layouts(**json.loads(str(mod.attrs[LAYOUTS])))


def transposes(mod):
    graph = ir.read_as_written(mod["main"]).graph
    return [call for call in graph.ops if call.kind == "transpose"]


def built(body, *shapes):
    builder = relax.BlockBuilder()
    params = [relax.Var(f"x{i}", R.Tensor(s, "float32")) for i, s in enumerate(shapes)]
    with builder.function("main", params):
        with builder.dataflow():
            out = builder.emit_output(body(builder, *params))
        builder.emit_func_output(out)
    return builder.get()


def test_a_batch_that_is_not_known():
    def body(builder, x, y):
        a = builder.emit(relax.op.permute_dims(x, NHWC))
        a = builder.emit(relax.op.add(a, builder.emit(relax.op.permute_dims(y, NHWC))))
        return builder.emit(relax.op.permute_dims(builder.emit(relax.op.nn.relu(a)), BACK))

    n = tir.Var("n", "int64")
    mod = built(body, (n, 5, 7, 3), (n, 5, 7, 3))
    done = selfbyoc.optimize_layouts(mod)
    assert transposes(done) == []
    for batch in (1, 4):
        same(mod, done, (batch, 5, 7, 3), (batch, 5, 7, 3))


def test_an_open_size_is_an_argument():
    n = tir.Var("n", "int64")

    def body(builder, x):
        a = builder.emit(relax.op.permute_dims(x, (1, 0)))
        row = builder.emit(relax.op.arange(0, n, 1, "float32"))
        return builder.emit(relax.op.permute_dims(builder.emit(relax.op.add(a, row)), (1, 0)))

    mod = built(body, (n, 5))
    done = selfbyoc.optimize_layouts(mod)
    for size in (1, 4):
        same(mod, done, (size, 5))


def test_padding():
    def body(builder, x):
        a = builder.emit(relax.op.permute_dims(x, NHWC))
        a = builder.emit(relax.op.nn.pad(a, [0, 0, 0, 0, 1, 2, 3, 4], pad_value=1.5))
        return builder.emit(relax.op.permute_dims(a, BACK))

    mod = built(body, (1, 5, 7, 3))
    done = selfbyoc.optimize_layouts(mod)
    assert transposes(done) == []
    same(mod, done, (1, 5, 7, 3))


def test_a_tuple_goes_out_as_it_was():
    def body(builder, x):
        a = builder.emit(relax.op.permute_dims(x, NHWC))
        parts = builder.emit(relax.op.split(builder.emit(relax.op.nn.relu(a)), 3, 1))
        back = builder.emit(relax.op.permute_dims(builder.emit(parts[0]), BACK))
        return relax.Tuple([back, parts[1], relax.Tuple([x, parts[2]])])

    mod = built(body, (2, 5, 7, 3))
    done = selfbyoc.optimize_layouts(mod)
    assert done["main"].ret_ty == mod["main"].ret_ty
    assert told(done).bytes_left <= told(done).bytes_written


def test_a_tuple_into_an_op_that_nobody_moves():
    def body(builder, x):
        a = builder.emit(relax.op.nn.relu(builder.emit(relax.op.permute_dims(x, NHWC))))
        parts = builder.emit(relax.op.split(a, 3, 1))
        a = builder.emit(relax.op.stack([builder.emit(parts[0]), builder.emit(parts[2])], 0))
        return builder.emit(relax.op.concat([a, a], axis=1))

    mod = built(body, (2, 5, 7, 3))
    same(mod, selfbyoc.optimize_layouts(mod), (2, 5, 7, 3))


def test_a_branch_is_left_alone():
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), yes: R.Tensor((), "bool")) -> R.Tensor(
        (2, 3), "float32"
    ):
        a = R.permute_dims(x)
        if yes:  # noqa: SIM108 (TVM's parser takes statements)
            b = R.permute_dims(R.nn.relu(a))
        else:
            b = R.permute_dims(a)
        return b

    done = selfbyoc.optimize_layouts(tvm.IRModule({"main": main}))
    assert told(done).reason.startswith("main has bindings outside of dataflow blocks")
    assert "Layouts: unchanged: main has" in str(selfbyoc.explain(done))


def test_after_relax_convert_layout():
    """TVM's own pass leaves transposes at what it does not know; this one takes them away."""

    def program(x, w, v):
        y = op.add(op.relu(op.conv2d(x, w, padding=1)), 1.0)
        y = op.maximum(op.tanh(y), op.transpose(op.transpose(y, axes=BACK), axes=NHWC))
        return op.conv2d(y, v)

    shapes = {"x": (1, 4, 9, 8), "w": (6, 4, 3, 3), "v": (5, 6, 3, 3)}
    rng = np.random.default_rng(5)
    fixed = {n: rng.standard_normal(shapes[n]).astype("float32") for n in "wv"}
    mod = emit(program, shapes, fixed)
    passes = [
        relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]}),
        relax.transform.DeadCodeElimination(),
    ]
    converted = tvm.transform.Sequential(passes)(mod)
    done = selfbyoc.optimize_layouts(converted)
    assert told(done).left == 2  # the image and the result
    report = selfbyoc.report(selfbyoc.partition_for_tefuse(done))
    assert "transpose" not in report.left, "partitioned in NCHW, where none is needed"
    assert "transposes before, 0 now" in report.layouts
    back = selfbyoc.optimize_layouts(converted, data_layout="NCHW")
    assert transposes(back) == []
    for other in (done, back):
        same(mod, other, (1, 4, 9, 8))
