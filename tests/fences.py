"""A process of tests/test_fences.py: kernels on memory between pages that nobody may touch.

    python fences.py TARGET NAME...    # the smallest case of each of these composites
    python fences.py TARGET after|before    # a kernel that reads one element too far, to try this

Each argument of a kernel ends right before such a page, or begins right after one; an access
outside ends the process. Prints a line of JSON before each run, so that it is known which it was.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import sys
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from cells import smallest
from harness import random_args

import selfbyoc
from selfbyoc._tvm import GENERATION, get_func, make_target, param_buffers, te, tvm
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.lower import finished, machine_code
from selfbyoc.ir.emit import emit

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 5]
LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
PAGE, NOTHING = mmap.PAGESIZE, 0


def fenced(shape: tuple[int, ...], dtype: str, at_end: bool) -> np.ndarray:
    """An array whose last byte (or whose first) is a neighbour of a page without access."""
    size = prod(shape) * np.dtype(dtype).itemsize
    inside = -(-size // PAGE) * PAGE
    begin = LIBC.mmap(
        None, inside + 2 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE,
        mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, (1 << 64) - 1, 0,
    )  # fmt: skip
    for fence in (begin, begin + PAGE + inside):
        assert LIBC.mprotect(fence, PAGE, NOTHING) == 0, ctypes.get_errno()
    start = begin + PAGE + (inside - size if at_end else 0)
    memory = (ctypes.c_byte * size).from_address(start)
    return np.frombuffer(memory, dtype).reshape(shape)  # never given back: the process is short


def random(rng: np.random.Generator, array: np.ndarray) -> None:
    """Values that any op takes."""
    if array.dtype.kind == "f":
        array[...] = rng.uniform(0.5, 1, array.shape)
    else:
        array[...] = rng.integers(0, 3, array.shape)


def as_tensor(array: np.ndarray) -> Any:
    """A TVM tensor in the array's own memory."""
    if GENERATION == "relax":
        return array  # 0.27 takes it as it lies; its from_dlpack asks for 64 bytes
    described, _ = tvm.nd.numpyasarray(array)
    return tvm.nd.NDArray(ctypes.pointer(described), True)


def run(name: str, target: Any) -> None:
    """The kernels of one composite, with weights as inputs and packed."""
    composite = next(c for c in selfbyoc.BUILTIN if c.name == name)
    case = smallest(composite)
    args = random_args(case)
    for weights in ("inputs", "constants"):
        constants = {} if weights == "inputs" else dict(list(args.items())[1:])
        mod = emit(case.program or composite.pattern, case.args, constants)
        parted = selfbyoc.partition_for_tefuse(mod, target=target, composites=[composite])
        for kernel in kernels(parted):
            func = finished(kernel.schedule(target)[1].mod["main"], target)
            func = func.with_attr("global_symbol", "kernel")
            function = get_func(machine_code(func, "kernel", target), "kernel")
            for side in ("end", "begin"):
                say(run=[name, weights, side])
                call(function, func, side == "end")


def planted(name: str, target: Any) -> None:
    """A kernel that reads the element after its argument, or the one before."""
    x = te.placeholder((8,), "float32", name="x")
    step = 1 if name == "after" else -1
    y = te.compute((8,), lambda i: x[i + step], name="y")
    func = te.create_prim_func([x, y]).with_attr("global_symbol", "kernel")
    function = get_func(machine_code(func, "kernel", target), "kernel")
    for side in ("end", "begin"):
        say(run=[name, "inputs", side])
        call(function, func, side == "end")


def call(function: Any, func: Any, at_end: bool) -> None:
    rng = np.random.default_rng(0)
    arrays = []
    for buffer in param_buffers(func):
        shape = tuple(int(extent) for extent in buffer.shape)
        arrays.append(fenced(shape, str(buffer.dtype), at_end))
        random(rng, arrays[-1])
    function(*map(as_tensor, arrays))


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    for each in sys.argv[2:]:
        wanted = sys.argv[1]
        target_of_all = selfbyoc.host_target() if wanted == "host" else make_target(wanted)
        (planted if each in ("after", "before") else run)(each, target_of_all)
    say(done=True)
