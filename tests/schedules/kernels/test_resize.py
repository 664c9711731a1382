"""Resized images: the pixels and weights of TVM alone, sizes of all kinds, and what is refused."""

import numpy as np
import pytest
from harness import assert_close, cpus, needs, run_case

import selfbyoc
from selfbyoc import Case, Composite, op
from selfbyoc.commands.fuzz.generation import planter
from selfbyoc.ir.emit import emit
from selfbyoc.ops.resampling import MODES, ROUNDINGS, Resampling
from selfbyoc.schedules.composites.resize import resize2d
from selfbyoc.tvm import make_target

HASWELL = "llvm -mcpu=haswell"  # it multiplies and adds at once, as the tables do
# Images and sizes: up and down, whole factors and others, one row or column, a tail
SIZES = [
    ((1, 2, 12, 12), (24, 24)), ((2, 3, 13, 9), (7, 41)), ((1, 1, 1, 1), (3, 5)),
    ((1, 5, 9, 33), (9, 11)), ((1, 2, 7, 40), (1, 1)), ((2, 2, 5, 6), (15, 3)),
]  # fmt: skip


def resized(size, **attrs):
    return lambda x: op.resize2d(x, size=size, **attrs)


def alone(program, x):
    """By TVM alone."""
    mod = emit(program, {"x": x.shape})
    return selfbyoc.build(mod, make_target(HASWELL), composites=[])(x)[0]


def ours(program, x):
    library = selfbyoc.build(emit(program, {"x": x.shape}), make_target(HASWELL))
    assert library.report.counts == {"resize2d": 1}
    return library(x)[0]


def random(shape):
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


@pytest.mark.parametrize(("shape", "size"), SIZES)
@pytest.mark.parametrize("mode", sorted(MODES))
def test_linear_is_numpys(mode, shape, size):
    case = Case(resized(size, coordinate_transformation_mode=mode), x=shape)
    run = run_case(resize2d, case)
    assert run.counts == {"resize2d": 1}
    assert_close(run)


@needs(HASWELL)
@pytest.mark.parametrize("mode", sorted(MODES))
def test_the_places_are_those_of_tvm_alone(mode):
    """A ramp says where each pixel lies, whatever the sizes: but for the rounding of a place, which
    TVM alone does once in a loop's vectors and twice in its tail (0.27, 9 to 39).
    """
    for extent, out in ((7, 20), (20, 7), (12, 96), (29, 29), (640, 224), (224, 640), (9, 39)):
        ramp = np.arange(extent, dtype="float32")
        for x, size in ((ramp, (2, out)), (ramp[:, None], (out, 2))):
            image = x * np.ones((1, 1, 2, 1) if x.ndim == 1 else (1, 1, 1, 2), "float32")
            program = resized(size, coordinate_transformation_mode=mode)
            found, wanted = (f(program, image) for f in (ours, alone))
            assert np.abs(found - wanted).max() <= np.spacing(np.float32(extent - 1))


@needs(HASWELL)
@pytest.mark.parametrize("mode", sorted(MODES))
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_the_nearest_pixel_is_that_of_tvm_alone(mode, rounding):
    attrs = {"coordinate_transformation_mode": mode, "rounding_method": rounding}
    for extents, size in (((20, 10), (40, 9)), ((9, 31), (27, 33)), ((17, 64), (5, 63))):
        axes = [Resampling(*pair, mode, rounding) for pair in zip(extents, size, strict=True)]
        if not all(axis.is_certain for axis in axes):
            continue
        x = np.arange(np.prod(extents), dtype="float32").reshape(1, 1, *extents)
        program = resized(size, method="nearest_neighbor", **attrs)
        np.testing.assert_array_equal(ours(program, x), alone(program, x))


def test_which_pixels_depend_on_how_they_are_computed():
    """Most sizes are the same on all CPUs; the others are left to TVM."""
    pairs = [(a, b) for a in range(1, 40) for b in range(1, 40)]
    for mode, rounding in (("asymmetric", "floor"), ("half_pixel", "round_prefer_floor")):
        found = [Resampling(a, b, mode, rounding) for a, b in pairs]
        assert sum(axis.is_certain for axis in found) > 0.9 * len(found)
    assert not Resampling(2, 41, "half_pixel", "round_prefer_ceil").is_certain


def test_pixels_by_formula():
    """Whole numbers say the same as float32 for most sizes; a table has the others."""
    pairs = [(a, b) for a in range(1, 40) for b in range(1, 40)]
    for mode in MODES:
        found = [Resampling(a, b, mode, "") for a, b in pairs]
        assert sum(axis.formula("linear") is not None for axis in found) > 0.95 * len(found)
    assert Resampling(65, 513, "half_pixel", "").formula("linear") is None
    by_table = Case(resized((7, 513)), x=(1, 1, 9, 65))
    run = run_case(resize2d, by_table)
    assert run.counts == {"resize2d": 1}
    assert_close(run)


@pytest.mark.parametrize("target", cpus("llvm", HASWELL, "llvm -mcpu=skylake-avx512"))
def test_columns_are_shuffled(target):
    """Whole vectors of a row, a tail of one element, columns far apart; what is not unrolled."""
    for size in ((9, 33), (20, 48), (3, 17), (5, 8), (5, 7), (12, 211), (5, 1025)):
        for method in ("linear", "nearest_neighbor"):
            case = Case(resized(size, method=method), x=(1, 2, 12, 25))
            run = run_case(resize2d, case, target=make_target(target))
            assert run.counts == {"resize2d": 1}
            assert_close(run)


@pytest.mark.parametrize("channels", [8, 19])
@pytest.mark.parametrize("method", ["linear", "nearest_neighbor"])
def test_channels_last(channels, method):
    case = Case(resized((7, 21), layout="NHWC", method=method), x=(2, 11, 10, channels))
    run = run_case(resize2d, case)
    assert run.counts == {"resize2d": 1}
    assert_close(run)


@pytest.mark.parametrize("size", [(31, 33), (5, 33)])
def test_elementwise_ops_after_it_join_it(size):
    """As in a pyramid of features, and in a head that ends in probabilities."""

    def program(x, y):
        return op.sigmoid(op.add(op.resize2d(x, size=size), y))

    case = Case(program, x=(1, 5, 13, 17), y=(1, 5, *size))
    run = run_case(resize2d, case)
    assert run.counts == {"resize2d": 1}
    assert selfbyoc.explain(run.mod, composites=[resize2d]) is not None
    assert_close(run)


def refusal(program, x):
    parted = selfbyoc.partition_for_tefuse(emit(program, {"x": x}), composites=[resize2d])
    report = selfbyoc.report(parted)
    assert report.counts == {}
    return str(selfbyoc.explain(emit(program, {"x": x}), composites=[resize2d]))


@pytest.mark.parametrize(
    ("program", "x", "why"),
    [
        (resized((4, 4)), ((1, 2, 8, 8), "float64"), "only float32 is scheduled, found float64"),
        (resized((4, 4), layout="NHWC"), (1, 8, 8, 3), "3 channels, the last axis, fill no vector"),
        (
            resized((9, 41), method="nearest_neighbor", rounding_method="round_prefer_ceil"),
            (1, 2, 3, 2),
            "which column of 2 is nearest to one of 41 depends on how it is computed",
        ),
    ],
)
def test_refusals(program, x, why):
    assert why in refusal(program, x)


@pytest.mark.parametrize(
    ("attrs", "told"),
    [
        ({"method": "cubic"}, "resize2d[cubic_alpha="),
        ({"coordinate_transformation_mode": "tf_crop_and_resize"}, "resize2d[roi="),
    ],
)
def test_what_no_compute_honours_is_another_op(attrs, told):
    mod = planter.planted(emit(resized((4, 4)), {"x": (1, 2, 8, 8)}), "image.resize2d", **attrs)
    everything = [*selfbyoc.BUILTIN, Composite("all_of_it", lambda x: op.resize2d(x))]
    parted = selfbyoc.partition_for_tefuse(mod, composites=everything)
    assert selfbyoc.report(parted).counts == {}
    assert told in str(selfbyoc.explain(mod))


def test_an_op_of_a_users_composite():
    """Stacked with others it has the same tables."""
    both = Composite("both", lambda x: op.resize2d(op.relu(x)))
    case = Case(lambda x: op.resize2d(op.relu(x), size=(5, 9)), x=(1, 3, 7, 4))
    run = run_case(both, case)
    assert run.counts == {"both": 1}
    assert_close(run)


@pytest.mark.parametrize("corners", [False, True])
def test_linear_is_pytorchs(corners):
    torch = pytest.importorskip("torch")
    mode = "align_corners" if corners else "half_pixel"
    for shape, size in SIZES:
        if corners and 1 in size:
            continue
        x = random(shape)
        wanted = torch.nn.functional.interpolate(
            torch.from_numpy(x), size=size, mode="bilinear", align_corners=corners
        )
        found = ours(resized(size, coordinate_transformation_mode=mode), x)
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-5)
