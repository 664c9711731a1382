"""Height and width that are known at run time, outside of composites: in vectors, and right."""

import numpy as np
import pytest
from tvm import relax

import selfbyoc
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import tensor, tir, tvm


def _images(body, *shape):
    """A program of one input, `shape` naming its symbols."""
    known = {name: tir.Var(name, "int64") for name in "hw"}
    x = relax.Var("x", relax.TensorType([known.get(e, e) for e in shape], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(builder.normalize(body(x)))
        builder.emit_func_output(y)
    return builder.get()


def _constant(*shape):
    values = np.random.default_rng(len(shape)).standard_normal(shape)
    return relax.const(values.astype("float32"))


IMAGES = {
    "stride": (lambda x: relax.op.nn.conv2d(x, _constant(6, 8, 3, 3), padding=1, strides=2)),
    "groups": (lambda x: relax.op.nn.conv2d(x, _constant(16, 2, 3, 3), padding=1, groups=4)),
    "maximum": (lambda x: relax.op.nn.max_pool2d(x, pool_size=2, strides=2)),
    "mean": (lambda x: relax.op.mean(x, axis=[2, 3])),
    "all": (lambda x: relax.op.max(x)),
    "columns": (lambda x: relax.op.nn.softmax(x, axis=2)),
    "rows": (lambda x: relax.op.nn.log_softmax(x, axis=3)),
    "joined": (lambda x: relax.op.concat([x, relax.op.sin(x)], axis=3)),
    "padded": (lambda x: relax.op.nn.pad(x, [0, 0, 0, 0, 1, 1, 2, 2])),
    "normal": (
        lambda x: relax.op.nn.group_norm(
            x, _constant(8), _constant(8), num_groups=4, channel_axis=1, axes=[2, 3]
        )
    ),
    "dilated": (lambda x: relax.op.nn.conv2d(x, _constant(6, 8, 3, 3), padding=2, dilation=2)),
}
SIDES = (1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 64, 100, 131)


def _check_image(name, library, height, width):
    shape = (1, 8, height, width)
    native = tvm.compile(_images(IMAGES[name], *shape), target="llvm")
    x = np.random.default_rng(height * 200 + width).standard_normal(shape).astype("float32")
    wanted = relax.VirtualMachine(native, tvm.cpu())["main"](tensor(x)).numpy()
    wrong = first_wrong(library(x)[0], wanted, "float32", max(72, height * width))
    assert wrong is None, f"{name} of {height} x {width}: {wrong}"


@pytest.mark.parametrize("name", ["stride", "maximum", "mean", "rows"])
def test_height_and_width_outside_of_composites(name):
    library = selfbyoc.build(_images(IMAGES[name], 1, 8, "h", "w"), composites=[])
    assert library.unscheduled == {}
    for height, width in ((2, 3), (9, 33), (33, 16), (7, 100)):
        _check_image(name, library, height, width)


@pytest.mark.slow
@pytest.mark.parametrize("target", [None, "llvm -mcpu=haswell", "llvm"])
@pytest.mark.parametrize("name", IMAGES)
def test_any_height_and_width(name, target):
    library = selfbyoc.build(_images(IMAGES[name], 1, 8, "h", "w"), target, composites=[])
    assert library.unscheduled == {}
    for number, height in enumerate(SIDES):
        for width in (height, SIDES[(number * 5 + 3) % 13], SIDES[(number * 7 + 1) % 13]):
            _check_image(name, library, height, width)
