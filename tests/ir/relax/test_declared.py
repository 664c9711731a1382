"""A model's own PrimFunc, declared to be an op."""

import numpy as np
import pytest
from tvm import relax

import selfbyoc
from selfbyoc import Composite, declare, op
from selfbyoc.errors import OpError
from selfbyoc.ops.vocabulary import KINDS
from selfbyoc.tvm import te, tir, tvm

pytestmark = pytest.mark.usefixtures("vocabulary_as_before")


def halved_model(shape=(5, 7)):
    """relu(halve(x)): `halve` is a PrimFunc that the model brings."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            half = builder.emit_te(
                lambda a: te.compute(a.shape, lambda *i: a(*i) * 0.5, name="half"),
                x,
                primfunc_name_hint="halve",
            )
            result = builder.emit_output(relax.op.nn.relu(half))
        builder.emit_func_output(result)
    return builder.get()


def test_it_is_read_as_the_op():
    own = declare("half", compute=lambda x: x * 0.5, numpy=lambda x: x * 0.5, primfunc="halve")
    composite = Composite("half_relu", lambda x: op.relu(own(x)))
    parted = selfbyoc.partition_for_tefuse(halved_model(), composites=[composite])
    assert selfbyoc.report(parted).counts == {"half_relu": 1}
    x = np.random.default_rng(0).standard_normal((5, 7)).astype("float32")
    (found,) = selfbyoc.build(parted, "llvm")(x)
    np.testing.assert_array_equal(found, np.maximum(x * np.float32(0.5), 0))


def test_it_runs_where_no_composite_takes_it():
    declare("half", compute=lambda x: x * 0.5, numpy=lambda x: x * 0.5, primfunc="halve")
    x = np.random.default_rng(1).standard_normal((5, 7)).astype("float32")
    (found,) = selfbyoc.build(halved_model(), "llvm")(x)
    np.testing.assert_array_equal(found, np.maximum(x * np.float32(0.5), 0))


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"inputs": 2, "compute": lambda x, y: x * y}, "takes 1 tensors; .* inputs=2"),
        ({"dtype": lambda x: "float16"}, "returns .*float32.* declared .*float16"),
    ],
)
def test_a_declaration_that_does_not_fit_it(told, says):
    usual = {"compute": lambda x: x * 0.5, "primfunc": "halve"}
    declare("half", **{**usual, "numpy": told.get("compute", usual["compute"]), **told})
    with pytest.raises(OpError, match=says):
        selfbyoc.partition_for_tefuse(halved_model())


def open_length(own):
    """The op of a float32[n, 3], built by TVM alone."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([tir.Var("n", "int64"), 3], "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            call = relax.Call(tvm.ir.Op.get(f"relax.selfbyoc.{own}"), [x, x][: KINDS[own].inputs])
            result = builder.emit_output(call)
        builder.emit_func_output(result)
    return relax.VirtualMachine(tvm.compile(builder.get(), "llvm"), tvm.cpu())["main"]


def test_open_sizes_go_through():
    """An elementwise op of one input."""
    declare("shrunk", compute=lambda x: te.max(x - 0.5, 0.0), numpy=lambda x: x.clip(0.5) - 0.5)
    run = open_length("shrunk")
    for length in (1, 7, 64):
        x = np.random.default_rng(length).standard_normal((length, 3)).astype("float32")
        np.testing.assert_array_equal(run(tvm.runtime.tensor(x)).numpy(), x.clip(0.5) - 0.5)


def test_open_sizes_of_several_inputs():
    declare("minus", compute=lambda x, y: x - y, numpy=np.subtract, inputs=2)
    with pytest.raises(Exception, match=r"float32\[.*, 3\].*takes no open sizes"):
        open_length("minus")
