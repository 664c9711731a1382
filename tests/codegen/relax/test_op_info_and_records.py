"""Relax: op info before and after TVM's own fusion, tuning records and their application."""

import numpy as np
import pytest
import tvm
from layouts import is_known, params
from tvm import relax
from tvm.s_tir import meta_schedule as ms
from vocabulary import MISSING
from vocabulary import model as vocabulary_model

import selfbyoc
from selfbyoc import UNKNOWN, Composite, op, op_info
from selfbyoc.codegen.info.accesses import accesses_of
from selfbyoc.codegen.info.op_record import OP_INFO
from selfbyoc.ir.emit import emit
from selfbyoc.ops.vocabulary import written
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.transform import AttachOpInfo, FuseTIR
from selfbyoc.tvm import Schedule, get_block, make_target, structural_equal

CHAIN = (AttachOpInfo(), relax.transform.FuseOps(), FuseTIR())


def program(x, w, b, v):
    y = op.relu(op.bias_add(op.conv2d(x, w, strides=2, padding=1), b))
    for _ in range(2):  # two equal kernels
        y = op.relu(op.conv2d(y, v, padding=1))
    return op.softmax(op.relu(op.max_pool2d(y, pool_size=2, strides=2)), axis=1)


SHAPES = {"x": (1, 4, 9, 9), "w": (8, 4, 3, 3), "b": (8,), "v": (8, 8, 3, 3)}


def model():
    return emit(program, {n: (s, "float32") for n, s in SHAPES.items()})


def fused():
    return tvm.transform.Sequential(list(CHAIN))(model())


def functions(mod):
    return {v.name_hint: f for v, f in mod.functions.items() if v.name_hint != "main"}


def kinds(func):
    return [info.kind for info in op_info(func)]


def test_each_op_before_fusion():
    mod = AttachOpInfo()(model())
    found = sorted(kinds(f) for f in functions(mod).values())
    assert found == [["add"], ["conv2d"], ["conv2d"], ["max_pool2d"], ["relu"], ["relu"],
                     ["reshape"], ["softmax"]]  # fmt: skip
    (pool,) = [op_info(f)[0] for f in functions(mod).values() if kinds(f) == ["max_pool2d"]]
    assert pool.attrs["strides"] == (2, 2)
    assert pool.inputs[0].layout == "NCHW"
    assert pool.pattern == "out_elemwise_fusable"


def test_the_ordered_ops_of_a_fused_function():
    found = {tuple(kinds(f)): f for f in functions(fused()).values()}
    assert set(found) == {
        ("conv2d", "add", "relu"), ("conv2d", "relu"), ("max_pool2d", "relu"), ("softmax",),
        ("reshape",),
    }  # fmt: skip
    conv, add, relu = op_info(found["conv2d", "add", "relu"])
    assert conv.attrs["strides"] == (2, 2)
    assert conv.attrs["channels"] == 8
    assert conv.outputs[0].shape == add.inputs[0].shape == (1, 8, 5, 5)
    assert (conv.blocks, add.blocks, relu.blocks) == (
        ("pad_temp", "conv2d_nchw"), ("T_add",), ("compute",),
    )  # fmt: skip


def test_equal_functions_stay_shared():
    """Two equal kernels, one function: names are local to it."""
    mod = fused()
    values = [binding.value for binding in mod["main"].body.blocks[0].bindings]
    calls = [v.args[0].name_hint for v in values if isinstance(v, relax.Call)]
    (shared,) = [n for n, f in functions(mod).items() if kinds(f) == ["conv2d", "relu"]]
    assert calls.count(shared) == 2
    assert len(calls) == len(set(calls)) + 1 == len(functions(mod)) + 1


def test_two_ops_of_a_kind_are_numbered():
    mod = emit(lambda x: op.relu(op.tanh(op.relu(op.exp(x)))), {"x": ((4, 5), "float32")})
    (func,) = functions(tvm.transform.Sequential(list(CHAIN))(mod)).values()
    found = op_info(func)
    assert [i.name for i in found] == ["exp", "relu", "tanh", "relu_1"]
    names = [b.name for b in accesses_of(func).blocks]
    assert [b for i in found for b in i.blocks] == names
    assert len(set(names)) == 4


def run(mod, arrays):
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    return vm["main"](*map(tvm.runtime.tensor, arrays)).numpy()


def arrays():
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype("float32") for s in SHAPES.values()]


def test_it_still_compiles_and_runs():
    data = arrays()
    found, wanted = run(fused(), data), run(model(), data)
    assert first_wrong(found, wanted, "float32", 8 * 9) is None


def test_it_compares_with_tvms_own_passes():
    """But for op info and the labels, the same functions."""
    own = tvm.transform.Sequential(
        [relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern(),
         relax.transform.FuseOps(), relax.transform.FuseTIR()]
    )(model())  # fmt: skip
    names = sorted(gv.name_hint for gv in own.get_global_vars())
    assert sorted(gv.name_hint for gv in fused().get_global_vars()) == names
    assert OP_INFO not in str(own.script())


def test_ops_that_the_vocabulary_does_not_know():
    """Every attribute is there, and each may depend on the layout."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 8, 4, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            flat = builder.emit(relax.op.reshape(x, (1, 8, 16)))
            y = builder.emit(relax.op.nn.avg_pool1d(flat, 2))
            z = builder.emit_output(relax.op.strided_slice(y, [2], [0], [4], [2]))
        builder.emit_func_output(z)
    mod = AttachOpInfo()(builder.get())
    found = {kinds(f)[0]: op_info(f)[0] for f in functions(mod).values() if kinds(f)}
    pool = found["nn.avg_pool1d"]
    assert pool.attrs["layout"] == "NCW"
    assert set(pool.layout_sensitive) == set(pool.attrs)
    assert pool.pattern == "out_elemwise_fusable"
    assert set(found) == {"reshape", "nn.avg_pool1d", "strided_slice"}


def test_unknown_extents():
    builder = relax.BlockBuilder()
    n = tvm.tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((n, 8), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.nn.relu(builder.emit(relax.op.tanh(x))))
        builder.emit_func_output(y)
    (func,) = functions(tvm.transform.Sequential(list(CHAIN))(builder.get())).values()
    tanh, relu = op_info(func)
    assert (tanh.inputs[0].shape, relu.outputs[0].shape) == (("n", 8), ("n", 8))
    sch = Schedule(func)
    sch.transform_layout(get_block(sch, relu.blocks[0]), ("write", 0), lambda i, j: (j, i))
    assert op_info(sch)[1].outputs[0].layout is UNKNOWN
    assert is_known(op_info(sch)[0])


def test_a_pattern_across_a_layout_transform():
    """B13: the transform is an op of its own; each side matches by itself, in its own layout."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 4, 8, 8), "float32"))
    w = relax.Var("w", relax.TensorType((8, 4, 3, 3), "float32"))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.conv2d(x, w))
            t = builder.emit(relax.op.layout_transform(y, lambda n, c, h, w: (n, h, w, c)))
            z = builder.emit_output(relax.op.nn.relu(t))
        builder.emit_func_output(z)
    mod = builder.get()
    both = Composite("both", lambda x, w: op.relu(op.conv2d(x, w)))
    parted = selfbyoc.partition_for_tefuse(mod, composites=[both])
    assert selfbyoc.report(parted).counts == {}
    (record,) = selfbyoc.explain(mod, composites=[both]).why_not("relu")
    assert "found op layout_transform" in record.reason
    conv, relu = lambda x, w: op.conv2d(x, w), lambda x: op.relu(x)
    single = [Composite("conv", conv), Composite("relu", relu)]
    parted = selfbyoc.partition_for_tefuse(mod, composites=single)
    assert selfbyoc.report(parted).counts == {"conv": 1, "relu": 1}
    rng = np.random.default_rng(0)
    data = [rng.standard_normal(s).astype("float32") for s in ((1, 4, 8, 8), (8, 4, 3, 3))]
    (found,) = selfbyoc.build(parted)(*data)
    assert first_wrong(found, run(mod, data), "float32", 36) is None
    infos = [op_info(f)[0] for f in functions(AttachOpInfo()(mod)).values()]
    assert {i.kind for i in infos} == {"conv2d", "layout_transform", "relu"}


TARGET = {"kind": "llvm", "num-cores": 2}


def recorded(func, change):
    """A database with one record for a function: what tuning leaves."""
    target = make_target(TARGET)
    database = ms.database.MemoryDatabase()
    mod = ms.tune_context._normalize_mod(func)
    sch = Schedule(mod)
    change(sch)
    workload = database.commit_workload(mod)
    args = ms.arg_info.ArgInfo.from_prim_func(mod["main"])
    database.commit_tuning_record(
        ms.database.TuningRecord(sch.trace, workload, [1e-6], target, args)
    )
    return target, database


def tuned(sch):
    conv, relu = get_block(sch, "conv2d_nchw"), get_block(sch, "compute")
    sch.transform_layout(conv, ("read", 1), lambda o, i, h, w: (o // 4, i, h, w, o % 4))
    sch.compute_inline(get_block(sch, "pad_temp"))
    sch.transform_layout(conv, ("write", 0), lambda n, c, h, w: (n, h, w, c))
    sch.reverse_compute_at(relu, sch.get_loops(conv)[2])
    sch.decompose_reduction(conv, sch.get_loops(conv)[4])
    sch.vectorize(sch.get_loops(relu)[-1])


def test_a_database_keeps_it():
    """B22: TVM's own pass applies a record; info and labels are those of the tuned function."""
    mod = fused()
    (name,) = [n for n, f in functions(mod).items() if kinds(f) == ["conv2d", "relu"]]
    target, database = recorded(mod[name], tuned)
    with target, database:
        applied = relax.transform.MetaScheduleApplyDatabase()(mod)
    func = applied[name]
    assert not structural_equal(func.body, mod[name].body)
    conv, relu = op_info(func)
    assert conv.attrs["kernel_layout"] == "OIHW4o"
    assert conv.attrs["out_layout"] == "NHWC"
    assert conv.attrs["data_layout"] == "NCHW"
    assert params(func)[1].shape[-1] == 4
    assert set(conv.blocks) == {"conv2d_nchw_init", "conv2d_nchw_update"}
    assert relu.inputs[0].layout is UNKNOWN  # it turns NHWC into NCHW, which no relu does
    others = [n for n in functions(mod) if n != name]
    assert all(op_info(applied[n]) == op_info(mod[n]) for n in others)


def test_a_record_without_layouts_changes_only_blocks():
    def change(sch):
        conv = get_block(sch, "conv2d_nchw")
        sch.compute_inline(get_block(sch, "pad_temp"))
        sch.cache_write(conv, 0, "global")
        sch.decompose_reduction(conv, sch.get_loops(conv)[4])

    mod = fused()
    (name,) = [n for n, f in functions(mod).items() if kinds(f) == ["conv2d", "relu"]]
    target, database = recorded(mod[name], change)
    with target, database:
        applied = relax.transform.MetaScheduleApplyDatabase()(mod)
    data = arrays()
    assert first_wrong(run(applied, data), run(mod, data), "float32", 72) is None
    for found, before in zip(op_info(applied[name]), op_info(mod[name]), strict=True):
        assert (found.attrs, found.inputs, found.outputs) == (
            before.attrs, before.inputs, before.outputs,
        )  # fmt: skip


@pytest.mark.parametrize("attached", [True, False])
def test_records_are_found_by_functions_with_the_same_info(attached):
    """A database made without op info does not know the functions that carry it."""
    plain = tvm.transform.Sequential(
        [relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern(),
         relax.transform.FuseOps(), relax.transform.FuseTIR()]
    )(model())  # fmt: skip
    mod = fused() if attached else plain
    (func,) = [
        f
        for f in functions(mod).values()
        if [b.name for b in accesses_of(f).blocks] == ["pad_temp", "conv2d_nchw", "compute"]
    ]
    target, database = recorded(func, tuned)
    (other,) = [f for f in functions(fused()).values() if kinds(f) == ["conv2d", "relu"]]
    found = database.query_tuning_record(ms.tune_context._normalize_mod(other), target, "main")
    assert (found is not None) == attached


OF_SEVERAL = {"hard_swish"}  # ops of TVM's


@pytest.mark.parametrize("kind", sorted(set(written()) - MISSING - OF_SEVERAL))
def test_every_op_of_the_vocabulary(kind):
    """Its info says its tensors and owns all its blocks, wherever TVM legalises it."""
    mod = AttachOpInfo()(vocabulary_model(kind))
    for func in functions(mod).values():
        (info,) = op_info(func)
        assert info.blocks == tuple(b.name for b in accesses_of(func).blocks)
        shapes = [tuple(int(e) for e in p.shape) for p in params(func)]
        assert [t.shape for t in (*info.inputs, *info.outputs)] == shapes
        assert is_known(info)
