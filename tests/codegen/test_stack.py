"""Stacking: one multi-stage PrimFunc, the blocks of each op known, and what a schedule is given."""

from dataclasses import replace

import numpy as np
import pytest
from harness import assert_close, run_case

import selfbyoc
from selfbyoc import Case, Composite, op, op_info
from selfbyoc.codegen.apply import apply_schedule
from selfbyoc.codegen.external import External, external
from selfbyoc.codegen.info.op_info import seal_of
from selfbyoc.codegen.info.ops import Ops
from selfbyoc.codegen.schedule import schedule_external
from selfbyoc.codegen.stack import stack
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.language.match.match import Match
from selfbyoc.partition.select import select
from selfbyoc.schedules.default import schedule as default_schedule
from selfbyoc.tvm import GENERATION, Schedule, child_blocks, get_block, make_target, te, tvm


def two_convs(x, w, v):
    return op.relu(op.conv2d(op.relu(op.conv2d(x, w)), v))


def stacked(composite, program, **shapes):
    """The stacked function of a program that is exactly one match."""
    args = {n: (s, "float32") for n, s in shapes.items()}
    graph = ir.read(emit(program, args)["main"])
    (match,), _ = select(graph, [composite])
    assert isinstance(match, Match)
    return stack(graph, match)


def block_names(func):
    sch = Schedule(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}))
    return [str(sch.get(b).name_hint) for b in child_blocks(sch)]


RFC = {"x": (1, 3, 224, 224), "w": (32, 3, 3, 3), "v": (32, 32, 3, 3)}


def rfc(x, w, v):
    """The program of the RFC: conv2d-relu-conv2d-relu, 3->32->32, padding 1 (wish C2)."""
    return op.relu(op.conv2d(op.relu(op.conv2d(x, w, padding=1)), v, padding=1))


def test_two_heavy_ops_in_one_function():
    found = stacked(Composite("chain", two_convs), rfc, **RFC)
    assert block_names(found.func) == [
        "conv2d_pad", "conv2d", "relu", "conv2d_1_pad", "conv2d_1", "relu_1",
    ]  # fmt: skip
    assert len(found.func.params) == 4


def test_the_rfcs_program_builds_and_is_right():
    """Plain relay.build refuses it (whole/relay/test_build_and_run.py); here it has no schedule of
    its own.
    """
    run = run_case(Composite("chain", two_convs), Case(rfc, constants=["w", "v"], **RFC))
    assert run.counts == {"chain": 1}
    assert_close(run)


def test_every_block_belongs_to_its_op():
    def program(x, w, b, g):
        y = op.softmax(op.bias_add(op.dense(x, w), b))
        return op.layer_norm(op.dense(y, w), g, g)

    def pattern(x, w, b, gamma, beta):
        y = op.softmax(op.bias_add(op.dense(x, w), b))
        return op.layer_norm(op.dense(y, w), gamma, beta)

    shapes = {"x": (3, 8), "w": (8, 8), "b": (8,), "g": (8,)}
    found = stacked(Composite("chain", pattern), program, **shapes)
    names = block_names(found.func)
    owned = {op.name: op.blocks for op in found.ops}
    assert [b for blocks in owned.values() for b in blocks] == names
    assert all(block.startswith(name) for name, blocks in owned.items() for block in blocks)
    assert len(owned["softmax"]) == 4


def test_equal_names_of_a_users_stages_are_told_apart():
    """create_prim_func renames the second `y` to `y_1`."""

    def doubled(ins, call):
        y = te.compute(ins[0].shape, lambda *i: ins[0](*i) + ins[0](*i), name="y")
        return te.compute(y.shape, lambda *i: y(*i) - ins[0](*i), name="y")

    composite = Composite(
        "two", lambda x: op.tanh(op.abs(x)), compute={"abs": doubled, "tanh": doubled}
    )
    found = stacked(composite, lambda x: op.tanh(op.abs(x)), x=(3, 4))
    assert [o.blocks for o in found.ops] == [("y", "y_1"), ("y_2", "y_3")]
    assert block_names(found.func) == ["y", "y_1", "y_2", "y_3"]


def test_a_schedule_sees_the_ops():
    seen = {}

    def schedule(sch, ops, target):
        seen["names"] = [view.name for view in ops]
        seen["strides"] = [view.attrs["strides"] for view in ops.of("conv2d")]
        seen["padding"] = ops.conv2d.attrs["padding"]
        seen["block"] = str(sch.get(ops.conv2d_1.block).name_hint)
        seen["blocks"] = [str(sch.get(b).name_hint) for b in ops.conv2d_1.blocks]
        seen["shapes"] = (tuple(ops.conv2d_1.inputs[0]), tuple(ops.relu_1.outputs[0]))
        seen["target"] = str(target.kind)
        assert "dense" not in ops

    def program(x, w, v):
        return op.relu(op.conv2d(op.relu(op.conv2d(x, w, padding=(1, 0))), v, strides=2))

    shapes = {
        "x": ((1, 4, 9, 9), "float32"),
        "w": ((8, 4, 3, 3), "float32"),
        "v": ((8, 8, 3, 3), "float32"),
    }
    composite = Composite("chain", two_convs, schedule=schedule)
    selfbyoc.build(emit(program, shapes), "llvm", composites=[composite])
    assert seen == {
        "names": ["conv2d", "relu", "conv2d_1", "relu_1"],
        "strides": [(1, 1), (2, 2)],
        "padding": (1, 0, 1, 0),
        "block": "conv2d_1",
        "blocks": ["conv2d_1_pad", "conv2d_1"],
        "shapes": (((1, 8, 9, 7), "float32"), ((1, 8, 4, 3), "float32")),
        "target": "llvm",
    }


def test_a_schedule_for_one_target_kind():
    """Other kinds get the default schedule."""
    called = []
    composite = Composite(
        "c", lambda x: op.relu(op.tanh(x)), schedule={"c": lambda *a: called.append(a[2])}
    )
    mod = emit(composite.pattern, {"x": ((4,), "float32")})
    selfbyoc.build(mod, "llvm", composites=[composite])
    assert called == []
    selfbyoc.build(mod, "c", composites=[composite])
    assert {str(target.kind) for target in called} == {"c"}


def external_of(composite, program, **shapes) -> External:
    from selfbyoc.codegen.external import read_attrs
    from selfbyoc.codegen.hook import hook
    from selfbyoc.partition.generation import ir as partition

    mod = emit(program, {n: (s, "float32") for n, s in shapes.items()})
    parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
    (func,) = partition.external_functions(parted).values()
    if GENERATION == "relay":
        func = hook.typed(func)
    return external("symbol", hook.composites(func), hook.read(func), read_attrs(func.attrs))


def test_op_info_survives_scheduling():
    composite = Composite("chain", two_convs)
    source = external_of(composite, rfc, **RFC)
    unscheduled, scheduled = schedule_external(source, make_target("llvm"))
    assert scheduled.level.name == "default schedule"
    infos = op_info(scheduled.mod["main"])
    assert [info.kind for info in infos] == ["conv2d", "relu", "conv2d", "relu"]
    assert infos[0].attrs["padding"] == (1, 1, 1, 1)
    assert infos[2].blocks == ("conv2d_1_pad", "conv2d_1_init", "conv2d_1_update")
    assert infos[1].within == "conv2d_1"  # it was inlined
    assert [bare(i) for i in infos] == [bare(i) for i in unscheduled.ops]


def bare(info):
    """What scheduling cannot change."""
    return replace(info, blocks=(), within="")


def test_scheduling_leaves_the_stacked_function_as_it_was():
    """TVM schedules in place what only the schedule holds, loops shared with others included."""
    composite = Composite("chain", two_convs)
    source = external_of(composite, rfc, **RFC)
    unscheduled, _ = schedule_external(source, make_target("llvm"))
    names = [name for info in unscheduled.ops for name in info.blocks]
    assert block_names(unscheduled.func) == names


def test_a_function_that_is_not_ours_has_no_op_info():
    x = te.placeholder((4,), name="x")
    assert op_info(te.create_prim_func([x, te.compute((4,), lambda i: x[i], name="y")])) == ()


@pytest.mark.parametrize("value", [0.25, -3.0])
def test_a_known_scalar_is_built_in(value):
    """The constant is an argument of the function, but its value is known to the kernel's
    compute.
    """
    composite = Composite("scaled", lambda x, s: op.relu(op.multiply(x, s)))
    source = external_of(composite, lambda x: op.relu(op.multiply(x, value)), x=(4, 5))
    known = [v.scalar for v in source.graph.inputs if v.scalar is not None]
    assert known == [value]
    x = np.linspace(-1, 1, 20, dtype="float32").reshape(4, 5)
    mod = emit(lambda x: op.relu(op.multiply(x, value)), {"x": ((4, 5), "float32")})
    np.testing.assert_allclose(
        selfbyoc.build(mod, composites=[composite])(x)[0], np.maximum(x * value, 0)
    )


def test_a_schedule_is_taken_as_it_is():
    """The scheduled function is what the schedule makes of the stacked one when called by hand."""

    def schedule(sch, ops, target):
        for block in (ops.conv2d.block, ops.relu_1.block):
            loops = sch.get_loops(block)
            outer, _ = sch.split(loops[1], [None, 4])
            sch.parallel(outer)

    composite = Composite("by_hand", two_convs, schedule)
    found = stacked(composite, rfc, **RFC)
    kept = tvm.IRModule({"main": found.func.with_attr("global_symbol", "main")})
    sch = Schedule(kept)
    schedule(sch, Ops(found.ops, lambda name: get_block(sch, name)), make_target("llvm"))
    scheduled = apply_schedule(found, make_target("llvm"), default_schedule)
    assert seal_of(scheduled.mod["main"]) == seal_of(sch.mod["main"]) != seal_of(found.func)
