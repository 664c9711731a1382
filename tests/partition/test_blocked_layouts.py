"""Blocked layouts as values, and programs in them folded back: both against NumPy."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.ops.layout_text import parts_of
from selfbyoc.partition.generation import ir as partitioner
from selfbyoc.partition.layouts import blocks
from selfbyoc.partition.layouts.folded_back import folded_back
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION, tvm

LONGEST = 16 * 9 + 24 * 9  # sums of two convolutions
NCHW16C = ((0, 0), (1, 0), (2, 0), (3, 0), (1, 16))


@pytest.mark.parametrize(
    ("layout", "letters", "wanted"),
    [
        ("NCHW16c", "NCHW", NCHW16C),
        ("NHWC", "NCHW", ((0, 0), (2, 0), (3, 0), (1, 0))),
        ("OIHW4i16o4i", "OIHW", ((0, 0), (1, 0), (2, 0), (3, 0), (1, 4), (0, 16), (1, 4))),
        ("16cNCHW", "NCHW", None),  # a block before what it is a block of
        ("NCHWc", "NCHW", None),
        ("NCW", "NCHW", None),
        ("NCHW16d", "NCHW", None),
        ("NNHW", "NCHW", None),
    ],
)
def test_what_a_layout_says(layout, letters, wanted):
    parts = parts_of(layout, letters)
    assert parts == wanted
    if wanted is not None and letters == "NCHW":
        assert parts_of(blocks.text_of(parts), "ABCD") == parts


def packed(array, parts):
    """A plain array in parts, by NumPy."""
    shape, axes = [], []
    for axis, extent in enumerate(array.shape):
        sizes = [size for a, size in parts if a == axis and size]
        axes += [(axis, size) for size in (0, *sizes)]
        shape += [extent // int(np.prod(sizes)), *sizes]
    order, free = [], list(range(len(axes)))
    for part in parts:
        at = next(n for n in free if axes[n] == part)
        free.remove(at)
        order.append(at)
    return array.reshape(shape).transpose(order)


@pytest.mark.parametrize("layout", ["OIHW", "HWIO", "OIHW16i8o", "OHWI8o", "OIHW4i8o4i"])
def test_a_constant_is_unpacked(layout):
    parts = parts_of(layout, "OIHW")
    array = np.random.default_rng(0).standard_normal((24, 32, 3, 1)).astype("float32")
    np.testing.assert_array_equal(blocks.unblocked(packed(array, parts), parts), array)


def test_a_constant_that_repeats_itself():
    """Blocks of one extent: as many as the tensor beside it has, where that is known."""
    row = np.arange(16, dtype="float32").reshape(1, 1, 1, 1, 16)
    whole = blocks.unblocked(row, NCHW16C, [2, 48, 5, 7])
    np.testing.assert_array_equal(whole, np.tile(np.arange(16), 3).reshape(1, 48, 1, 1))
    assert blocks.unblocked(row, NCHW16C, [2, None, 5, 7]) is None
    assert blocks.unblocked(row[0], NCHW16C) is None
    ones = blocks.unblocked(np.ones((1, 3, 1, 1, 1), "float32"), NCHW16C)
    assert ones.shape == (1, 48, 1, 1)


def test_blocks_that_are_not_whole():
    assert blocks.divides(NCHW16C, [1, 32, 5, 7])
    assert blocks.divides(NCHW16C, [None, 32, None, 7])
    assert not blocks.divides(NCHW16C, [1, 33, 5, 7])
    assert not blocks.divides(NCHW16C, [1, None, 5, 7])
    assert not blocks.divides(NCHW16C, [32, 5, 7])


@pytest.mark.parametrize(
    ("source", "target", "seen", "wanted"),
    [
        ("NCHW16c", "NCHW", "NCHW16c", "NCHW"),
        ("NCHW16c", "NHWC", "NCHW16c", "NHWC"),
        ("NCHW8c", "NCHW", "NCHW16c", None),
        ("NCHW16c", "NCHW16c", "NCHW16c", "NCHW16c"),
        ("NCHW16c", "NCHW", "NCHW16h", None),
    ],
)
def test_moved_once_more(source, target, seen, wanted):
    each = [parts_of(text, "NCHW") for text in (source, target, seen)]
    found = blocks.through(*each)
    assert found == (None if wanted is None else parts_of(wanted, "NCHW"))


def test_the_last_parts():
    assert blocks.behind(NCHW16C, 5) == NCHW16C
    assert blocks.behind(NCHW16C, 4) == ((0, 0), (1, 0), (2, 0), (0, 16))
    assert blocks.behind(NCHW16C, 3) is None  # of channels the blocks alone
    assert blocks.joined([1, 2, 5, None, 16], NCHW16C) == [1, 32, 5, None]


def converted(mod, size=8):
    """By TVM's ConvertLayout, to blocks of channels."""
    data, weight = f"NCHW{size}c", f"OIHW{size}i{size}o"
    if GENERATION == "relay":
        passes = tvm.relay.transform
        with tvm.transform.PassContext(opt_level=3):
            layouts = {"nn.conv2d": [data, weight], "nn.max_pool2d": [data]}
            return passes.InferType()(passes.ConvertLayout(layouts)(passes.InferType()(mod)))
    passes = tvm.relax.transform
    done = passes.ConvertLayout({"relax.nn.conv2d": [data, weight]})(mod)
    return passes.DeadCodeElimination()(done)


def blocked_ops(mod):
    """How many ops of a module have more axes than their images."""
    graph = ir.read_as_written(mod["main"]).graph
    return sum(any(v.ndim > 4 for v in call.outputs) for call in graph.ops)


def folded(program, shapes, *, size=8):
    """-> the module after the pass, and folded back. Relax cannot build blocks: what it was before
    the pass is compared.
    """
    rng = np.random.default_rng(4)
    weights = {
        n: (0.1 * rng.standard_normal(s)).astype("float32") for n, s in shapes.items() if n != "x"
    }
    plain = emit(program, shapes, weights)
    mod = converted(plain, size)
    assert blocked_ops(mod)
    done, how = folded_back(partitioner.prepare(mod, None))
    x = rng.standard_normal(shapes["x"]).astype("float32")
    wanted, found = selfbyoc.build(plain, composites=[])(x), selfbyoc.build(done)(x)
    for one, other in zip(wanted, found, strict=True):
        assert first_wrong(other, one, "float32", LONGEST) is None
    return mod, done, how


SHAPES = {"x": (2, 16, 7, 9), "w": (24, 16, 3, 3), "b": (1, 24, 1, 1)}


def conv(x, w, b, **attrs):
    return op.add(op.conv2d(x, w, padding=1, **attrs), b)


@pytest.mark.parametrize(
    "behind",
    [
        lambda y: op.relu(y),
        lambda y: op.multiply(op.sigmoid(y), y),
        lambda y: op.max_pool2d(y, pool_size=3, strides=2, padding=1),
        lambda y: op.mean(y, axis=(2, 3)),
        lambda y: op.max(y, axis=3, keepdims=True),
        lambda y: op.concatenate([y, op.relu(y)], axis=1),
        lambda y: op.concatenate([y, op.relu(y)], axis=2),
        lambda y: op.softmax(y, axis=3),
        lambda y: op.softmax(y, axis=1),
        lambda y: op.reshape(y, shape=(2, -1)),
        lambda y: op.transpose(op.clip(y, a_min=-1.0, a_max=2.0), axes=(0, 2, 3, 1)),
        lambda y: (op.relu(y), op.tanh(y)),
        lambda y: op.add(y, op.mean(y, axis=(2, 3), keepdims=True)),
    ],
)
def test_folded_back_is_the_same(behind):
    """Whatever comes behind a convolution: it may read blocks or not."""
    _, done, how = folded(lambda x, w, b: behind(conv(x, w, b)), SHAPES)
    assert blocked_ops(done) == 0
    assert how.layouts >= {"NCHW8c"}


def test_one_channel_a_block_and_all_in_one():
    for size in (1, 16):  # of 1 Relax's index map does not say which axis it is of
        shapes = {**SHAPES, "w": (16, 16, 1, 1), "b": (1, 16, 1, 1)}
        _, done, _ = folded(lambda x, w, b: op.relu(op.add(op.conv2d(x, w), b)), shapes, size=size)
        assert blocked_ops(done) == 0 or (size, GENERATION) == (1, "relax")


def test_a_second_convolution_reads_what_the_first_wrote():
    shapes = {**SHAPES, "v": (8, 24, 3, 3)}
    mod, done, how = folded(lambda x, w, b, v: op.conv2d(op.relu(conv(x, w, b)), v), shapes)
    assert blocked_ops(done) == 0
    assert how.count == 4
    report = selfbyoc.report(selfbyoc.partition_for_tefuse(mod))
    assert report.counts == {"conv2d": 2}
    assert report.layouts.startswith("4 ops in NCHW8c folded back; ")
    assert "Layouts: 4 ops in NCHW8c" in str(selfbyoc.explain(mod))


def test_what_no_composite_gains_by_stays():
    """A module whose blocks nobody here would take is partitioned as it is."""
    mod = converted(emit(lambda x, w, b: conv(x, w, b), SHAPES, {
        n: np.ones(SHAPES[n], "float32") for n in "wb"}))  # fmt: skip
    parted = selfbyoc.partition_for_tefuse(mod, composites=[])
    assert selfbyoc.report(parted).layouts == ""
    assert blocked_ops(mod) == blocked_ops(parted)
