"""Rows of -inf, of the least number of a dtype: what reductions start with; and floats in C."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto
from onnx_models import FLOAT, INT64, check_by_reference, model, value

import selfbyoc
from selfbyoc.tvm import GENERATION

INF = np.inf
# The last row is no whole vector either.
ROWS = np.random.default_rng(0).standard_normal((5, 19)).astype("float32")
ROWS[[0, 3]] = -INF
ROWS[1, 2:], ROWS[2, 4] = -INF, INF
SIZES = [(5, 19), ("n", 19), ("n", "m")]


def built(proto, **options):
    return selfbyoc.build(selfbyoc.from_onnx(proto), cache=False, **options)


def reduced(op, sizes, opset=17, dtype=FLOAT, **attributes):
    is_place = op.startswith("Arg")
    more = {"axis" if is_place else "axes": 1 if is_place else [1], **attributes}
    out = value("y", INT64 if is_place else dtype, sizes[0], 1)
    return model([(op, ["x"], "y", more)], [value("x", dtype, *sizes)], [out], opset=opset)


def check(proto, x, **options):
    (wanted,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(built(proto, **options)(x)[0], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("op", ["ArgMax", "ReduceLogSumExp", "ReduceMax"])
def test_largest(op, sizes):
    """It was -3.4e38, at place -1."""
    check(reduced(op, sizes), ROWS)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("op", ["ArgMin", "ReduceMin"])
def test_smallest(op, sizes):
    check(reduced(op, sizes), -ROWS)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_the_last_of_them(op):
    x = ROWS if op == "ArgMax" else -ROWS
    check(reduced(op, (5, 19), select_last_index=1), x)


def test_the_least_integer():
    x = np.random.default_rng(0).integers(-128, 128, (5, 19)).astype("int8")
    x[[0, 3]] = -128
    check(reduced("ArgMax", (5, 19), dtype=TensorProto.INT8), x)


@pytest.mark.parametrize("keeps", [0, 1])
def test_logarithms_along_several_axes(keeps):
    node = ("ReduceLogSumExp", ["x"], "y", {"axes": [0, 2], "keepdims": keeps})
    out = value("y", FLOAT, *([1, 2, 1] if keeps else [2]))
    x = np.full((3, 2, 5), -INF, "float32")
    x[1, 1, 2], x[2, 1, 4] = 3, 4
    check(model([node], [value("x", FLOAT, 3, 2, 5)], [out]), x)


@pytest.mark.parametrize("batch", [1, "n"])
@pytest.mark.parametrize("stride", [1, 2])
def test_pools(batch, stride):
    """What lies in the padding is no larger than -inf; in ONNX Runtime it is -3.4e38."""
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [stride, stride]}
    nodes = [("MaxPool", ["x"], "y", attributes)]
    ends = [value("x", FLOAT, batch, 3, 5, 19)], [value("y", FLOAT, batch, 3, "h", "w")]
    x = np.stack([ROWS, np.full_like(ROWS, -INF), ROWS])[None]
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-INF)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    wanted = windows.max((-1, -2))[:, :, ::stride, ::stride]
    np.testing.assert_array_equal(built(model(nodes, *ends))(x)[0], wanted)


def test_of_pytorch():
    torch = pytest.importorskip("torch")

    class Sums(torch.nn.Module):
        def forward(self, x):
            return torch.logsumexp(x, 1), torch.amax(x, 1), torch.argmax(x, 1)

    x = torch.tensor(np.where(ROWS == INF, 3, ROWS))
    given = torch.export.export(Sums().eval(), (x,)) if GENERATION == "relax" else Sums().eval()
    library = selfbyoc.build(selfbyoc.from_torch(given, (x,)), cache=False)
    for found, wanted in zip(library(x.numpy()), Sums()(x), strict=True):
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5)


C = pytest.mark.skipif(GENERATION == "relay", reason="0.17 runs C only once it is exported")


@C
@pytest.mark.filterwarnings("ignore::selfbyoc.errors.FallbackWarning")
@pytest.mark.parametrize("op", ["ArgMax", "LogSoftmax", "ReduceLogSumExp", "ReduceMax"])
def test_in_c(op):
    """Infinities and NaN did not compile."""
    check(softmax(op) if op == "LogSoftmax" else reduced(op, (5, 19)), ROWS, target="c")


def softmax(op="Softmax"):
    return model([(op, ["x"], "y", {})], [value("x", FLOAT, 5, 19)], [value("y", FLOAT, 5, 19)])


@C
def test_no_power_in_c():
    """e^-inf was 3.9e-39, for 12583039 was printed as 1.258304e+07; and rows of -inf had a mean."""
    x = np.where(ROWS == INF, 3, ROWS)
    (found,) = built(softmax(), target="c")(x)
    assert np.isnan(found[[0, 3]]).all()
    assert (found[1, 2:] == 0).all()
    np.testing.assert_allclose(found[[1, 2, 4]].sum(1), 1, rtol=1e-6)


@C
def test_constants_in_c():
    """To the last bit, where 7 digits were printed."""
    numbers = np.random.default_rng(0).standard_normal(40) * 10.0 ** np.arange(-37, 3)
    numbers = [*numbers[:37], 2.0**-149, 16777215, 12583039, 1 / 3, -INF]
    for dtype in ("float32", "float64"):
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        given = np.asarray(numbers, dtype)
        nodes = [("Add", ["x", f"c{n}"], f"y{n}", {}) for n in range(len(given))]
        outs = [value(f"y{n}", kind, 3) for n in range(len(given))]
        constants = {f"c{n}": c for n, c in enumerate(given)}
        proto = model(nodes, [value("x", kind, 3)], outs, **constants)
        for found, wanted in zip(built(proto, target="c")(np.zeros(3, dtype)), given, strict=True):
            np.testing.assert_array_equal(found, np.full(3, wanted, dtype))


def test_a_number_stays_one():
    """What a model itself calls the least number is no start of anything."""
    least = np.finfo("float32").min
    nodes = [("Where", ["c", "x", "least"], "y", {}), ("ReduceMax", ["y"], "z", {"axes": [1]})]
    ends = [value("x", FLOAT, 5, 19), value("c", TensorProto.BOOL, 5, 19)]
    outs = [value("y", FLOAT, 5, 19), value("z", FLOAT, 5, 1)]
    proto = model(nodes, ends, outs, least=least)
    check_by_reference(proto, np.ones((5, 19), "float32"), np.arange(95).reshape(5, 19) > 40)
