"""The user's own te.compute for an NHWC convolution in the place of nn.conv2d."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.errors import ComputeError
from selfbyoc.ir.emit import emit
from selfbyoc.schedules.default import schedule as default_schedule
from selfbyoc.tir import lowering
from selfbyoc.tvm import te, tir

# What the forum's code took for granted is read from the match: strides, padding, layouts.
SHAPES = {"OHWI": (6, 3, 2, 5), "HWIO": (3, 2, 5, 6), "OIHW": (6, 5, 3, 2)}
X = (2, 11, 9, 5)


def my_conv2d(ins, call):
    """Pads a copy, then sums over the window: NHWC with any kernel layout."""
    data, kernel = ins
    top, left, bottom, right = call.attrs["padding"]
    down, along = call.attrs["strides"]
    layout = call.attrs["kernel_layout"]
    size = dict(zip(layout, (int(e) for e in kernel.shape), strict=True))
    n, h, w, c = (int(e) for e in data.shape)

    def padded(b, y, x, i):
        inside = tir.all(y >= top, y < top + h, x >= left, x < left + w)
        return tir.if_then_else(inside, data(b, y - top, x - left, i), tir.const(0, "float32"))

    image = te.compute((n, h + top + bottom, w + left + right, c), padded, name="my_pad")
    ry, rx, rc = (te.reduce_axis((0, size[axis]), name=axis) for axis in "HWI")

    def element(b, y, x, o):
        at = {"O": o, "H": ry, "W": rx, "I": rc}
        weight = kernel(*(at[axis] for axis in layout))
        return te.sum(image(b, y * down + ry, x * along + rx, rc) * weight, axis=[ry, rx, rc])

    return te.compute(call.outputs[0].shape, element, name="my_conv2d")


def by_hand(x, weight, layout, strides, padding):
    """NHWC convolution, window by window."""
    kernel = weight.transpose([layout.index(axis) for axis in "HWIO"]).astype("float64")
    top, left, bottom, right = padding
    image = np.pad(x.astype("float64"), ((0, 0), (top, bottom), (left, right), (0, 0)))
    kh, kw = kernel.shape[:2]
    rows = range(0, image.shape[1] - kh + 1, strides[0])
    columns = range(0, image.shape[2] - kw + 1, strides[1])
    windows = [[image[:, r : r + kh, c : c + kw] for c in columns] for r in rows]
    return np.stack(
        [np.stack([np.einsum("nhwi,hwio->no", w, kernel) for w in row], 1) for row in windows], 1
    )


def model(layout="OHWI", strides=(1, 1), padding=(0, 0, 0, 0), dtype="float32"):
    def program(x, weight):
        attrs = {"data_layout": "NHWC", "kernel_layout": layout}
        return op.relu(op.conv2d(x, weight, strides=strides, padding=padding, **attrs))

    return emit(program, {"x": (X, dtype), "weight": (SHAPES[layout], dtype)})


def composite(compute, **options):
    return Composite(
        "mine",
        lambda x, weight: op.relu(op.conv2d(x, weight, data_layout="NHWC")),
        compute=compute,
        **options,
    )


def arrays(layout):
    rng = np.random.default_rng(7)
    shapes = {"x": X, "weight": SHAPES[layout]}
    return {name: rng.standard_normal(s).astype("float32") for name, s in shapes.items()}


@pytest.mark.parametrize("layout", sorted(SHAPES))
@pytest.mark.parametrize(
    ("strides", "padding"), [((1, 1), (0, 0, 0, 0)), ((2, 1), (1, 0, 2, 1)), ((3, 2), (1, 1, 1, 1))]
)
def test_it_computes_what_conv2d_does(layout, strides, padding):
    seen = []

    def schedule(sch, ops, target):
        seen.append(ops.conv2d.info.blocks)
        default_schedule(sch, ops, target)

    mine = composite({"conv2d": my_conv2d}, schedule=schedule)
    mod, data = model(layout, strides, padding), arrays(layout)
    parted = selfbyoc.partition_for_tefuse(mod, composites=[mine])
    assert selfbyoc.report(parted).counts == {"mine": 1}
    (found,) = selfbyoc.build(parted)(**data)
    wanted = np.maximum(by_hand(**data, layout=layout, strides=strides, padding=padding), 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert [list(blocks) for blocks in seen] == [["my_pad", "my_conv2d"]]


def test_the_result_is_the_users_own():
    """One that differs from conv2d shows that nothing else ran."""

    def plus_one(ins, call):
        y = my_conv2d(ins, call)
        return te.compute(y.shape, lambda *i: y(*i) + tir.const(1, "float32"), name="plus_one")

    data = arrays("HWIO")
    (found,) = selfbyoc.build(model("HWIO"), composites=[composite({"conv2d": plus_one})])(**data)
    wanted = by_hand(**data, layout="HWIO", strides=(1, 1), padding=(0, 0, 0, 0)) + 1
    np.testing.assert_allclose(found, np.maximum(wanted, 0), rtol=1e-5, atol=1e-5)


def test_one_function_for_the_whole_composite():
    """It gets the arguments by name, and the matched ops where it asks for them."""
    seen = []

    def whole(x, weight, *, ops):
        seen.append([view.kind for view in ops])
        y = my_conv2d([x, weight], _Call(ops.conv2d))
        return te.compute(y.shape, lambda *i: tir.Max(y(*i), tir.const(0, "float32")), name="whole")

    data = arrays("OHWI")
    mod = model("OHWI", (2, 2), (0, 1, 1, 0))
    (found,) = selfbyoc.build(mod, composites=[composite(whole)])(**data)
    wanted = by_hand(**data, layout="OHWI", strides=(2, 2), padding=(0, 1, 1, 0))
    np.testing.assert_allclose(found, np.maximum(wanted, 0), rtol=1e-5, atol=1e-5)
    assert seen == [["conv2d", "relu"]] * len(seen)
    assert seen


def test_one_compute_for_any_shape():
    """A14: no shapes written by hand. Two layers of other sizes, strides and padding in one model;
    the second's image and kernel are those of the forum's program, NHWC with OIHW, smaller.
    """
    layers = [((2, 1), (1, 0, 2, 1), (7, 3, 2, 3)), ((1, 1), (0, 0, 0, 0), (16, 7, 3, 3))]

    def program(x, w0, w1):
        for weight, (strides, padding, _) in zip((w0, w1), layers, strict=True):
            attrs = {"data_layout": "NHWC", "kernel_layout": "OIHW"}
            x = op.relu(op.conv2d(x, weight, strides=strides, padding=padding, **attrs))
        return x

    shapes = {"x": (1, 22, 20, 3), "w0": layers[0][2], "w1": layers[1][2]}
    rng = np.random.default_rng(3)
    data = {name: rng.standard_normal(shape).astype("float32") for name, shape in shapes.items()}
    library = selfbyoc.build(emit(program, shapes), composites=[composite({"conv2d": my_conv2d})])
    assert library.report.counts == {"mine": 2}
    wanted = data["x"]
    for name, (strides, padding, _) in zip(("w0", "w1"), layers, strict=True):
        found = by_hand(wanted, data[name], "OIHW", strides, padding)
        wanted = np.maximum(found, 0)
    np.testing.assert_allclose(library(**data)[0], wanted, rtol=1e-4, atol=1e-4)


def test_a_compute_gets_what_conv2d_does_not_know():
    """A53: "variables available at Relay level which are not part of the conv2d argument list":
    tensors and attributes of the other ops, to the one te.compute for all of them.
    """

    def whole(x, weight, scale, *, ops):
        y = my_conv2d([x, weight], _Call(ops.conv2d))
        low, high = (tir.const(ops.clip.attrs[n], "float32") for n in ("a_min", "a_max"))

        def element(b, i, j, o):
            return tir.Min(tir.Max(y(b, i, j, o) * scale(o), low), high)

        return te.compute(y.shape, element, name="whole")

    def program(x, weight, scale):
        attrs = {"data_layout": "NHWC", "kernel_layout": "OHWI"}
        scaled = op.multiply(op.conv2d(x, weight, **attrs), scale)
        return op.clip(scaled, a_min=-0.75, a_max=1.5)

    def pattern(x, weight, scale):
        return op.clip(op.multiply(op.conv2d(x, weight, data_layout="NHWC"), scale))

    data = {**arrays("OHWI"), "scale": np.linspace(0.1, 2, 6, dtype="float32")}
    mod = emit(program, {name: array.shape for name, array in data.items()})
    library = selfbyoc.build(mod, composites=[Composite("mine", pattern, compute=whole)])
    assert library.report.counts == {"mine": 1}
    plain = by_hand(data["x"], data["weight"], "OHWI", (1, 1), (0, 0, 0, 0))
    wanted = np.clip(plain * data["scale"], -0.75, 1.5)
    assert {-0.75, 1.5} <= set(wanted.ravel())
    np.testing.assert_allclose(library(**data)[0], wanted, rtol=1e-5, atol=1e-5)


class _Call:
    """An op's info in the form in which a compute of one op gets it."""

    def __init__(self, view):
        self.attrs = view.attrs
        self.outputs = [type("Value", (), {"shape": view.outputs[0][0]})]


def _cropped(ins, call):
    y = my_conv2d(ins, call)
    n, h, w, c = (int(e) for e in y.shape)
    return te.compute((n, h, w - 1, c), lambda *i: y(*i), name="cropped")


def _doubles(ins, call):
    y = my_conv2d(ins, call)
    return te.compute(y.shape, lambda *i: y(*i).astype("float64"), name="doubles")


@pytest.mark.parametrize("whole", [False, True], ids=["op", "whole"])
@pytest.mark.parametrize(
    ("compute", "found"),
    [
        (_cropped, r"float32\[2, 9, 7, 6\], but type inference expects float32\[2, 9, 8, 6\]"),
        (_doubles, r"float64\[2, 9, 8, 6\], but type inference expects float32\[2, 9, 8, 6\]"),
        (lambda ins, call: [my_conv2d(ins, call)] * 2, "2 outputs, expected 1"),
        (lambda ins, call: [], "0 outputs, expected 1"),
        (lambda ins, call: np.zeros((2, 9, 8, 6), "float32"), "a ndarray"),
        (lambda ins, call: None, "a NoneType"),
    ],
    ids=["shape", "dtype", "two", "none", "ndarray", "nothing"],
)
def test_a_wrong_result_is_an_error_before_anything_is_lowered(monkeypatch, compute, found, whole):
    lowered = []
    monkeypatch.setattr(lowering, "build_module", lambda *args: lowered.append(args))

    def all_of_it(x, weight, *, ops):
        return compute([x, weight], _Call(ops.conv2d))

    mine = composite(all_of_it if whole else {"conv2d": compute})
    where = "its compute" if whole else "conv2d"
    with pytest.raises(ComputeError, match=f"composite mine, {where}: computes .*{found}"):
        selfbyoc.build(model(), composites=[mine])
    assert lowered == []
