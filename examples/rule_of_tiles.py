"""A rule of MetaSchedule that reads op info, tuned: strides and padding say which tiles fit.

The rule samples how many rows a tile has, among those whose input rows fit the cache. `tune`
searches what it samples; a build with the records takes what was fastest.
"""

import tempfile

import numpy as np

import selfbyoc
from selfbyoc import Case, Composite, by_meta_schedule, emit, op

try:
    from tvm.s_tir import meta_schedule as ms  # Relax's TVM
except ImportError:
    from tvm import meta_schedule as ms  # Relay's

CACHE = 32 * 1024  # bytes of input that a tile may read


def fitting(conv):
    """Rows of a tile of the result, from one up to all whose input rows fit."""
    (_, channels, _, width), _ = conv.inputs[0]
    (_, _, window, _), _ = conv.inputs[1]
    (_, _, rows, _), _ = conv.outputs[0]
    stride, (_, left, _, right) = conv.attrs["strides"][0], conv.attrs["padding"]
    row = 4 * channels * (width + left + right)
    found = [n for n in (1, 2, 3, 4, 6, 8) if ((n - 1) * stride + window) * row <= CACHE]
    return [n for n in found if n <= rows] or [1]


class Tiles(ms.schedule_rule.PyScheduleRule):
    """Tiles of rows in parallel; each pads and computes only what it needs."""

    def _initialize_with_tune_context(self, context):
        """Nothing of it is needed."""

    def apply(self, sch, block):
        infos = {info.name: info for info in selfbyoc.op_info(sch)}
        if str(sch.get(block).name_hint) not in infos["relu"].blocks:
            return [sch]
        rows = fitting(infos["conv2d"])
        even = [1 / len(rows)] * len(rows)
        taken = sch.sample_categorical(rows, even, decision=len(rows) - 1)
        *images, row, column = sch.get_loops(block)
        outer, inner = sch.split(row, [None, taken])
        sch.reorder(outer, *images, inner, column)
        above = sch.get_producers(block)
        while above:  # the convolution, and its padding if it has one
            sch.compute_at(above[0], outer)
            above = sch.get_producers(above[0])
        sch.parallel(outer)
        sch.vectorize(column)
        return [sch]


def pattern(data, kernel):
    """Any convolution and its relu."""
    return op.relu(op.conv2d(data, kernel))


def strided(data, kernel):
    """A case of the pattern with attributes of its own."""
    return op.relu(op.conv2d(data, kernel, strides=(2, 2), padding=(1, 1)))


ruled = Composite(
    "ruled_conv2d_relu",
    pattern,
    by_meta_schedule(Tiles()),
    cases=(Case(strided, data=(2, 3, 17, 19), kernel=(7, 3, 3, 3)),),
    why="the rows of one tile stay in the first-level cache",
)


def reference(data, kernel, stride, pad):
    """NumPy."""
    padded = np.pad(data, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    view = np.lib.stride_tricks.sliding_window_view(padded, kernel.shape[2:], axis=(2, 3))
    view = view[:, :, ::stride, ::stride]
    return np.maximum(np.einsum("nchwij,ocij->nohw", view, kernel, optimize=True), 0)


CONVOLUTIONS = {"v": (1, 1), "w": (2, 0)}  # stride and padding, by the kernel's name


def network(data, v, w):
    """Both convolutions, each with its relu."""
    for (stride, pad), kernel in zip(CONVOLUTIONS.values(), (v, w), strict=True):
        data = op.relu(op.conv2d(data, kernel, strides=stride, padding=pad))
    return data


def main():
    """Tunes both, each with the tiles that its strides and padding allow."""
    rng = np.random.default_rng(0)
    shapes = {"data": (1, 8, 23, 100), "v": (16, 8, 3, 3), "w": (8, 16, 3, 3)}
    args = {name: rng.standard_normal(shape).astype("float32") for name, shape in shapes.items()}
    mod = emit(network, shapes)
    folder = tempfile.mkdtemp()
    found = selfbyoc.tune(mod, trials=8, work_dir=folder, composites=[ruled], cost_model="none")
    for outcome in found.outcomes:
        attrs, useless = outcome.task.source.graph.ops[0].attrs, outcome.failed + outcome.wrong
        print(f"strides {attrs['strides']}, padding {attrs['padding']}:", end=" ")
        print(f"{outcome.trials} tiles tried, {useless} of no use")
    with selfbyoc.apply_records(folder) as applied:
        (result,) = selfbyoc.build(mod, composites=[ruled])(**args)
    print(applied)
    expected = args["data"]
    for name, (stride, pad) in CONVOLUTIONS.items():
        expected = reference(expected, args[name], stride, pad)
    print("agrees with NumPy:", np.allclose(result, expected, 1e-4, 1e-4))


if __name__ == "__main__":
    main()
