"""Op info of a composite's stacked function through MetaSchedule's database (B22)."""

import importlib

import numpy as np
from layouts import computed, module, stacked

from selfbyoc import UNKNOWN, op, op_info
from selfbyoc.tvm import GENERATION, Schedule, empty, get_block, get_func, make_target, tensor, tvm
from selfbyoc.tvm.build import build_module

ms = importlib.import_module(
    "tvm.s_tir.meta_schedule" if GENERATION == "relax" else "tvm.meta_schedule"
)
TARGET = {"kind": "llvm", "num-cores": 2}
SHAPES = {"x": (1, 4, 8, 8), "w": (8, 4, 3, 3)}


def begin():
    return stacked(lambda x, w: op.relu(op.conv2d(x, w, padding=1)), **SHAPES)


def applied(func, change):
    """One record of our own, and the schedule that the database makes of the function again."""
    database, target = ms.database.MemoryDatabase(), make_target(TARGET)
    mod = module(func)
    sch = Schedule(mod)
    change(sch)
    workload = database.commit_workload(mod)
    args = ms.arg_info.ArgInfo.from_prim_func(func)
    record = ms.database.TuningRecord(sch.trace, workload, [1e-6], target, args)
    database.commit_tuning_record(record)
    found = ms.tir_integration.compile_tir(database, func, target)
    assert found is not None, "the database does not know the function"
    return found.mod["main"]


def blocked(sch):
    conv = get_block(sch, "conv2d")
    sch.transform_layout(conv, ("read", 1), lambda o, i, h, w: (o // 4, i, h, w, o % 4))
    sch.transform_layout(conv, ("write", 0), lambda n, c, h, w: (n, c // 4, h, w, c % 4))
    sch.transform_layout(
        get_block(sch, "relu"), ("write", 0), lambda n, c, h, w: (n, c // 4, h, w, c % 4)
    )
    sch.compute_inline(get_block(sch, "conv2d_pad"))
    sch.reverse_compute_at(get_block(sch, "relu"), sch.get_loops(conv)[3])
    sch.decompose_reduction(conv, sch.get_loops(conv)[4])


def test_a_trace_with_layouts():
    source = begin()
    func = applied(source.func, blocked)
    conv, relu = infos = op_info(func)
    assert conv.attrs["kernel_layout"] == "OIHW4o"
    assert conv.attrs["out_layout"] == "NCHW4c"
    assert relu.inputs[0].shape == relu.outputs[0].shape == (1, 2, 8, 8, 4)
    assert set(conv.blocks) == {"conv2d_init", "conv2d_update"}
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype("float32") for s in SHAPES.values())
    packed = np.ascontiguousarray(w.reshape(2, 4, 4, 3, 3).transpose(0, 2, 3, 4, 1))
    out = empty(relu.outputs[0].shape, "float32")
    built = build_module(tvm.IRModule({"main": func}), make_target(TARGET))
    get_func(built, "main")(tensor(x), tensor(packed), out)
    np.testing.assert_allclose(out.numpy(), computed(func, infos, [x, packed]), 1e-4, 1e-4)


def test_a_trace_without():
    def change(sch):
        conv = get_block(sch, "conv2d")
        sch.cache_write(conv, 0, "global")
        sch.cache_read(conv, 1, "global")
        sch.decompose_reduction(conv, sch.get_loops(conv)[3])

    source = begin()
    found = op_info(applied(source.func, change))
    assert [(i.attrs, i.inputs, i.outputs) for i in found] == [
        (i.attrs, i.inputs, i.outputs) for i in source.ops
    ]
    assert {"conv2d_global", "w_global"} <= set(found[0].blocks)


def test_a_trace_that_leaves_nothing_to_read():
    """Axes renamed: the function does not tell; with the recorded one, the trace does."""

    def change(sch):
        conv = get_block(sch, "conv2d")
        sch.blockize(sch.get_loops(conv)[4])

    source = begin()
    found = op_info(applied(source.func, change))
    assert found[0].attrs["kernel_layout"] is UNKNOWN
    assert found[0].attrs["data_layout"] == "NCHW"
    mod = module(source.func)
    sch = Schedule(mod)
    change(sch)
    assert op_info(sch, source.func)[0].attrs["kernel_layout"] == "OIHW"
