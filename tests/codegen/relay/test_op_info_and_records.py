"""Relay: op info on the PrimFuncs of primitive functions, in tuning tasks and with a database."""

import numpy as np
import pytest
import tvm
from layouts import is_known
from tvm import meta_schedule as ms
from tvm import relay
from vocabulary import model as vocabulary_model

import selfbyoc
from selfbyoc import UNKNOWN, Composite, op, op_info
from selfbyoc.codegen.info.accesses import accesses_of
from selfbyoc.ir.emit import emit
from selfbyoc.ops.vocabulary import written
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.transform import extract_tasks, lower, op_info_attached
from selfbyoc.tvm import Schedule, get_block, make_target

TARGET = {"kind": "llvm", "num-cores": 2}
GENERIC = {"kind": "llvm", "keys": ["generic"]}
SHAPES = {"x": (1, 4, 9, 9), "w": (8, 4, 3, 3), "b": (8,), "v": (8, 8, 3, 3)}


def program(x, w, b, v):
    y = op.relu(op.bias_add(op.conv2d(x, w, strides=2, padding=1), b))
    for _ in range(2):  # two equal kernels
        y = op.relu(op.conv2d(y, v, padding=1))
    return op.softmax(op.relu(op.max_pool2d(y, pool_size=2, strides=2)), axis=1)


def model():
    return emit(program, {n: (s, "float32") for n, s in SHAPES.items()})


def primitives(mod):
    found = []
    fused = relay.transform.FuseOps(2)(mod)
    relay.analysis.post_order_visit(
        fused["main"],
        lambda e: (
            found.append(e.op)
            if isinstance(e, relay.Call) and isinstance(e.op, relay.Function)
            else None
        ),
    )
    return found


def kinds(func):
    return [info.kind for info in op_info(func)]


def test_the_ordered_ops_of_a_fused_function():
    found = {tuple(kinds(f)): f for f in (lower(p, GENERIC) for p in primitives(model()))}
    assert set(found) == {
        ("conv2d", "bias_add", "relu"), ("conv2d", "relu"), ("max_pool2d", "relu"), ("softmax",),
    }  # fmt: skip
    conv, bias, relu = op_info(found["conv2d", "bias_add", "relu"])
    assert conv.attrs["strides"] == (2, 2)
    assert conv.attrs["channels"] == 8
    assert conv.inputs[0].layout == "NCHW"
    assert (bias.attrs, bias.pattern) == ({"axis": 1}, "broadcast")
    assert (conv.blocks, bias.blocks, relu.blocks) == (
        ("pad_temp", "conv2d_nchw"), ("T_expand_dims", "T_add"), ("T_relu",),
    )  # fmt: skip


@pytest.mark.parametrize("target", [GENERIC, TARGET])
def test_every_block_belongs_to_one_op(target):
    """With the strategies of the target too, which pack inside the function."""
    for primitive in primitives(model()):
        func = lower(primitive, target)
        names = [b.name for b in accesses_of(func).blocks]
        assert sorted(b for i in op_info(func) for b in i.blocks) == sorted(names)


def test_a_layout_changed_afterwards():
    (func,) = [f for f in (lower(p, GENERIC) for p in primitives(model()))
               if kinds(f) == ["softmax"]]  # fmt: skip
    sch = Schedule(func)
    sch.transform_layout(get_block(sch, "T_softmax_maxelem"), ("read", 0),
                         lambda n, c, h, w: (n, h, w, c))  # fmt: skip
    assert op_info(sch)[0].attrs["axis"] is UNKNOWN
    sch.transform_layout(get_block(sch, "T_softmax_norm"), ("write", 0),
                         lambda n, c, h, w: (n, h, w, c))  # fmt: skip
    assert op_info(sch)[0].attrs["axis"] == 3


def tasks():
    return {
        tuple(kinds(task.dispatched[0]["main"])): task
        for task in extract_tasks(model(), TARGET, {})
    }


def test_tuning_tasks():
    found = tasks()
    assert ("nn.contrib_conv2d_NCHWc", "relu") in found
    assert found["nn.contrib_conv2d_NCHWc", "relu"].weight == 2  # equal ones are one task
    (conv, _) = op_info(found["nn.contrib_conv2d_NCHWc", "relu"].dispatched[0]["main"])
    eight = {"data_layout", "out_layout", "kernel_layout", "strides", "dilation", "padding",
             "groups", "channels"}  # fmt: skip
    assert eight <= set(conv.attrs)
    assert conv.attrs["data_layout"].startswith("NCHW")
    assert set(conv.layout_sensitive) == set(conv.attrs)  # no rule of ours: all of them may be


def test_a_database_keeps_it():
    """B22: recorded on the task's function, found and applied when the model is built."""
    mod = model()
    target, database = make_target(TARGET), ms.database.MemoryDatabase()
    task = tasks()["nn.contrib_conv2d_NCHWc", "relu"].dispatched[0]
    before = op_info(task["main"])
    sch = Schedule(task)
    sch.vectorize(sch.get_loops(get_block(sch, "T_relu"))[-1])
    sch.cache_write(get_block(sch, "conv2d_NCHWc"), 0, "global")
    database.commit_tuning_record(
        ms.database.TuningRecord(
            sch.trace, database.commit_workload(task), [1e-6], target,
            ms.arg_info.ArgInfo.from_prim_func(task["main"]),
        )
    )  # fmt: skip
    applied = database.query_schedule(task, target, "main")
    after = op_info(applied.mod["main"])
    assert [(i.attrs, i.inputs, i.outputs) for i in after] == [
        (i.attrs, i.inputs, i.outputs) for i in before
    ]
    assert "conv2d_NCHWc_global" in after[0].blocks
    with op_info_attached() as options, target, database:
        library = ms.relay_integration.compile_relay(database, mod, target, {}, pass_config=options)
    rng = np.random.default_rng(0)
    data = {n: rng.standard_normal(s).astype("float32") for n, s in SHAPES.items()}
    found = run(library, data)
    wanted = run(relay.build(mod, target), data)
    assert first_wrong(found, wanted, "float32", 72) is None


def run(library, data):
    from tvm.contrib.graph_executor import GraphModule

    module = GraphModule(library["default"](tvm.cpu()))
    module.set_input(**data)
    module.run()
    return module.get_output(0).numpy()


def test_nothing_is_left_behind():
    from tvm.relay.backend import te_compiler

    own = te_compiler.select_implementation
    with pytest.raises(ZeroDivisionError), op_info_attached():
        raise ZeroDivisionError
    assert te_compiler.select_implementation is own
    plain = te_compiler.lower_to_primfunc(
        primitives(model())[0].with_attr("Primitive", tvm.tir.IntImm("int32", 1)),
        make_target(GENERIC),
    )
    assert op_info(plain) == ()


def test_a_pattern_across_a_layout_transform():
    """B13: the transform is an op of its own; each side matches by itself, in its own layout."""
    x, w = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(8, 4, 3, 3))
    y = relay.nn.conv2d(x, w, channels=8, kernel_size=(3, 3))
    z = relay.nn.relu(relay.layout_transform(y, "NCHW", "NHWC"))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], z)))
    both = Composite("both", lambda x, w: op.relu(op.conv2d(x, w)))
    parted = selfbyoc.partition_for_tefuse(mod, composites=[both])
    assert selfbyoc.report(parted).counts == {}
    (record,) = selfbyoc.explain(mod, composites=[both]).why_not("relu")
    assert "found op layout_transform" in record.reason
    conv, relu = lambda x, w: op.conv2d(x, w), lambda x: op.relu(x)
    parted = selfbyoc.partition_for_tefuse(
        mod, composites=[Composite("conv", conv), Composite("relu", relu)]
    )
    assert selfbyoc.report(parted).counts == {"conv": 1, "relu": 1}
    rng = np.random.default_rng(0)
    data = {"x": rng.standard_normal((1, 4, 8, 8)).astype("float32"),
            "w": rng.standard_normal((8, 4, 3, 3)).astype("float32")}  # fmt: skip
    (found,) = selfbyoc.build(parted)(**data)
    assert first_wrong(found, run(relay.build(mod, "llvm"), data), "float32", 36) is None


# TVM 0.17 makes no PrimFunc of a nest that is written out (te.extern).
NESTS = {"gru", "lstm", "peephole_lstm", "rnn", "tree_ensemble"}


@pytest.mark.parametrize("kind", sorted(set(written()) - {"batch_norm", "layer_norm"} - NESTS))
def test_every_op_of_the_vocabulary(kind):
    """Its info owns all blocks of its function; the two left out are rewritten before fusion."""
    mod = relay.transform.InferType()(vocabulary_model(kind))
    if kind in ("dequantize", "quantize", "requantize"):  # qnn is canonicalised first
        mod = relay.transform.InferType()(relay.qnn.transform.CanonicalizeOps()(mod))
    for primitive in primitives(mod):
        func = lower(primitive, GENERIC)
        infos = op_info(func)
        names = [b.name for b in accesses_of(func).blocks]
        assert sorted(b for i in infos for b in i.blocks) == sorted(names)
        assert all(map(is_known, infos))
