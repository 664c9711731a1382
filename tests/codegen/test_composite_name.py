"""A PrimFunc says which composite it is of (A18): stacked, scheduled, as the hook compiles it, and
after tuning's records.
"""

import pytest

import selfbyoc
from selfbyoc import Composite, melting, op, op_info
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen import external, lower
from selfbyoc.ir.emit import emit
from selfbyoc.tvm import te

ARGS = {"x": ((5, 33), "float32"), "w": ((19, 33), "float32")}
PRINTED = '"Composite": "tefuse.named"'


def program(x, w):
    return op.relu(op.dense(x, w))


def by_hand(sch, ops, target):
    sch.parallel(sch.get_loops(ops.relu.block)[0])


NAMED = Composite("named", program, by_hand)


def parted():
    return selfbyoc.partition_for_tefuse(emit(program, ARGS), composites=[NAMED])


@pytest.fixture
def compiled(monkeypatch):
    """The PrimFuncs that the hook hands to TVM's build."""
    found = []
    own = lower.machine_code

    def noted(func, *how, **options):
        found.extend(func.values())
        return own(func, *how, **options)

    monkeypatch.setattr(lower, "machine_code", noted)
    return found


def test_stacked_and_scheduled_functions_print_it():
    stacked, scheduled = kernels(parted())[0].schedule(selfbyoc.host_target())
    for func in (stacked.func, scheduled.mod["main"]):
        assert PRINTED in func.script()
        assert func.attrs["Composite"] == "tefuse.named"
        assert {info.composite for info in op_info(func)} == {"named"}


def test_the_hook_compiles_a_function_that_says_it(compiled):
    selfbyoc.build(parted())
    (func,) = compiled
    assert PRINTED in func.script()
    assert [(info.kind, info.composite) for info in op_info(func)] == [
        ("dense", "named"), ("relu", "named"),
    ]  # fmt: skip


def test_melting_names_it_of_the_function_alone():
    _, scheduled = kernels(parted())[0].schedule(selfbyoc.host_target())
    (kernel,) = melting(scheduled.mod["main"]).kernels
    assert kernel.composite == "named"
    assert str(melting(scheduled.mod["main"])).startswith("named")


def test_a_schedule_is_given_it():
    seen = []

    def schedule(sch, ops, target):
        seen.extend(info.composite for info in op_info(sch))

    asking = Composite("asking", program, schedule)
    mod = selfbyoc.partition_for_tefuse(emit(program, ARGS), composites=[asking])
    kernels(mod)[0].schedule(selfbyoc.host_target())
    assert seen == ["asking", "asking"]


def test_a_function_of_no_composite_says_none():
    x = te.placeholder((4,), name="x")
    func = te.create_prim_func([x, te.compute((4,), lambda i: x[i], name="y")])
    assert "Composite" not in func.script()
    assert melting(func).kernels[0].composite == ""


def test_what_another_pass_merged_is_named_after_all_of_them():
    merged = external._merged(("tefuse.conv_relu", "tefuse.fc", "tefuse.fc"))
    assert merged.full_name == "tefuse.conv_relu_and_fc"
