"""Small kernels for a GPU, most with one mistake on purpose, for analysis/gpu/test_checks.py: `x`
goes to `y` by way of shared memory.
"""

from selfbyoc import T


@T.prim_func(s_tir=True)
def right(x: T.Buffer((256,), "float32"), y: T.Buffer((256,), "float32")) -> None:
    """Each block turns 64 floats round."""
    s = T.alloc_buffer((64,), "float32", scope="shared")
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            s[tx] = x[bx * 64 + tx]
            T.evaluate(T.tvm_storage_sync("shared"))
            y[bx * 64 + tx] = s[63 - tx]


@T.prim_func(s_tir=True)
def only_some_blocks_wait(x: T.Buffer((256,), "float32"), y: T.Buffer((256,), "float32")) -> None:
    """That is allowed: a barrier is of one block."""
    s = T.alloc_buffer((64,), "float32", scope="shared")
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            s[tx] = x[bx * 64 + tx]
            if bx < 2:
                T.evaluate(T.tvm_storage_sync("shared"))
                y[bx * 64 + tx] = s[63 - tx]


@T.prim_func(s_tir=True)
def half_of_a_block_waits(x: T.Buffer((256,), "float32"), y: T.Buffer((256,), "float32")) -> None:
    """A barrier under a condition on the thread."""
    s = T.alloc_buffer((64,), "float32", scope="shared")
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            s[tx] = x[bx * 64 + tx]
            if tx < 32:
                T.evaluate(T.tvm_storage_sync("shared"))
                y[bx * 64 + tx] = s[63 - tx]


@T.prim_func(s_tir=True)
def some_wait_more_often(x: T.Buffer((256,), "float32"), y: T.Buffer((256,), "float32")) -> None:
    """A barrier in a loop that is longer for some threads."""
    s = T.alloc_buffer((64,), "float32", scope="shared")
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            s[tx] = x[bx * 64 + tx]
            for _i in range(tx // 32 + 1):
                T.evaluate(T.tvm_storage_sync("shared"))
            y[bx * 64 + tx] = s[63 - tx]


@T.prim_func(s_tir=True)
def as_the_data_says(x: T.Buffer((256,), "float32"), y: T.Buffer((256,), "float32")) -> None:
    """A barrier under a condition that nobody can tell."""
    s = T.alloc_buffer((64,), "float32", scope="shared")
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            s[tx] = x[bx * 64 + tx]
            if x[bx * 64 + tx] > T.float32(0):
                T.evaluate(T.tvm_storage_sync("shared"))
                y[bx * 64 + tx] = s[63 - tx]


@T.prim_func(s_tir=True)
def columns(x: T.Buffer((32, 32), "float32"), y: T.Buffer((32, 32), "float32")) -> None:
    """A transpose: 32 lanes read a column, all of one bank."""
    s = T.alloc_buffer((32, 32), "float32", scope="shared")
    for _bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            for i in range(32):
                s[i, tx] = x[i, tx]
            T.evaluate(T.tvm_storage_sync("shared"))
            for j in range(32):
                y[j, tx] = s[tx, j]


@T.prim_func(s_tir=True)
def padded_columns(x: T.Buffer((32, 32), "float32"), y: T.Buffer((32, 32), "float32")) -> None:
    """The same with rows of 33; of a buffer of two axes TVM takes what no one uses away again."""
    s = T.alloc_buffer((1056,), "float32", scope="shared")
    for _bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            for i in range(32):
                s[i * 33 + tx] = x[i, tx]
            T.evaluate(T.tvm_storage_sync("shared"))
            for j in range(32):
                y[j, tx] = s[tx * 33 + j]


@T.prim_func(s_tir=True)
def columns_of_memory(x: T.Buffer((32, 32), "float32"), y: T.Buffer((32, 32), "float32")) -> None:
    """A transpose without shared memory: each lane's float comes in a sector of its own."""
    for _bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            for j in range(32):
                y[j, tx] = x[tx, j]


@T.prim_func(s_tir=True)
def too_much(x: T.Buffer((2048,), "float32"), y: T.Buffer((2048,), "float32")) -> None:
    """2048 threads, and 64 KB of shared memory."""
    s = T.alloc_buffer((16384,), "float32", scope="shared")
    for _bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(2048, thread="threadIdx.x"):
            for i in range(8):
                s[i * 2048 + tx] = x[tx]
            T.evaluate(T.tvm_storage_sync("shared"))
            y[tx] = s[16383 - tx]


@T.prim_func(s_tir=True)
def half_of_a_warp_shuffles(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")) -> None:
    """Lanes get values of lanes that do not take part."""
    for _bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            if tx % 32 < 16:
                y[tx] = T.tvm_warp_shuffle(T.tvm_warp_activemask(), x[tx], 31 - tx % 32, 32, 32)


@T.prim_func(s_tir=True)
def one_warp_shuffles(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")) -> None:
    """That is allowed: the other warp has nothing to do with it."""
    for _bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            if tx < 32:
                y[tx] = T.tvm_warp_shuffle(T.tvm_warp_activemask(), x[tx], 31 - tx, 32, 32)


@T.prim_func(s_tir=True)
def sums(x: T.Buffer((4, 256), "float32"), y: T.Buffer((4,), "float32")) -> None:
    """A sum by the threads of a block: TVM puts in the barriers, or the shuffles."""
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(256, thread="threadIdx.x"):
            with T.block("sum"):
                i, k = T.axis.remap("SR", [bx, tx])
                with T.init():
                    y[i] = T.float32(0)
                y[i] = y[i] + x[i, k]


@T.prim_func(s_tir=True)
def many_sums(x: T.Buffer((100, 1024), "float32"), y: T.Buffer((100, 1024), "float32")) -> None:
    """A hundred sums a thread, of 1024 threads: there are 64 registers for each."""
    s = T.alloc_buffer((100,), "float32", scope="local")
    for _bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(1024, thread="threadIdx.x"):
            for i in T.unroll(100):
                s[i] = T.float32(0)
            for k in range(100):
                for i in T.unroll(100):
                    s[i] = s[i] + x[k, tx] * x[i, k]
            for i in T.unroll(100):
                y[i, tx] = s[i]


@T.prim_func(s_tir=True)
def the_same_sum(x: T.Buffer((256,), "float32"), y: T.Buffer((256,), "float32")) -> None:
    """Each thread sums all of the argument by itself."""
    s = T.alloc_buffer((1,), "float32", scope="local")
    for _bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(256, thread="threadIdx.x"):
            s[0] = T.float32(0)
            for k in range(256):
                s[0] = s[0] + x[k]
            y[tx] = x[tx] / s[0]


@T.prim_func(s_tir=True)
def no_barrier(x: T.Buffer((256,), "float32"), y: T.Buffer((256,), "float32")) -> None:
    """One thread of four stores what all four read; TVM takes `ty` for a thread's own."""
    s = T.alloc_buffer((64,), "float32", scope="shared")
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(4, thread="threadIdx.x"):
            for ty in T.thread_binding(64, thread="threadIdx.y"):
                if tx == 0:
                    s[ty] = x[bx * 64 + ty]
                y[ty * 4 + tx] = s[ty]


@T.prim_func(s_tir=True)
def no_barrier_in_the_next_turn(
    x: T.Buffer((4, 64), "float32"), y: T.Buffer((4, 256), "float32")
) -> None:
    """What all four threads read, one of them stores over in the loop's next turn."""
    s = T.alloc_buffer((64,), "float32", scope="shared")
    for _bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(4, thread="threadIdx.x"):
            for ty in T.thread_binding(64, thread="threadIdx.y"):
                for i in range(4):
                    if tx == 0:
                        s[ty] = x[i, ty]
                    T.evaluate(T.tvm_storage_sync("shared"))
                    y[i, ty * 4 + tx] = s[ty]


@T.prim_func(s_tir=True)
def barriers_in_every_turn(
    x: T.Buffer((4, 64), "float32"), y: T.Buffer((4, 256), "float32")
) -> None:
    """The same, right: each thread's own memory needs no barrier."""
    s = T.alloc_buffer((64,), "float32", scope="shared")
    own = T.alloc_buffer((256,), "float32", scope="shared")
    for _bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(4, thread="threadIdx.x"):
            for ty in T.thread_binding(64, thread="threadIdx.y"):
                for i in range(4):
                    own[ty * 4 + tx] = x[i, ty]
                    if tx == 0:
                        s[ty] = own[ty * 4 + tx]
                    T.evaluate(T.tvm_storage_sync("shared"))
                    y[i, ty * 4 + tx] = s[ty] + own[ty * 4 + tx]
                    T.evaluate(T.tvm_storage_sync("shared"))


@T.prim_func(s_tir=True)
def two_sums(x: T.Buffer((8, 32), "float32"), y: T.Buffer((8, 32), "float32")) -> None:
    """A row's sum, by 32 threads together, and each element divided by it: two rows a turn."""
    s = T.alloc_buffer((8,), "float32", scope="shared")
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for i0 in range(2):
            for ty0 in T.thread_binding(2, thread="threadIdx.y"):
                for tx0 in T.thread_binding(32, thread="threadIdx.x"):
                    with T.block("sum"):
                        i = T.axis.spatial(8, bx * 4 + i0 * 2 + ty0)
                        k = T.axis.reduce(32, tx0)
                        with T.init():
                            s[i] = T.float32(0)
                        s[i] = s[i] + x[i, k]
            for ty1 in T.thread_binding(2, thread="threadIdx.y"):
                for tx1 in T.thread_binding(32, thread="threadIdx.x"):
                    with T.block("divide"):
                        i = T.axis.spatial(8, bx * 4 + i0 * 2 + ty1)
                        j = T.axis.spatial(32, tx1)
                        y[i, j] = x[i, j] / s[i]
