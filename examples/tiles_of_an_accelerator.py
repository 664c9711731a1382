"""The kernel that VTA makes of a convolution, on a CPU: under one loop over tiles the tile's inputs
are loaded, multiplied by an instruction, brought back to 8 bits, and stored.

Each memory has a scope of its own, and the instruction is a tensor intrinsic. Here it is a few
vector operations; an accelerator would have a call of its own in the same place.
"""

import numpy as np

import selfbyoc
from selfbyoc import Case, Composite, T, emit, op, require

SIZE = 8  # the instruction multiplies 8 x 8 weights by 8 pixels of 8 channels
INPUTS, WEIGHTS, SUMS, RESULTS = "local.inp", "local.wgt", "local.acc", "local.out"


@T.prim_func(s_tir=True)
def multiply(w: T.handle, x: T.handle, y: T.handle) -> None:
    """What the instruction computes."""
    W = T.match_buffer(w, (SIZE, SIZE, 1, 1), "int8", offset_factor=1, scope=WEIGHTS)
    X = T.match_buffer(x, (SIZE, 1, SIZE), "int8", offset_factor=1, scope=INPUTS)
    Y = T.match_buffer(y, (SIZE, 1, SIZE), "int32", offset_factor=1, scope=SUMS)
    with T.block("root"):
        T.reads(Y[0:SIZE, 0, 0:SIZE], X[0:SIZE, 0, 0:SIZE], W[0:SIZE, 0:SIZE, 0, 0])
        T.writes(Y[0:SIZE, 0, 0:SIZE])
        for o, p, i in T.grid(SIZE, SIZE, SIZE):
            with T.block("multiply"):
                vo, vp, vi = T.axis.remap("SSR", [o, p, i])
                Y[vo, 0, vp] = Y[vo, 0, vp] + (
                    T.cast(X[vi, 0, vp], "int32") * T.cast(W[vo, vi, 0, 0], "int32")
                )


@T.prim_func(s_tir=True)
def multiply_in_vectors(w: T.handle, x: T.handle, y: T.handle) -> None:
    """How it does it: a vector of pixels for each channel."""
    ws = [T.int32(), T.int32(), T.int32(), T.int32()]
    xs = [T.int32(), T.int32(), T.int32()]
    ys = [T.int32(), T.int32(), T.int32()]
    W = T.match_buffer(w, (SIZE, SIZE, 1, 1), "int8", strides=ws, offset_factor=1, scope=WEIGHTS)
    X = T.match_buffer(x, (SIZE, 1, SIZE), "int8", strides=xs, offset_factor=1, scope=INPUTS)
    Y = T.match_buffer(y, (SIZE, 1, SIZE), "int32", strides=ys, offset_factor=1, scope=SUMS)
    with T.block("root"):
        T.reads(Y[0:SIZE, 0, 0:SIZE], X[0:SIZE, 0, 0:SIZE], W[0:SIZE, 0:SIZE, 0, 0])
        T.writes(Y[0:SIZE, 0, 0:SIZE])
        for i in range(SIZE):
            for o in T.unroll(SIZE):
                for p in T.vectorized(SIZE):
                    Y[o, 0, p] = Y[o, 0, p] + (
                        T.cast(X[i, 0, p], "int32") * T.cast(W[o, i, 0, 0], "int32")
                    )


MULTIPLY = selfbyoc.intrinsic("example.multiply", multiply, multiply_in_vectors)


def pattern(data, kernel, shift):
    """Sums of 32 bits, and what brings them back to 8."""
    sums = op.conv2d(data, kernel, strides=(1, 1), groups=1, data_layout="NCHW")
    return op.cast(op.clip(op.right_shift(sums, shift)), dtype="int8")


def check(match):
    """What the instruction can do."""
    conv = match.op("conv2d")
    data, kernel, sums = *conv.inputs, conv.outputs[0]
    dtypes = [value.dtype for value in (data, kernel, sums)]
    require(dtypes == ["int8", "int8", "int32"], f"int8 summed in int32, found {dtypes}")
    sizes = {"channels": data.shape[1], "results": sums.shape[1], "columns": sums.shape[3]}
    for name, size in sizes.items():
        require(size % SIZE == 0, f"{size} {name} are no multiple of {SIZE}")
    shift = match.shift.scalar
    require(shift is not None and 0 <= shift < 32, "the shift is no constant from 0 to 31")


def schedule(sch, ops, target):
    """A tile is a row of eight channels: load, multiply, shift, clip, cast, store."""
    conv, last = ops.conv2d.block, ops.cast.block
    for constant in ops.right_shift.blocks[:-1]:
        sch.compute_inline(constant)
    # 1. The stages, each with its memory. Where there is padding, it is a part of the load.
    *padded, _ = ops.conv2d.blocks
    image = padded[0] if padded else sch.cache_read(conv, 0, INPUTS)
    weights = sch.cache_read(conv, 1, WEIGHTS)
    store = sch.cache_write(last, 0, RESULTS)
    computes = [conv, ops.right_shift.block, ops.clip.block]
    sch.set_scope(image, 0, INPUTS)
    for stage in computes:
        sch.set_scope(stage, 0, SUMS)
    # 2. The loop over tiles is the store's. The others move under it, the last one first.
    n, c, y, x = sch.get_loops(store)
    c, channel = sch.split(c, [None, SIZE])
    sch.reorder(n, c, y, channel, x)
    tile = sch.fuse(n, c, y)
    sch.parallel(tile)
    for stage in (last, *reversed(computes)):
        sch.compute_at(stage, tile)
    # 3. Eight channels of the input at a time are loaded, with their weights.
    _, o, x, i, *window = sch.get_loops(conv)
    block, i = sch.split(i, [None, SIZE])
    column, x = sch.split(x, [None, SIZE])
    sch.reorder(block, *window, column, o, x, i)
    sch.compute_at(image, block)
    sch.compute_at(weights, block)
    # 4. The sums start at zero; what is left of the loops is the instruction.
    zeros = sch.decompose_reduction(conv, block)
    sch.tensorize(o, MULTIPLY)
    for stage in (zeros, *computes[1:], last, store):
        sch.vectorize(sch.get_loops(stage)[-1])


def padded(data, kernel):
    """A case of the pattern with attributes of its own."""
    sums = op.conv2d(data, kernel, padding=(1, 1), out_dtype="int32")
    return op.cast(op.clip(op.right_shift(sums, 9), a_min=-127, a_max=127), dtype="int8")


def pointwise(data, kernel):
    """One whose image is loaded without padding."""
    sums = op.conv2d(data, kernel, out_dtype="int32")
    return op.cast(op.clip(op.right_shift(sums, 7), a_min=-127, a_max=127), dtype="int8")


tiled = Composite(
    "accelerator_conv2d",
    pattern,
    schedule,
    check=check,
    cases=(
        Case(padded, data=((2, 16, 5, 16), "int8"), kernel=((24, 16, 3, 3), "int8")),
        Case(pointwise, data=((1, 8, 7, 8), "int8"), kernel=((8, 8, 1, 1), "int8")),
    ),
    why="the sums of 32 bits never leave the accelerator",
)


def reference(data, kernel):
    """NumPy."""
    wide = np.pad(data.astype("int32"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    view = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))
    sums = np.einsum("nchwij,ocij->nohw", view, kernel.astype("int32"))
    return np.clip(sums >> 9, -127, 127).astype("int8")


def main():
    """The nest of one convolution, and its result."""
    rng = np.random.default_rng(0)
    data = rng.integers(-128, 127, (1, 16, 10, 16), "int8", endpoint=True)
    kernel = rng.integers(-128, 127, (32, 16, 3, 3), "int8", endpoint=True)
    mod = emit(padded, {"data": (data.shape, "int8")}, {"kernel": kernel})
    parted = selfbyoc.partition_for_tefuse(mod, composites=[tiled])
    print(selfbyoc.melting(parted).kernels[0].nest)
    (found,) = selfbyoc.build(parted)(data)
    print("agrees with NumPy:", np.array_equal(found, reference(data, kernel)))


if __name__ == "__main__":
    main()
