"""Modules of TVM's and programs of PyTorch's with ops of no elements, by sizes known when built."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc.errors import InputError, LoweringError
from selfbyoc.tvm import GENERATION, tvm

SHAPE = (3, 0, 5)


def built(op, axis, shape=SHAPE, **more):
    """One op along an axis of x."""
    if GENERATION == "relax":
        from tvm import relax

        builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType(shape, "float32"))
        with builder.function("main", [x]):
            made = getattr(relax.op, op)(x, axis=axis, **more)
            builder.emit_func_output(builder.emit(made))
        return selfbyoc.build(builder.get(), cache=False)
    from tvm import relay

    x = relay.var("x", shape=shape)
    made = getattr(relay, op)(x, axis=axis, **more)
    return selfbyoc.build(tvm.IRModule.from_expr(relay.Function([x], made)), cache=False)


@pytest.mark.parametrize(("op", "wanted"), [("max", -np.inf), ("min", np.inf), ("sum", 0)])
def test_values(op, wanted):
    (found,) = built(op, 1)(np.ones(SHAPE, "float32"))
    np.testing.assert_array_equal(found, np.full((3, 5), wanted))


@pytest.mark.parametrize("op", ["mean", "variance"])
def test_an_error_says_the_size(op):
    """It was TVM's "Divide by zero"."""
    text = r"Divide by zero; (mean|variance) of float32\[3, 0, 5\], which has no elements$"
    with pytest.raises(LoweringError, match=text):
        built(op, 1)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_a_place_of_none(op):
    text = rf"^{op}: axis 1 of its input, float32\[3, 0, 5\], has 0 elements; expected 1 or more$"
    with pytest.raises(InputError, match=text):
        built(op, 1)
    if GENERATION == "relax":  # 0.17 builds no op of no results
        assert built(op, 2)(np.ones(SHAPE, "float32"))[0].shape == (3, 0)


def test_more_than_there_are():
    """The others were as the memory was."""
    text = r"^topk: axis 1 of its input, float32\[3, 2, 5\], has 2 elements; expected 4 or more$"
    with pytest.raises(InputError, match=text):
        built("topk", 1, (3, 2, 5), k=4, ret_type="values")
    x = np.random.default_rng(0).standard_normal((3, 7, 5)).astype("float32")
    (found,) = built("topk", 1, x.shape, k=4, ret_type="values")(x)
    np.testing.assert_array_equal(found, -np.sort(-x, axis=1)[:, :4])


@pytest.mark.skipif(GENERATION == "relay", reason="PyTorch traces none of these")
def test_of_pytorch():
    torch = pytest.importorskip("torch")

    class Nothing(torch.nn.Module):
        def forward(self, x):
            return x.mean(1)

    x = torch.zeros(SHAPE)
    mod = selfbyoc.from_torch(torch.export.export(Nothing(), (x,)), (x,))
    with pytest.raises(LoweringError, match=r"mean of float32\[3, 0, 5\], which has no elements$"):
        selfbyoc.build(mod, cache=False)
