"""Several dataflow blocks: one after another they are one; effects between them are a reason."""

import numpy as np
import pytest
from tvm import relax

import selfbyoc
from selfbyoc import Composite, op

conv_relu = Composite("conv_relu", lambda x, w: op.relu(op.conv2d(x, w)))


def model(between, bias=False):
    """A convolution in one dataflow block, its relu in the next."""
    x = relax.Var("x", relax.TensorType((1, 4, 8, 8), "float32"))
    w = relax.Var("w", relax.TensorType((4, 4, 3, 3), "float32"))
    b = relax.Var("b", relax.TensorType((4,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w, b]):
        with builder.dataflow():
            shaped = builder.emit_output(relax.op.reshape(b, (1, 4, 1, 1)))
            conv = builder.emit_output(relax.op.nn.conv2d(x, w))
        if between:
            builder.emit(relax.op.assert_op(relax.const(True, "bool"), format="never"))
        with builder.dataflow():
            if bias:
                conv = builder.emit(relax.op.add(conv, shaped))
            out = builder.emit_output(relax.op.nn.relu(conv))
        builder.emit_func_output(out)
    return builder.get()


def run(mod, composites):
    rng = np.random.default_rng(0)
    library = selfbyoc.build(mod, composites=composites)
    arrays = [rng.standard_normal(shape, np.float32) for _, shape, _ in library.inputs]
    windows = np.lib.stride_tricks.sliding_window_view(arrays[0][0], (3, 3), axis=(1, 2))
    return library(*arrays)[0], np.einsum("cyxhw,ochw->oyx", windows, arrays[1])[None], arrays[2]


def test_blocks_that_follow_one_another_are_one():
    assert selfbyoc.explain(model(False), composites=[conv_relu]).report.counts == {"conv_relu": 1}
    found, conv, _ = run(model(False), [conv_relu])
    np.testing.assert_allclose(found, np.maximum(conv, 0), atol=1e-4)


def test_an_effect_between_two_blocks_refuses():
    (record,) = selfbyoc.explain(model(True), composites=[conv_relu]).records
    assert (record.status, record.cause, record.where) == ("refused", "dataflow blocks", "relu")
    assert record.reason.startswith("conv2d and relu are in different dataflow blocks")
    parted = selfbyoc.partition_for_tefuse(model(True), composites=[conv_relu])
    assert selfbyoc.explain(parted).records == (record,)
    found, conv, _ = run(model(True), [conv_relu])
    np.testing.assert_allclose(found, np.maximum(conv, 0), atol=1e-4)


@pytest.mark.parametrize("between", [False, True])
def test_an_op_that_was_read_away_counts_too(between):
    """The importer's reshape is a block earlier than the bias that it was read as."""
    bias = Composite("bias", lambda x, w, b: op.relu(op.bias_add(op.conv2d(x, w), b)))
    (record,) = selfbyoc.explain(model(between, bias=True), composites=[bias]).records
    assert record.status == ("refused" if between else "matched")
    found, conv, b = run(model(between, bias=True), [bias])
    np.testing.assert_allclose(found, np.maximum(conv + b[:, None, None], 0), atol=1e-4)


def test_an_unknown_number_of_axes_is_no_scalar():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(ndim=-1, dtype="float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
    (record,) = selfbyoc.explain(
        builder.get(), composites=[Composite("r", lambda x: op.relu(x))]
    ).records
    assert (record.status, record.cause) == ("refused", "unknown shape")


def test_a_parameter_that_main_has_not():
    from selfbyoc.errors import InputError

    with pytest.raises(InputError, match=r"no parameters \['q'\]; it has \['x', 'w', 'b'\]"):
        selfbyoc.partition_for_tefuse(model(False), {"q": np.zeros(3, "float32")})
