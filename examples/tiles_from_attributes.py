"""A schedule that picks its tiles from the op's attributes: stride and padding say what fits.

A tile of the result needs more rows of the input than it has itself: the window reaches over its
edges, and a stride spreads it. How many rows fit the cache follows from the op info that the
schedule is given, not from shapes written into it.
"""

import numpy as np

import selfbyoc
from selfbyoc import Case, Composite, emit, op

CACHE = 12 * 1024  # bytes of input that a tile may read: a part of a first-level cache


def pattern(data, kernel):
    """Any convolution and its relu."""
    return op.relu(op.conv2d(data, kernel))


def tile_rows(conv):
    """Rows of the result in one tile, the most whose input rows fit."""
    (_, channels, _, width), _ = conv.inputs[0]
    (_, _, rows, _), _ = conv.outputs[0]
    (_, _, window, _), _ = conv.inputs[1]
    stride, (_, left, _, right) = conv.attrs["strides"][0], conv.attrs["padding"]
    row = 4 * channels * (width + left + right)

    def reads(count):
        return ((count - 1) * stride + window) * row

    return max((n for n in range(1, rows + 1) if rows % n == 0 and reads(n) <= CACHE), default=1)


tiles = []  # what the schedule chose, for this example to print


def schedule(sch, ops, target):
    """Tiles of rows in parallel; each pads and computes only what it needs."""
    conv = ops.conv2d
    rows = tile_rows(conv)
    *images, row, column = sch.get_loops(ops.relu.block)
    outer, inner = sch.split(row, [None, rows])
    sch.reorder(outer, *images, inner, column)
    sch.compute_at(conv.block, outer)
    for copy in conv.blocks[:-1]:  # a convolution without padding has none
        sch.compute_at(copy, outer)
    sch.parallel(outer)
    sch.vectorize(column)
    tiles.append((conv.attrs["strides"], conv.attrs["padding"], conv.outputs[0][0][2] // rows))


def strided(data, kernel):
    """A case of the pattern with attributes of its own."""
    return op.relu(op.conv2d(data, kernel, strides=(2, 2), padding=(1, 1)))


tiled = Composite(
    "tiled_conv2d_relu",
    pattern,
    schedule,
    cases=(Case(strided, data=(2, 3, 17, 19), kernel=(7, 3, 3, 3)),),
    why="the rows of one tile stay in the first-level cache",
)


def reference(data, kernel, stride, pad):
    """NumPy."""
    padded = np.pad(data, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    view = view[:, :, ::stride, ::stride]
    return np.maximum(np.einsum("nchwij,ocij->nohw", view, kernel, optimize=True), 0)


def network(data, kernel, **attrs):
    """One convolution and its relu, as a model."""
    shapes = {"data": (data, "float32"), "kernel": (kernel, "float32")}
    return emit(lambda data, kernel: op.relu(op.conv2d(data, kernel, **attrs)), shapes)


def main():
    """The same composite on three convolutions."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1, 8, 48, 48)).astype("float32")
    kernel = rng.standard_normal((16, 8, 3, 3)).astype("float32")
    agrees = True
    for stride, pad in ((1, 1), (2, 1), (1, 0)):
        mod = network(data.shape, kernel.shape, strides=stride, padding=pad)
        (found,) = selfbyoc.build(mod, composites=[tiled])(data, kernel)
        agrees &= np.allclose(found, reference(data, kernel, stride, pad), 1e-4, 1e-4)
        strides, padding, count = tiles[-1]
        print(f"strides {strides}, padding {padding}: {count} tiles")
    print("agrees with NumPy:", agrees)


if __name__ == "__main__":
    main()
