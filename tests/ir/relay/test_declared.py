"""An op that somebody registered in Relay already, declared to be one of the vocabulary."""

import numpy as np
import pytest
from harness import assert_close, run_case
from tvm import relay
from tvm.relay.op import op as registry
from tvm.runtime.vm import VirtualMachine

import selfbyoc
from selfbyoc import Case, Composite, declare, op
from selfbyoc.ops.vocabulary import KINDS
from selfbyoc.tvm import te, tvm

NAME = "mine.scaled"


@pytest.fixture(scope="module", autouse=True)
def _registered():
    registry.register(NAME, "x times a factor")
    mine = tvm.ir.Op.get(NAME)
    mine.set_num_inputs(1)
    mine.add_argument("x", "Tensor", "The input.")
    mine.set_attrs_type_key("DictAttrs")
    mine.add_type_rel("MineScaled", lambda types, attrs: types[0])
    yield
    KINDS.pop("scaled", None)


def test_it_stands_in_a_composite():
    own = declare(
        "scaled",
        compute=lambda x, factor: x * factor,
        numpy=lambda x, factor: x * factor,
        attrs={"factor": 2.0},
        relay=NAME,
    )
    composite = Composite("relu_scaled", lambda x: own(op.relu(x)))
    run = run_case(composite, Case(lambda x: own(op.relu(x), factor=0.5), x=(4, 9)))
    assert run.counts == {"relu_scaled": 1}
    assert NAME in str(run.mod)
    assert_close(run)


def test_one_of_tvms_own_in_a_model_of_somebody_elses():
    """`trunc` is no kind of the vocabulary."""
    x = relay.var("x", shape=(2, 3))
    mod = relay.transform.InferType()(
        tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.trunc(x))))
    )
    own = declare("truncated", compute=te.trunc, numpy=np.trunc, relay="trunc")
    composite = Composite("truncated_relu", lambda x: op.relu(own(x)))
    parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
    assert selfbyoc.report(parted).counts == {"truncated_relu": 1}
    given = np.random.default_rng(0).standard_normal((2, 3)).astype("float32") * 3
    (found,) = selfbyoc.build(parted, "llvm")(given)
    np.testing.assert_array_equal(found, np.maximum(np.trunc(given), 0))
    KINDS.pop("truncated")


def open_length(own):
    """The op of a float32[?, 3], built by TVM alone."""
    x = relay.var("x", shape=(relay.Any(), 3))
    call = relay.Call(tvm.ir.Op.get(f"selfbyoc.{own}"), [x, x][: KINDS[own].inputs])
    mod = tvm.IRModule.from_expr(relay.Function([x], call))
    return VirtualMachine(relay.vm.compile(mod, "llvm"), tvm.cpu()).run


def test_open_sizes_go_through():
    """An elementwise op of one input."""
    declare("shrunk", compute=lambda x: te.max(x - 0.5, 0.0), numpy=lambda x: x.clip(0.5) - 0.5)
    run = open_length("shrunk")
    for length in (1, 7, 64):
        x = np.random.default_rng(length).standard_normal((length, 3)).astype("float32")
        np.testing.assert_array_equal(run(x).numpy(), x.clip(0.5) - 0.5)


def test_open_sizes_of_several_inputs():
    declare("minus", compute=lambda x, y: x - y, numpy=np.subtract, inputs=2)
    with pytest.raises(Exception, match=r"float32\[.*, 3\].*takes no open sizes"):
        open_length("minus")
