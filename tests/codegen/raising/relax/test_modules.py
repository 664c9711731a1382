"""Relax: a whole module of PrimFuncs in other layouts, and the graph that is told."""

import numpy as np
import pytest
import tvm
from layouts import index_map, permuted
from raising import run_by_tvm
from tvm import relax

import selfbyoc
from selfbyoc import emit, op, op_info, raise_ops
from selfbyoc.codegen.info.op_record import OP_INFO
from selfbyoc.errors import InputError, RaiseError
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.transform import AttachOpInfo, FuseTIR, MoveLayouts, RaiseOps
from selfbyoc.tvm import Schedule, get_block, tir

NHWC = permuted(0, 2, 3, 1)
SHAPES = {"x": (1, 16, 12, 10), "w": (16, 16, 3, 3), "v": (32, 16, 3, 3), "d": (7, 32)}
FUSED = (AttachOpInfo(), relax.transform.FuseOps(), FuseTIR())


def network(x, w, v, d):
    y = op.relu(op.conv2d(x, w, padding=1))
    y = op.relu(op.add(op.conv2d(y, w, padding=1), y))
    y = op.max_pool2d(op.conv2d(y, v, strides=2), pool_size=2)
    return op.softmax(op.dense(op.mean(y, axis=(2, 3)), d))


def model():
    return emit(network, SHAPES)


def arrays():
    rng = np.random.default_rng(4)
    return [(rng.standard_normal(s) / 4).astype("float32") for s in SHAPES.values()]


def ops(mod):
    values = [b.value for block in mod["main"].body.blocks for b in block.bindings]
    return [v.op.name.removeprefix("relax.") for v in values if isinstance(v, relax.Call)]


def attributes(mod, op_name, attribute):
    values = [b.value for block in mod["main"].body.blocks for b in block.bindings]
    return [str(getattr(v.attrs, attribute)) for v in values
            if isinstance(v, relax.Call) and v.op.name == f"relax.{op_name}"]  # fmt: skip


def sequence(*passes):
    return tvm.transform.Sequential(list(passes))(model())


@pytest.mark.parametrize("lowered", [FUSED[:1], FUSED], ids=["ops", "fused"])
def test_there_and_back(lowered):
    back = RaiseOps()(sequence(*lowered))
    assert ops(back) == ops(relax.transform.CanonicalizeBindings()(model()))
    wanted = run_by_tvm(model(), arrays())
    assert first_wrong(run_by_tvm(back, arrays())[0], wanted[0], "float32", 300) is None


@pytest.mark.parametrize("layout", ["NHWC", "NCHW4c", "NCHW8c"])
@pytest.mark.parametrize("lowered", [FUSED[:1], FUSED], ids=["ops", "fused"])
def test_layouts_are_planned_on_functions_and_the_graph_is_told(lowered, layout):
    """The discussion's own use; the module runs as PrimFuncs, and as ops again."""
    planned = sequence(*lowered, MoveLayouts(layout))
    raised = RaiseOps()(planned)
    convs = attributes(raised, "nn.conv2d", "data_layout")
    assert convs == [layout] * 3
    assert attributes(raised, "nn.conv2d", "out_layout") == [layout] * 3
    assert attributes(raised, "nn.max_pool2d", "layout") == [layout]
    assert ops(raised).count("permute_dims") == (1 if layout == "NHWC" else 2) + 1  # of dense
    wanted = run_by_tvm(model(), arrays())[0]
    for mod in (planned, RaiseOps(plain=True)(planned)):
        assert first_wrong(run_by_tvm(mod, arrays())[0], wanted, "float32", 300) is None


def test_composites_match_what_is_raised():
    """The point of it: an external compiler is asked after layouts were planned."""
    raised = RaiseOps()(sequence(AttachOpInfo(), MoveLayouts("NHWC")))
    conv_relu = selfbyoc.Composite(
        "conv_nhwc", lambda x, w: op.relu(op.conv2d(x, w, data_layout="NHWC", kernel_layout="OIHW",
                                                    padding=1)))  # fmt: skip
    parted = selfbyoc.partition_for_tefuse(raised, composites=[conv_relu])
    assert selfbyoc.report(parted).counts == {"conv_nhwc": 1}


def test_a_plan_of_ones_own():
    """Convolutions alone, their weights too; nothing is said of the other functions."""

    def plan(func):
        if not any(info.kind == "conv2d" for info in op_info(func)):
            return func
        held = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
        sch = Schedule(held)
        conv = get_block(sch, "conv2d_nchw")
        sch.transform_layout(get_block(sch, "pad_temp"), ("read", 0), index_map(NHWC, 4))
        sch.transform_layout(conv, ("read", 1), index_map(permuted(2, 3, 1, 0), 4))
        sch.transform_layout(conv, ("write", 0), index_map(NHWC, 4))
        return sch.mod["main"].without_attr("global_symbol")

    planned = tvm.transform.Sequential([AttachOpInfo(), MoveLayouts(plan)])(
        emit(lambda x, w: op.relu(op.conv2d(op.tanh(x), w, padding=1)), {"x": SHAPES["x"],
                                                                        "w": SHAPES["w"]})
    )  # fmt: skip
    raised = RaiseOps()(planned)
    wanted = ["nn.conv2d", "nn.relu", "permute_dims", "permute_dims", "permute_dims", "tanh"]
    assert sorted(ops(raised)) == wanted
    assert attributes(raised, "nn.conv2d", "kernel_layout") == ["HWIO"]


def test_a_function_that_has_no_form_stays():
    """A reshape hands its elements on in order: its function keeps its layout."""
    mod = emit(lambda x: op.relu(op.reshape(op.tanh(x), shape=(1, 16, 120))), {"x": SHAPES["x"]})
    planned = tvm.transform.Sequential([AttachOpInfo(), MoveLayouts("NHWC")])(mod)
    assert ops(RaiseOps()(planned)) == ["permute_dims", "tanh", "permute_dims", "reshape",
                                        "nn.relu"]  # fmt: skip


def test_functions_without_op_info_stay_as_they_are():
    lowered = relax.transform.LegalizeOps()(model())
    assert "call_tir" in ops(RaiseOps()(lowered))
    assert ops(MoveLayouts("NHWC")(lowered)) == ops(lowered)


def test_what_is_refused():
    with pytest.raises(InputError, match="plan: expected an order of NCHW, found 'NDHWC'"):
        MoveLayouts("NDHWC")

    def fuse_axes(func):
        if not any(info.kind == "relu" for info in op_info(func)):
            return func
        held = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
        sch = Schedule(held)
        sch.transform_layout(
            get_block(sch, "compute"), ("read", 0), lambda n, c, h, w: (n, c * 12 + h, w)
        )
        return sch.mod["main"].without_attr("global_symbol")

    with pytest.raises(RaiseError, match="parameter 0: op info cannot follow its new layout"):
        sequence(AttachOpInfo(), MoveLayouts(fuse_axes))


def test_symbolic_sizes():
    batch = tir.Var("n", "int64")
    mod = emit(
        lambda x: op.softmax(op.transpose(op.relu(x), axes=(0, 2, 1))),
        {"x": ((batch, 8, 6), "float32")},
    )
    back = RaiseOps()(AttachOpInfo()(mod))
    assert ops(back) == ["nn.relu", "permute_dims", "nn.softmax"]
    x = np.random.default_rng(0).standard_normal((5, 8, 6)).astype("float32")
    assert first_wrong(run_by_tvm(back, [x])[0], run_by_tvm(mod, [x])[0], "float32", 8) is None


def test_one_function_of_a_symbolic_size():
    """The graph of a function: its own module, with a symbol of the same name."""
    mod = emit(lambda x: op.relu(op.tanh(x)), {"x": ((tir.Var("n", "int64"), 4), "float32")})
    for var, func in AttachOpInfo()(mod).functions.items():
        if var.name_hint != "main" and OP_INFO in func.attrs.keys():  # noqa: SIM118
            graph = raise_ops(func)
            assert graph.inputs[0].shape == ("n", 4)
            assert str(emit(graph)["main"].params[0].ty.shape.values[0].name) == "n"
