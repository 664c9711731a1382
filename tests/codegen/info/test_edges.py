"""Op info under the rarer primitives: true, or UNKNOWN."""

import pytest
from layouts import module, stacked

from selfbyoc import UNKNOWN, op, op_info
from selfbyoc.errors import InputError
from selfbyoc.tvm import GENERATION, Schedule, get_block, tir, tvm

SHAPES = {"x": (1, 4, 8, 8), "w": (4, 4, 3, 3)}


def conv_relu(x, w):
    return op.relu(op.conv2d(x, w, padding=1))


def schedule(program=conv_relu, **shapes):
    held = module(stacked(program, **(shapes or SHAPES)).func)
    return held, Schedule(held)


@pytest.mark.parametrize("moves", [False, True])
def test_a_value_that_is_kept_in_another_dtype(moves):
    _held, sch = schedule()
    sch.unsafe_set_dtype(get_block(sch, "conv2d"), 0, "float16")
    if moves:
        sch.transform_layout(
            get_block(sch, "conv2d"), ("write", 0), lambda n, c, h, w: (n, h, w, c)
        )
    conv, relu = op_info(sch)
    assert (conv.outputs[0].dtype, relu.inputs[0].dtype) == ("float16", "float16")
    assert (conv.inputs[0].dtype, relu.outputs[0].dtype) == ("float32", "float32")


def test_a_dtype_that_cannot_be_told():
    """The blocks lost their axes: which buffer holds what is not known any more."""
    transform = tvm.s_tir.transform if GENERATION == "relax" else tvm.tir.transform
    _held, sch = schedule()
    passes = [transform.LowerInitBlock(), transform.ConvertBlocksToOpaque()]
    lower = tvm.transform.Sequential(passes)
    plain = lower(sch.mod)["main"]
    sch.unsafe_set_dtype(get_block(sch, "conv2d"), 0, "float16")
    halved = lower(sch.mod)["main"]
    assert op_info(plain)[0].outputs[0].dtype == "float32"
    assert op_info(halved)[0].outputs[0].dtype is UNKNOWN


def test_padding_what_a_product_reads():
    _held, sch = schedule(lambda x, w: op.relu(op.dense(x, w)), x=(7, 5), w=(9, 5))
    sch.pad_einsum(get_block(sch, "dense"), [4, 4, 4])
    dense, relu = op_info(sch)
    assert dense.blocks == ("x_pad", "w_pad", "dense", "dense_pad")
    assert [t.layout is UNKNOWN for t in (*dense.inputs, *dense.outputs)] == [True] * 3
    assert [t.shape for t in dense.inputs] == [(7, 5), (9, 5)]
    assert relu.outputs[0].shape == (7, 9)


def test_a_padding_taken_apart():
    _held, sch = schedule()
    pad = get_block(sch, "conv2d_pad")
    sch.decompose_padding(pad, sch.get_loops(pad)[0])
    conv, _ = op_info(sch)
    assert conv.blocks == ("conv2d_pad_pad_const", "conv2d_pad", "conv2d")
    assert conv.attrs["padding"] == (1, 1, 1, 1)
    layout = conv.attrs["data_layout"]
    assert layout is UNKNOWN or layout == "NCHW"


def with_params(func, params):
    if GENERATION == "relay":
        return tir.PrimFunc(params, func.body, None, func.buffer_map, func.attrs)
    return tir.PrimFunc(params, func.body, None, func.attrs)


def test_parameters_that_are_no_buffers():
    """A scalar; and addresses alone, which is what is left when TVM has lowered a function."""
    func = stacked(conv_relu, **SHAPES).func
    more = with_params(func, [tir.Var("n", "int32"), *func.params])
    assert op_info(more) == op_info(func)
    (conv, _) = op_info(with_params(func, [tir.Var(f"p{i}", "handle") for i in range(3)]))
    assert conv.attrs["kernel_layout"] is UNKNOWN
    assert conv.attrs["padding"] == (1, 1, 1, 1)


def test_parameters_in_another_order():
    """Their shapes would not tell."""
    func = stacked(conv_relu, x=(4, 4, 3, 3), w=(4, 4, 3, 3)).func
    x, w, out = func.params
    conv, relu = op_info(with_params(func, [w, x, out]))
    assert conv.attrs["data_layout"] is UNKNOWN
    assert conv.attrs["kernel_layout"] is UNKNOWN
    assert relu.outputs[0].shape == (4, 4, 3, 3)


def test_a_schedule_of_several_functions():
    funcs = {n: stacked(conv_relu, **SHAPES).func.with_attr("global_symbol", n) for n in "ab"}
    sch = Schedule(tvm.IRModule(funcs))
    with pytest.raises(InputError, match="say which one"):
        op_info(sch)
    sch.work_on("b")
    assert [info.name for info in op_info(sch)] == ["conv2d", "relu"]
