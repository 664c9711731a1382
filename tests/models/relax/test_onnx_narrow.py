"""Casts to floats of 8 bits and from them: all codes, all values between two codes, and beyond."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import selfbyoc

ml_dtypes = pytest.importorskip("ml_dtypes")
KINDS = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0"]
pytestmark = pytest.mark.filterwarnings("ignore::selfbyoc.errors.ModelWarning")


def cast(of, to, shape, **attributes):
    """A model of one Cast."""
    node = helper.make_node("Cast", ["x"], ["y"], to=to, **attributes)
    ends = (helper.make_tensor_value_info(n, k, shape) for n, k in (("x", of), ("y", to)))
    graph = helper.make_graph([node], "g", *([end] for end in ends))
    opsets = [helper.make_opsetid("", 24)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=12)


def numbers(kind):
    """All that the kind has, the middle of each two and what lies beside it, what is too large."""
    codes = np.arange(256, dtype=np.uint8).view(helper.tensor_dtype_to_np_dtype(kind))
    own = codes.astype("float32")
    own = np.unique(own[np.isfinite(own)])
    middle = (own[1:] + own[:-1]) / 2
    near = np.concatenate([np.nextafter(middle, np.float32(s * 1e38)) for s in (-1, 1)])
    large = np.float32([1e30, -1e30, np.inf, -np.inf, np.nan, 0.0, -0.0, own.max() * 1.04])
    return np.concatenate([own, middle, near, large]).astype("float32")


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("name", KINDS)
def test_both_ways(name, saturate):
    kind = getattr(TensorProto, name)
    x = numbers(kind)
    if name == "FLOAT8E8M0":
        x = x[x > 0]  # it has no sign and no zero
    proto = cast(TensorProto.FLOAT, kind, x.shape, saturate=saturate)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x})
    (found,) = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)(x)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.astype("float32"), wanted.astype("float32"))
    back = cast(kind, TensorProto.FLOAT, x.shape)
    (again,) = selfbyoc.build(selfbyoc.from_onnx(back), cache=False)(found)
    np.testing.assert_array_equal(again, wanted.astype("float32"))


def test_the_same_bits():
    node = helper.make_node("BitCast", ["x"], ["y"], to=TensorProto.INT32)
    ends = (("x", TensorProto.FLOAT), ("y", TensorProto.INT32))
    ends = (helper.make_tensor_value_info(n, k, [5]) for n, k in ends)
    graph = helper.make_graph([node], "g", *([end] for end in ends))
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=12)
    x = np.float32([1, -0.0, np.inf, 1e-40, 3])
    (found,) = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)(x)
    np.testing.assert_array_equal(found, x.view(np.int32))
