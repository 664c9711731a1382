"""Index maps as layouts, and lowered functions on elements as ops."""

import numpy as np
import pytest
from moved_layouts import same
from tvm import relax
from tvm.script import relax as R

import selfbyoc
from selfbyoc.ops.layout_text import parts_of
from selfbyoc.partition.layouts import blocks, index_maps
from selfbyoc.tvm import te, tir, topi, tvm


def both(function, ndim):
    """What is read of an index map: as one that splits axes, and as one that joins them."""
    made = tir.IndexMap.from_func(function, ndim=ndim)
    given = list(made.initial_indices), list(made.final_indices)
    return index_maps.split_axes(*given), index_maps.joined_axes(*given)


@pytest.mark.parametrize("layout", ["NCHW16c", "NHWC", "NCHW4c8c", "NHWC16c", "NCHW4n16c", "CNHW"])
def test_a_layout_as_an_index_map_and_back(layout):
    parts = parts_of(layout, "NCHW")
    made = index_maps.splitting(parts)
    found = index_maps.split_axes(list(made.initial_indices), list(made.final_indices))
    assert found == parts
    made = index_maps.joining(parts)
    found = index_maps.joined_axes(list(made.initial_indices), list(made.final_indices))
    assert found == parts


@pytest.mark.parametrize(
    "function",
    [
        lambda n, c: (n, c // 16),  # a part is missing
        lambda n, c: (n, c // 16, c % 8),
        lambda n, c: (n, c % 16, c // 16),  # a block before what it is a block of
        lambda n, c: (n, c // 16, c % 16, c % 16),
        lambda n, c: (n, c + 1),
        lambda n, c: (n * 3 + c,),
        lambda n, c: (n, n),
        lambda n, c: (c * 16 + n, c),
        lambda n, c: (n, c, c % 2 + c % 3),
    ],
)
def test_other_maps_are_no_layouts(function):
    split, joined = both(function, 2)
    assert split is None
    if joined is not None:  # the joining of two axes into one
        assert blocks.rank_of(joined) == 1


def lowered(compute, *shapes, dtype="float32"):
    """A module that is one call of a lowered function, of inputs with these shapes."""
    builder = relax.BlockBuilder()
    params = [relax.Var(f"x{n}", R.Tensor(shape, dtype)) for n, shape in enumerate(shapes)]
    with builder.function("main", params):
        with builder.dataflow():
            out = builder.emit_output(builder.call_te(compute, *params))
        builder.emit_func_output(out)
    return builder.get()


def raised(mod):
    """The ops of main, lowered functions read where they are ops on elements."""
    from selfbyoc.ir.generation import ir
    from selfbyoc.partition.layouts.generation import ir as layouts

    done, count = layouts.raised(relax.transform.Normalize()(mod))
    return done, count, [call.kind for call in ir.read_as_written(done["main"]).graph.ops]


@pytest.mark.parametrize(
    ("compute", "kinds"),
    [
        (topi.nn.relu, ["relu"]),
        (topi.tanh, ["tanh"]),
        (lambda x: topi.clip(x, -1.0, 2.0), ["minimum", "maximum"]),
        (lambda x: topi.multiply(x, tir.const(2.0, "float32")), ["multiply"]),
        (lambda x: topi.cast(x, "int32"), ["cast"]),
    ],
)
def test_one_input(compute, kinds):
    mod = lowered(compute, (3, 5, 1))
    done, count, found = raised(mod)
    assert (count, found) == (1, kinds)
    same(mod, done, (3, 5, 1))


def test_an_operand_of_fewer_axes_is_broadcast():
    mod = lowered(topi.add, (3, 5, 7), (5, 1))
    done, count, found = raised(mod)
    assert (count, found) == (1, ["add"])
    same(mod, done, (3, 5, 7), (5, 1))


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: te.compute(x.shape, lambda i, j: x[i, 4 - j]),
        lambda x: te.compute(x.shape, lambda i, j: x[i, 0]),
        lambda x: te.compute((5, 3), lambda i, j: x[j, i]),
        lambda x: te.compute(x.shape, lambda i, j: x[i, j] + tir.Cast("float32", i)),
        lambda x: topi.sum(x, axis=1),
        lambda x: topi.nn.softmax(x),
        lambda x: te.compute(x.shape, lambda i, j: tir.if_then_else(j > 2, x[i, j], 0.0)),
    ],
)
def test_no_ops_on_elements(compute):
    _, count, kinds = raised(lowered(compute, (3, 5)))
    assert (count, kinds) == (0, ["call_tir"])


def altered(mod, name, layout):
    """By AlterOpImpl: the function `name` in another layout, all buffers of one shape."""
    from selfbyoc.tvm import Schedule

    func = mod[name].with_attr("operator_name", name)
    mod = tvm.IRModule(dict(mod.functions))
    mod.update_func(mod.get_global_var(name), func)
    schedule = Schedule(func.with_attr("global_symbol", "other"))
    (block,) = schedule.get_child_blocks(schedule.get_sblock("root"))
    for at in range(len(func.params) - 1):
        schedule.transform_layout(block, ("read", at), layout)
    schedule.transform_layout(block, ("write", 0), layout)
    schedule.transform_block_layout(block, layout)
    passes = relax.transform.AlterOpImpl({name: schedule.mod["main"]},
                                         {name: [layout] * len(func.params)})  # fmt: skip
    return passes(mod)


def a_relu_of_its_own(channels=32):
    """conv2d, then a lowered relu, as a module, and the shape of its image."""
    weight = np.random.default_rng(0).standard_normal((channels, 4, 3, 3)).astype("float32")
    builder, x = relax.BlockBuilder(), relax.Var("x", R.Tensor((1, 4, 7, 9), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.conv2d(x, relax.const(weight), padding=1))
            y = builder.emit(builder.call_te(topi.nn.relu, y, primfunc_name_hint="my_relu"))
            out = builder.emit_output(y)
        builder.emit_func_output(out)
    return builder.get()


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        (lambda n, c, h, w: (n, c // 16, h, w, c % 16), "1 ops in blocks folded back"),
        (lambda n, c, h, w: (n, h, w, c), "2 transposes before, 0 now"),
        (lambda n, c, h, w: (n, c, h, w), "2 layout_transforms before, 0 now"),
    ],
)
def test_after_alter_op_impl(layout, said):
    """A convolution takes the activation behind it that somebody wrote in another layout."""
    mod = altered(a_relu_of_its_own(), "my_relu", layout)
    parted = selfbyoc.partition_for_tefuse(mod)
    report = selfbyoc.report(parted)
    assert (report.counts, report.left) == ({"conv2d": 1}, {})
    assert said in report.layouts
    same(mod, mod, (1, 4, 7, 9))


def test_a_block_that_is_not_whole_stays():
    """Of 24 channels 16 and 8: TVM fills the second block, and takes what it filled away again."""
    mod = a_relu_of_its_own(24)
    func = mod["my_relu"].with_attr("operator_name", "my_relu")
    mod.update_func(mod.get_global_var("my_relu"), func)
    x = te.placeholder((1, 2, 7, 9, 16), name="x")
    blocked = te.create_prim_func([x, topi.nn.relu(x)])

    def layout(n, c, h, w):
        return n, c // 16, h, w, c % 16

    done = relax.transform.AlterOpImpl({"my_relu": blocked}, {"my_relu": [layout] * 2})(mod)
    report = selfbyoc.report(selfbyoc.partition_for_tefuse(done))
    assert report.counts == {"conv2d": 1}
    assert report.left["layout_transform"] == 2
