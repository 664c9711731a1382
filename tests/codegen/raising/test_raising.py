"""`raise_ops`: the ops of a PrimFunc in its present layouts, or who is in the way."""

import numpy as np
import pytest
from layouts import module, params, permuted, stacked
from raising import blocked, run_by_tvm

import selfbyoc
from selfbyoc import emit, op, op_info, raise_ops, with_plain_layouts
from selfbyoc.codegen.info.op_record import OP_INFO
from selfbyoc.codegen.raising.parameter_layouts import index_map, with_parameter_layouts
from selfbyoc.errors import InputError, RaiseError, UnsupportedOp
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION, Schedule, get_block, tvm

NHWC, HWIO, NCHW4C = permuted(0, 2, 3, 1), permuted(2, 3, 1, 0), blocked(4, a1=4)
SHAPES = {"x": (1, 8, 9, 7), "w": (12, 8, 3, 3), "b": (12,)}


def layer(x, w, b):
    return op.relu(op.bias_add(op.conv2d(x, w, strides=2, padding=(1, 0, 1, 2)), b))


def function(program=layer, /, **shapes):
    return stacked(program, **(shapes or SHAPES)).func


def placed(func, maps, **inner):
    """Parameters in other layouts, and what blocks write, by their names."""
    func = with_parameter_layouts(func, {p: index_map(m) for p, m in maps.items()})
    held = module(func)
    sch = Schedule(held)
    for name, layout in inner.items():
        sch.transform_layout(get_block(sch, name), ("write", 0), index_map(layout))
    return sch.mod["main"]


def drawn(graph):
    rng = np.random.default_rng(1)
    return [rng.standard_normal(v.shape).astype(v.dtype) for v in graph.inputs]


def kinds(graph):
    return [call.kind for call in graph.ops]


def layouts(graph, name="conv2d"):
    (call,) = (c for c in graph.ops if c.name == name)
    return [call.attrs[n] for n in ("data_layout", "kernel_layout", "out_layout")]


def check(func, inputs, wanted):
    """The graph, built by TVM alone, computes what is wanted."""
    found = run_by_tvm(emit(with_plain_layouts(raise_ops(func))), inputs)
    for f, w in zip(found, wanted, strict=True):
        assert (wrong := first_wrong(f, w, str(f.dtype), 100)) is None, wrong


def truth(program, args):
    """By TVM, of the program as it was written."""
    return run_by_tvm(emit(program, {n: a.shape for n, a in args.items()}), list(args.values()))


def test_as_it_was_written():
    graph = raise_ops(function())
    assert kinds(graph) == ["conv2d", "bias_add", "relu"]
    assert [v.name for v in graph.inputs] == ["x", "w", "b"]
    assert graph.ops[0].attrs["strides"] == (2, 2)
    assert graph.ops[0].attrs["padding"] == (1, 0, 1, 2)
    assert graph.producer(graph.ops[1].inputs[0]) is graph.ops[0]
    assert graph.ops[1].inputs[1] is graph.inputs[2]
    assert graph.outputs == graph.ops[2].outputs


def test_everything_moved_along():
    """No change of layout is left, in any order of axes, and with blocks of channels."""
    turned = placed(function(), {0: NHWC, 1: HWIO, 3: NHWC}, conv2d=NHWC, bias_add=NHWC)
    for graph in (raise_ops(turned), raise_ops(turned, materialize=False)):
        assert kinds(graph) == ["conv2d", "bias_add", "relu"]
        assert layouts(graph) == ["NHWC", "HWIO", "NHWC"]
        assert graph.ops[1].attrs["axis"] == 3
        assert graph.outputs[0].shape == (1, 5, 4, 12)


def test_blocks_of_channels():
    def program(x, w):
        return op.relu(op.conv2d(x, w, padding=1))

    func = placed(
        function(program, x=(1, 8, 6, 5), w=(8, 8, 3, 3)),
        {0: NCHW4C, 1: blocked(4, a1=4, a0=4), 2: NCHW4C},
        conv2d=NCHW4C,
    )
    graph = raise_ops(func, materialize=False)
    assert layouts(graph) == ["NCHW4c", "OIHW4i4o", "NCHW4c"]
    assert kinds(with_plain_layouts(graph)).count("conv2d") == 1
    assert [v.shape for v in graph.inputs] == [(1, 2, 6, 5, 4), (2, 2, 3, 3, 4, 4)]


@pytest.mark.parametrize(
    ("maps", "inner", "changes"),
    [
        ({0: NHWC}, {}, 0),  # a convolution has a layout for each tensor
        ({1: HWIO}, {}, 0),
        ({3: NHWC}, {}, 1),  # behind the relu
        ({3: NHWC}, {"bias_add": NHWC}, 1),  # in between
        ({3: NHWC}, {"bias_add": NHWC, "conv2d": NHWC}, 0),
        ({}, {"conv2d": NHWC}, 1),
        ({0: NHWC, 1: HWIO, 3: NHWC}, {"bias_add": NHWC}, 1),
    ],
)
def test_numbers(maps, inner, changes):
    func = placed(function(), maps, **inner)
    assert len(raise_ops(func).ops) == 3 + changes
    rng = np.random.default_rng(2)
    args = {n: rng.standard_normal(s).astype("float32") for n, s in SHAPES.items()}
    wanted = truth(layer, args)
    given = [_in(maps.get(i), a) for i, a in enumerate(args.values())]
    check(func, given, [_in(maps.get(3), wanted[0])])


def _in(layout, array):
    from layouts import moved

    return array if layout is None else np.ascontiguousarray(moved(array, layout))


PROGRAMS = {
    "two roles": (lambda x: op.add(op.relu(x), op.multiply(x, x)), {"x": (1, 4, 6, 8)}),
    "a residual": (
        lambda x, w: op.relu(op.add(op.conv2d(x, w, padding=1), x)),
        {"x": (1, 4, 6, 8), "w": (4, 4, 3, 3)},
    ),
    "a gate": (lambda x, g: op.multiply(x, op.sigmoid(g)), {"x": (1, 4, 6, 8), "g": (1, 4, 1, 1)}),
    "a row": (lambda x, r: op.add(op.tanh(x), r), {"x": (1, 4, 6, 8), "r": (8,)}),
    "numbers": (lambda x: op.maximum(op.multiply(x, 0.5), -1.0), {"x": (1, 4, 6, 8)}),
    "a pool": (lambda x: op.relu(op.max_pool2d(x, pool_size=3, strides=2, padding=1)),
               {"x": (1, 4, 6, 8)}),
    "a mean": (lambda x: op.relu(op.mean(x, axis=(2, 3))), {"x": (1, 4, 6, 8)}),
    "a reshape": (lambda x: op.relu(op.reshape(op.tanh(x), shape=(4, 48))), {"x": (1, 4, 6, 8)}),
    "a softmax": (lambda x: op.softmax(op.tanh(x), axis=1), {"x": (1, 4, 6, 8)}),
    "results": (lambda x: (op.relu(x), op.tanh(op.relu(x))), {"x": (1, 4, 6, 8)}),
    "a split": (lambda x: op.split(op.tanh(x), indices_or_sections=2, axis=1)[1],
                {"x": (1, 4, 6, 8)}),
    "a batch norm": (
        lambda x, g, v: op.relu(op.batch_norm(x, g, g, g, op.multiply(v, v))[0]),
        {"x": (1, 4, 6, 8), "g": (4,), "v": (4,)},
    ),
    "a concatenate": (lambda x, y: op.concatenate([op.tanh(x), y], axis=1),
                      {"x": (1, 4, 6, 8), "y": (1, 8, 6, 8)}),
    "groups": (lambda x, w: op.relu(op.conv2d(x, w, groups=4, dilation=(2, 1))),
               {"x": (1, 4, 6, 8), "w": (8, 1, 2, 3)}),
    "one pixel": (lambda x, w: op.relu(op.conv2d(x, w)), {"x": (3, 4, 1, 1), "w": (8, 4, 1, 1)}),
}  # fmt: skip


@pytest.mark.parametrize("layout", [NHWC, NCHW4C, permuted(1, 0, 3, 2)], ids=["NHWC", "4c", "CNWH"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_input_in_another_layout(name, layout):
    """Whatever the ops are: changes of layout stand where they have no form in it."""
    program, shapes = PROGRAMS[name]
    func = function(program, **shapes)
    if layout is NCHW4C and shapes["x"][1] == 4:
        shapes = {n: tuple(2 * e if e in (4, 8) else e for e in s) for n, s in shapes.items()}
        if name in ("a reshape", "groups"):
            pytest.skip("its sizes are written in the program")
        func = function(program, **shapes)
    rng = np.random.default_rng(3)
    args = {n: rng.standard_normal(s).astype("float32") for n, s in shapes.items()}
    wanted = truth(program, args)
    moved_to = with_parameter_layouts(func, {0: index_map(layout)})
    given = [_in(layout, args["x"]), *list(args.values())[1:]]
    check(moved_to, given, wanted)


def test_dense_with_another_weight():
    """It has no attribute for it: a transpose stands before it, and a refusal on request."""

    def program(x, w):
        return op.relu(op.dense(x, w))

    func = with_parameter_layouts(
        function(program, x=(5, 12), w=(8, 12)), {1: index_map(permuted(1, 0))}
    )
    graph = raise_ops(func)
    assert kinds(graph) == ["transpose", "dense", "relu"]
    assert [call.name for call in graph.ops] == ["transpose_of_w", "dense", "relu"]
    with pytest.raises(RaiseError, match="dense: input 1: dense has no form in this layout") as e:
        raise_ops(func, materialize=False)
    assert (e.value.op, e.value.what) == ("dense", "input 1")


def test_an_attribute_that_has_no_value():
    func = with_parameter_layouts(
        function(lambda x: op.max_pool2d(x, pool_size=2), x=(1, 4, 6, 8)), {0: index_map(NHWC)}
    )
    assert kinds(raise_ops(func)) == ["max_pool2d", "transpose"]
    with pytest.raises(RaiseError, match=r"^max_pool2d: layout: max_pool2d has no form"):
        raise_ops(func, materialize=False)


def test_the_evidence_of_a_trace():
    """What a later primitive hid is known from the function that the schedule began with."""
    begin = function()
    held = module(begin)
    sch = Schedule(held)
    block = get_block(sch, "relu")
    sch.transform_layout(block, ("write", 0), index_map(NHWC))
    sch.transform_block_layout(block, lambda n, c, h, w: (n, c * 20 + h * 4 + w))
    with pytest.raises(RaiseError, match="output 0: parameter 3 'relu': its layout cannot be read"):
        raise_ops(sch)
    assert raise_ops(sch, begin).outputs[0].shape == (1, 5, 4, 12)


# ---- what is refused


def test_a_function_without_op_info():
    func = function()
    with pytest.raises(RaiseError, match=r"the PrimFunc has no op info \(attribute tefuse"):
        raise_ops(func.without_attr(OP_INFO))
    with pytest.raises(InputError, match="expected a PrimFunc or a Schedule"):
        raise_ops("conv2d")


@pytest.mark.parametrize(
    "index",
    [
        lambda n, c, h, w: (n, c * 9 + h, w),  # axes fused
        lambda n, c, h, w: (n, c // 4, h, w, c // 2 % 2, c % 2),  # split in three
    ],
    ids=["fused", "three parts"],
)
def test_a_layout_that_is_none(index):
    func = with_parameter_layouts(function(), {0: index})
    text = r"conv2d: input 0: parameter 0 'x': its layout cannot be read off .*recorded as \[1, 8,"
    with pytest.raises(RaiseError, match=text):
        raise_ops(func)


def test_a_result_with_padding():
    """12 channels in blocks of 8."""
    held = module(function())
    sch = Schedule(held)
    sch.transform_layout(get_block(sch, "relu"), ("write", 0),
                         lambda n, c, h, w: (n, c // 8, h, w, c % 8), pad_value=0.0)  # fmt: skip
    with pytest.raises(RaiseError, match=r"relu: output 0: parameter 3 'relu': its layout cannot"):
        raise_ops(sch)


def test_two_layouts_that_no_shape_tells_apart():
    """The same shape: the blocks say which axes changed places."""
    square = {"x": (1, 8, 8, 8), "w": (8, 8, 3, 3), "b": (8,)}
    func = with_parameter_layouts(function(**square), {0: index_map(permuted(0, 1, 3, 2))})
    assert layouts(raise_ops(func))[0] == "NCWH"


def test_a_packed_weight():
    """It never had the op's own axes."""
    from packing import dense

    from selfbyoc.analysis.kernels import kernels

    rng = np.random.default_rng(0)
    weight = rng.standard_normal((32, 24)).astype("float32")
    mod = emit(lambda x, w: op.relu(op.dense(x, w)), {"x": (5, 24)}, {"w": weight})
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, composites=[dense]))
    with pytest.raises(RaiseError, match=r"comes packed as \[.*\]; stack it unpacked"):
        raise_ops(kernel.schedule(selfbyoc.host_target())[0].func)


def test_code_that_was_edited():
    """Another buffer is read: what the results are computed of is no longer what was recorded."""
    func = function(lambda x, y: (op.relu(x), op.multiply(x, y)), x=(4, 5), y=(4, 5))
    assert kinds(raise_ops(func)) == ["relu", "multiply"]
    lines = tvm.IRModule({"main": func}).script().splitlines()
    of_relu = [line.replace(" x[", " y[") if " relu[" in line and "T.max(" in line else line
               for line in lines]  # fmt: skip
    assert of_relu != lines
    changed = tvm.script.from_source("\n".join(of_relu))["main"]
    with pytest.raises(
        RaiseError, match=r"output 0: was computed of parameters \[0\], is of \[0, 1\]"
    ):
        raise_ops(changed)


def test_another_number_of_parameters():
    func = function().with_attr(OP_INFO, str(function(PROGRAMS["a row"][0], x=(1, 4, 6, 8),
                                                      r=(8,)).attrs[OP_INFO]))  # fmt: skip
    with pytest.raises(RaiseError, match="parameters: 3 parameters were recorded, found 4"):
        raise_ops(func)


def test_an_older_version_recorded_no_edges():
    import json

    func = function()
    data = json.loads(str(func.attrs[OP_INFO]))
    del data["results"]
    with pytest.raises(RaiseError, match="says nothing of edges"):
        raise_ops(func.with_attr(OP_INFO, json.dumps(data)))


def test_an_op_that_no_one_can_write():
    graph = raise_ops(function())
    odd = graph.ops[0].__class__("my_op", graph.inputs[:1], {}, graph.inputs[:1], "my_op")
    with pytest.raises(UnsupportedOp, match="my_op: my_op cannot be written as an op"):
        emit(selfbyoc.OpGraph(graph.inputs, (odd,), graph.outputs))


def test_params_are_named_as_buffers_are():
    names = [str(b.name) for b in params(function())]
    assert [v.name for v in raise_ops(function()).inputs] == names[:3]
    assert op_info(function())[0].sources[1].index == 1
    assert GENERATION in ("relay", "relax")
