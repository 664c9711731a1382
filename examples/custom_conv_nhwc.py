"""Your own `te.compute` for an NHWC convolution, in place of TVM's; no op is registered.

Shapes, strides and padding come from the op that was matched. The result's shape and dtype are
checked against the compiler's type inference before anything is lowered.
"""

import numpy as np
from tvm import te

import selfbyoc
from selfbyoc import Case, Composite, emit, op
from selfbyoc.errors import ComputeError

LAYOUT = {"data_layout": "NHWC", "kernel_layout": "OIHW"}


def pattern(data, kernel):
    """A convolution whose data is NHWC; convolutions in other layouts do not match."""
    return op.conv2d(data, kernel, **LAYOUT)


def conv2d(ins, call):
    """[N, H, W, I] * [O, I, KH, KW] -> [N, OH, OW, O]"""
    data, kernel = ins
    _, height, width, channels = data.shape
    (down, right), (top, left, _, _) = call.attrs["strides"], call.attrs["padding"]
    kh, kw = (te.reduce_axis((0, kernel.shape[i]), name) for i, name in ((2, "kh"), (3, "kw")))
    ic = te.reduce_axis((0, channels), "ic")

    def padded(n, y, x, c):
        inside = te.all(y >= 0, y < height, x >= 0, x < width)
        return te.if_then_else(inside, data(n, y, x, c), te.const(0, "float32"))

    def element(n, y, x, o):
        pixel = padded(n, y * down + kh - top, x * right + kw - left, ic)
        return te.sum(pixel * kernel(o, ic, kh, kw), axis=[kh, kw, ic])

    return te.compute(call.outputs[0].shape, element, name=call.name)


def conv2d_incomplete(ins, call):
    """The forum's first attempt: it forgets strides and padding."""
    data, kernel = ins
    n, height, width, channels = data.shape
    units, _, window_h, window_w = kernel.shape
    kh, kw = te.reduce_axis((0, window_h), "kh"), te.reduce_axis((0, window_w), "kw")
    ic = te.reduce_axis((0, channels), "ic")
    return te.compute(
        (n, height - window_h + 1, width - window_w + 1, units),
        lambda n, y, x, o: te.sum(
            data(n, y + kh, x + kw, ic) * kernel(o, ic, kh, kw), axis=[kh, kw, ic]
        ),
        name=call.name,
    )


def reference(data, kernel):
    """NumPy, for the strides and the padding of the network below."""
    padded = np.pad(data, ((0, 0), (1, 1), (1, 1), (0, 0)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::2, ::2]
    return np.einsum("nhwcij,ocij->nhwo", view, kernel, optimize=True)


def network(data, kernel):
    """What a frontend would hand over."""
    return op.conv2d(data, kernel, strides=(2, 2), padding=(1, 1), **LAYOUT)


mine = Composite(
    "my_conv2d",
    pattern,
    compute={"conv2d": conv2d},
    cases=(Case(network, data=(2, 11, 13, 3), kernel=(5, 3, 3, 3)),),
    why="its compute is our own",
)


def main():
    """Build with the complete compute, then see the incomplete one refused."""
    shapes = {"data": (1, 57, 61, 3), "kernel": (16, 3, 3, 3)}
    mod = emit(network, {name: (shape, "float32") for name, shape in shapes.items()})
    parted = selfbyoc.partition_for_tefuse(mod, composites=[mine])
    print(selfbyoc.report(parted))
    rng = np.random.default_rng(0)
    args = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    (found,) = selfbyoc.build(parted)(**args)
    expected = reference(**args)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    print(f"agrees with NumPy: {error < 1e-5}")

    wrong = Composite("my_conv2d", pattern, compute={"conv2d": conv2d_incomplete})
    try:
        selfbyoc.build(mod, composites=[wrong])
    except ComputeError as err:
        print(err)


if __name__ == "__main__":
    main()
