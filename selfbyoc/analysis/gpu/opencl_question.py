"""What an OpenCL runtime is asked, in a process of its own: to compile and run one small kernel
with shared memory and barriers, on each CPU that it has. Arguments: the library, and options to
compile.

The text stands alone (runtimes.py): to import this package would bring TVM. Before anything is
tried on a device, a line of JSON says which one it is; another one says that it was right.
"""

import ctypes
import json
import sys
import warnings

BLOCKS, THREADS, TURNS = 3, 64, 4
SOURCE = """
__kernel void turned(__global const float* x, __global float* y) {
  __local float s[64];
  int t = get_local_id(0), b = get_group_id(0);
  float sum = 0.0f;
  for (int i = 0; i < 4; ++i) {
    barrier(CLK_LOCAL_MEM_FENCE);
    s[t] = x[(b * 4 + i) * 64 + t];
    barrier(CLK_LOCAL_MEM_FENCE);
    sum += s[63 - t];
  }
  y[b * 64 + t] = sum;
}
"""


def main(library: str, options: list[str]) -> None:
    """Ask each CPU of the platforms that OpenCL's loader finds."""
    if library:
        ctypes.CDLL(library)  # the loader skips one that does not load, and does not say why
    import pyopencl as cl  # type: ignore[import-not-found,unused-ignore]

    warnings.simplefilter("ignore", cl.CompilerWarning)
    devices = [(p, d) for p in cl.get_platforms() for d in p.get_devices(cl.device_type.CPU)]
    if not devices:
        sys.exit("it has no CPU")
    wrong = ""
    for platform, device in devices:
        named = {"platform": platform.name, "version": device.driver_version, "device": device.name}
        halves = "cl_khr_fp16" in device.extensions
        print(json.dumps({**named, "halves": halves}), flush=True)
        wrong = computed(cl, device, options)
        if not wrong:
            print(json.dumps({"right": True}), flush=True)
            return
    sys.exit(wrong)


def computed(cl, device, options: list[str]) -> str:  # type: ignore[no-untyped-def]
    """What is wrong with the kernel's results, or ''."""
    import numpy as np

    x = np.arange(BLOCKS * TURNS * THREADS, dtype="float32")
    y = np.full(BLOCKS * THREADS, np.nan, "float32")
    wanted = x.reshape(BLOCKS, TURNS, THREADS).sum(1)[:, ::-1].ravel()
    context, flags = cl.Context([device]), cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    queue = cl.CommandQueue(context)
    try:
        built = cl.Program(context, SOURCE).build(options=options)
    except cl.Error as err:
        return str(err).partition("\n(options: ")[0]  # pyopencl's last words
    memory = [cl.Buffer(context, flags, hostbuf=array) for array in (x, y)]
    built.turned(queue, (BLOCKS * THREADS,), (THREADS,), *memory)
    cl.enqueue_copy(queue, y, memory[1])
    count = int((y != wanted).sum())
    return f"it computes {count} of {y.size} numbers wrong" if count else ""


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
