"""Bad input: a typed error that names the composite, the argument, what was found and what was
expected.
"""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Case, Composite, op, partition_for_tefuse
from selfbyoc.codegen.hook import hook
from selfbyoc.errors import (
    CompositeError,
    ComputeError,
    InputError,
    LoweringError,
    RegistryError,
    ScheduleError,
    SelfbyocError,
    TargetError,
    one_line,
)
from selfbyoc.ir.emit import emit
from selfbyoc.tvm import GENERATION, te, tvm

ARGS = {"x": ((3, 5), "float32"), "w": ((4, 5), "float32")}


def model():
    return emit(lambda x, w: op.relu(op.dense(x, w)), ARGS)


def dense_relu(**options):
    return Composite("dense_relu", lambda x, w: op.relu(op.dense(x, w)), **options)


@pytest.mark.parametrize("mod", [None, 3, "model.onnx", np.zeros(3)])
def test_not_an_irmodule(mod):
    for function in (partition_for_tefuse, selfbyoc.build):
        with pytest.raises(
            InputError, match=rf"mod: expected a tvm\.IRModule, found {type(mod).__name__}"
        ):
            function(mod)


def test_a_module_without_main():
    with pytest.raises(InputError, match="mod: expected a function `main`, found no functions"):
        partition_for_tefuse(tvm.IRModule())


def test_ir_of_another_kind():
    """A PrimFunc as `main`, as it stands for IR of the other generation."""
    a = te.placeholder((4,), name="a")
    func = te.create_prim_func([a, te.compute((4,), lambda i: a[i], name="b")])
    mod = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    with pytest.raises(
        InputError, match=rf"expected `main` as a {GENERATION.capitalize()} function .*found tvm"
    ):
        partition_for_tefuse(mod)


@pytest.mark.parametrize("target", ["nosuch", {"kind": "nosuch"}, 3.5, {"mcpu": "znver5"}])
def test_unknown_target(target):
    for function in (partition_for_tefuse, selfbyoc.build):
        with pytest.raises(TargetError, match=r"target: .* is not a target of this TVM"):
            function(model(), target=target)


def test_composites_that_are_none():
    with pytest.raises(RegistryError, match="expected a Composite, found str"):
        partition_for_tefuse(model(), composites=["dense"])


def test_duplicate_composites():
    with pytest.raises(RegistryError, match="'dense_relu' is registered twice"):
        partition_for_tefuse(model(), composites=[dense_relu(), dense_relu()])


def test_a_schedule_that_raises():
    def schedule(sch, ops, target):
        raise IndexError("no such loop")

    with pytest.raises(
        ScheduleError, match="composite dense_relu: its schedule raised IndexError: no such loop"
    ):
        selfbyoc.build(model(), composites=[dense_relu(schedule=schedule)])


def test_a_schedule_that_names_an_unknown_op():
    def schedule(sch, ops, target):
        ops.conv2d.block  # noqa: B018 (the access is the test)

    with pytest.raises(
        ScheduleError, match=r"no op 'conv2d' in this function; it has \['dense', 'relu'\]"
    ):
        selfbyoc.build(model(), composites=[dense_relu(schedule=schedule)])


def test_a_schedule_that_makes_illegal_code():
    """What TVM refuses later is the composite's error too."""

    def schedule(sch, ops, target):
        sch.bind(sch.get_loops(ops.relu.block)[0], "threadIdx.x")

    with pytest.raises(
        LoweringError, match="composite dense_relu: TVM could not lower it with its own schedule"
    ):
        selfbyoc.build(model(), target="llvm", composites=[dense_relu(schedule=schedule)])


@pytest.mark.parametrize(
    ("compute", "found"),
    [
        (
            lambda ins, call: te.compute((4, 3), lambda i, j: ins[0][j, 0], name="y"),
            r"float32\[4, 3\]",
        ),
        (
            lambda ins, call: te.compute(
                (3, 4), lambda i, j: ins[0][i, 0].astype("int32"), name="y"
            ),
            r"int32\[3, 4\]",
        ),
        (lambda ins, call: [ins[0], ins[0]], "2 outputs"),
        (lambda ins, call: None, "a NoneType"),
        (lambda ins, call: call, "a OpCall"),
    ],
)
def test_a_compute_with_the_wrong_result(compute, found):
    composite = dense_relu(compute={"dense": compute})
    with pytest.raises(ComputeError, match=f"composite dense_relu, dense: computes {found}"):
        selfbyoc.build(model(), composites=[composite])


def test_a_whole_compute_with_the_wrong_result():
    composite = dense_relu(compute=lambda x, w: te.compute((3, 5), lambda i, j: x[i, j], name="y"))
    with pytest.raises(
        ComputeError,
        match=r"its compute: computes float32\[3, 5\], but type inference expects float32\[3, 4\]",
    ):
        selfbyoc.build(model(), composites=[composite])


@pytest.mark.parametrize("part", ["compute", "whole compute", "pack"])
def test_a_users_function_that_raises(part):
    def broken(*args, **named):
        raise ZeroDivisionError("no tiles")

    options = {
        "compute": {"compute": {"dense": broken}},
        "whole compute": {"compute": lambda x, w: broken()},
        "pack": {"compute": {"dense": lambda ins, call: ins[0]}, "pack": {"w": broken}},
    }[part]
    with pytest.raises(
        ComputeError, match=r"composite dense_relu: its .* raised ZeroDivisionError: no tiles"
    ):
        selfbyoc.build(model(), composites=[dense_relu(**options)])


def test_a_check_that_raises():
    def check(match):
        raise KeyError("tile")

    with pytest.raises(
        CompositeError, match="composite dense_relu: its check raised KeyError: 'tile'"
    ):
        partition_for_tefuse(model(), composites=[dense_relu(check=check)])


def test_a_compute_that_passes_its_input_through():
    """No error: the value is copied."""
    composite = Composite("same", lambda x: op.relu(op.abs(x)), compute=lambda x: x)
    mod = emit(composite.pattern, {"x": ((3, 5), "float32")})
    x = np.ones((3, 5), "float32")
    np.testing.assert_array_equal(selfbyoc.build(mod, composites=[composite])(x)[0], x)


def test_pack_without_a_compute_that_reads_it():
    composite = dense_relu(pack={"w": lambda w: w})
    with pytest.raises(
        ComputeError, match="argument 'w' is packed, but no compute of the composite takes it"
    ):
        selfbyoc.build(model(), composites=[composite])


def test_the_hook_for_a_name_that_is_not_registered():
    """As when a module was partitioned in another process, with composites that this one lacks."""
    parted = partition_for_tefuse(model(), composites=[dense_relu()])
    func = rename(external(parted), "tefuse.somebody_elses")
    with pytest.raises(
        RegistryError, match=r"'tefuse.somebody_elses' is not registered; known: \["
    ):
        hook.codegen(func) if GENERATION == "relay" else hook.codegen([func], None, None)


def external(parted):
    from selfbyoc.partition.generation import ir

    (func,) = ir.external_functions(parted).values()
    return func


def rename(func, name):
    """The external function with another composite inside, and no key of this process."""
    func = func.without_attr("tefuse.composite")
    if GENERATION == "relay":
        from tvm import relay

        call = func.body
        inner = call.op.with_attr("Composite", name)
        return relay.Function(
            func.params, relay.Call(inner, call.args), func.ret_type, None, func.attrs
        )
    return _rename_local(func, name)


def _rename_local(func, name):
    from tvm import relax

    blocks = []
    for block in func.body.blocks:
        bindings = []
        for b in block.bindings:
            value = (
                b.value.with_attr("Composite", name)
                if isinstance(b.value, relax.Function)
                else b.value
            )
            bindings.append(relax.VarBinding(b.var, value))
        blocks.append(relax.BindingBlock(bindings))
    made = relax.Function(func.params, relax.SeqExpr(blocks, func.body.body), func.ret_ty)
    for key, value in func.attrs.items():
        made = made.with_attr(key, value)
    return made


def test_a_target_that_is_not_the_one_built_for():
    parted = partition_for_tefuse(model(), target="llvm -mcpu=haswell", composites=[dense_relu()])
    with pytest.raises(
        TargetError, match=r"was given the target .*haswell.*, but the module is built for"
    ):
        selfbyoc.build(parted, target="llvm -mcpu=skylake-avx512")


def test_wrong_arrays():
    library = selfbyoc.build(model(), composites=[dense_relu()])
    x, w = np.zeros((3, 5), "float32"), np.zeros((4, 5), "float32")
    with pytest.raises(
        InputError, match=r"expected 2 inputs \(x: .*, w: float32\[4, 5\]\), found 1"
    ):
        library(x)
    with pytest.raises(
        InputError, match=r"input 'w': expected float32\[4, 5\], found float32\[5, 4\]"
    ):
        library(x, w.T)
    with pytest.raises(
        InputError, match=r"input 'x': expected float32\[3, 5\], found float64\[3, 5\]"
    ):
        library(x.astype("float64"), w)
    with pytest.raises(InputError, match=r"no input 'y'; expected x, w"):
        library(x, y=w)


def test_every_error_is_ours():
    for error in (
        ComputeError,
        InputError,
        LoweringError,
        RegistryError,
        ScheduleError,
        TargetError,
    ):
        assert issubclass(error, SelfbyocError)


def test_one_line_goes_on_after_a_constant():
    note = "# Metadata omitted. Use show_meta=True in script() method to show it."
    err = ValueError(f'the RHS metadata["ir.GenericConst"][0]\n{note} has shape [64]\nand more')
    assert one_line(err) == 'ValueError: the RHS metadata["ir.GenericConst"][0] has shape [64]'


def test_a_report_of_a_module_that_was_not_partitioned():
    with pytest.raises(InputError, match="was not partitioned"):
        selfbyoc.report(model())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": 5}, "schedule: expected a function, found 5"),
        ({"schedule": {"llvm": 5}}, "schedule for 'llvm': expected a function, found 5"),
        ({"reference": "abc"}, "reference: expected a function, found 'abc'"),
        ({"reference": max}, "has no names of arguments"),
        ({"check": True}, "check: expected a function, found True"),
        ({"compute": {"dense": 3}}, "compute for 'dense': expected a function, found 3"),
        ({"pack": {"w": None}}, "pack for 'w': expected a function, found None"),
        ({"cases": 3}, "cases: expected a list or a tuple of Case, found 3"),
        ({"cases": [3]}, "cases: expected a list or a tuple of Case, found 3"),
    ],
)
def test_what_a_composite_is_made_of(options, message):
    with pytest.raises(CompositeError, match=message):
        dense_relu(**options)


def test_a_pattern_that_is_no_function():
    with pytest.raises(CompositeError, match="pattern: expected a function, found 17"):
        Composite("seventeen", 17)


def test_shapes_of_a_case_that_are_not_by_name():
    with pytest.raises(CompositeError, match=r"shapes by name as in Case\(x=\(3, 5\)\), found"):
        Case({"x": (3, 5)})


def test_a_shape_below_zero():
    with pytest.raises(CompositeError, match="expected a shape or"):
        Case(x=(-1, 5))
