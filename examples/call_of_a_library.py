"""Calls of an accelerator's library, from a PrimFunc whose layouts a planner has changed.

What a converter reads off ops of the graph (strides, padding, layouts, what feeds what), this one
reads off the function. The library is NumPy here.
"""

import numpy as np
from tvm import te

from selfbyoc import Composite, emit, host_target, op, op_info, partition_for_tefuse, raise_ops
from selfbyoc.analysis.kernels import kernels
from selfbyoc.tvm import Schedule, empty, get_block, get_func, register_func, tensor, tir, tvm
from selfbyoc.tvm.build import build_module

SHAPES = {"x": (1, 8, 14, 14), "w": (16, 8, 3, 3), "b": (16,)}


def network(x, w, b):
    """What the graph said before it was lowered."""
    return op.relu(op.bias_add(op.conv2d(x, w, strides=2, padding=(1, 0, 1, 2)), b))


# 1. The library: images in NHWC, weights in HWIO.


def library_conv2d(x, w, out, *numbers):
    """numbers: the strides, and the padding at the top, left, bottom and right."""
    x, w = x.numpy(), w.numpy()
    down, along, top, left, bottom, right = map(int, numbers)
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    result = np.zeros(out.shape, "float32")
    for i, j in np.ndindex(*w.shape[:2]):
        window = x[:, i : i + (result.shape[1] - 1) * down + 1 : down]
        window = window[:, :, j : j + (result.shape[2] - 1) * along + 1 : along]
        result += window @ w[i, j]
    out.copyfrom(result)


register_func("accelerator.conv2d", library_conv2d, override=True)
register_func("accelerator.bias", lambda x, b, out: out.copyfrom(x.numpy() + b.numpy()),
              override=True)  # fmt: skip
register_func("accelerator.relu", lambda x, out: out.copyfrom(np.maximum(x.numpy(), 0)),
              override=True)  # fmt: skip


# 2. The planner: it sees a function without ops, and gives its buffers the library's layouts.


def planned(func):
    """Images in NHWC, weights in HWIO."""
    begin = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    sch = Schedule(begin)

    def nhwc(n, c, h, w):
        return n, h, w, c

    sch.transform_layout(get_block(sch, "conv2d_pad"), ("read", 0), nhwc)
    sch.transform_layout(get_block(sch, "conv2d"), ("read", 1), lambda o, i, h, w: (h, w, i, o))
    for name in ("conv2d", "bias_add", "relu"):
        sch.transform_layout(get_block(sch, name), ("write", 0), nhwc)
    return sch.mod["main"]


# 3. The converter: a call of the library for each op, in the order of the function.


def converted(graph):
    """One PrimFunc that calls the library."""
    tensors = {v: te.placeholder(v.shape, v.dtype, v.name) for v in graph.inputs}
    for call in graph.ops:
        name, numbers = LIBRARY[call.kind](call.attrs)
        read, (result,) = [tensors[v] for v in call.inputs], call.outputs

        def body(ins, outs, name=name, numbers=numbers):
            return tir.call_packed(f"accelerator.{name}", *ins, *outs, *numbers)

        held = [tir.decl_buffer(t.shape, t.dtype, t.name, elem_offset=0) for t in read]
        out = tir.decl_buffer(result.shape, result.dtype, call.name, elem_offset=0)
        tensors[result] = te.extern(
            [result.shape], read, body, call.name, in_buffers=held, out_buffers=[out]
        )
    return te.create_prim_func([tensors[v] for v in (*graph.inputs, *graph.outputs)])


def conv2d(attrs):
    """The library takes these layouts only; the numbers are the op's."""
    layouts = [attrs[name] for name in ("data_layout", "kernel_layout", "out_layout")]
    assert layouts == ["NHWC", "HWIO", "NHWC"], layouts
    return "conv2d", (*attrs["strides"], *attrs["padding"])


def bias_add(attrs):
    """NumPy's broadcasting wants the channels last."""
    assert attrs["axis"] == 3, attrs
    return "bias", ()


LIBRARY = {"conv2d": conv2d, "bias_add": bias_add, "relu": lambda attrs: ("relu", ())}


def main():
    """Plan, convert, run, and compare with the network as it was written."""
    mod = emit(network, SHAPES)
    parted = partition_for_tefuse(mod, composites=[Composite("layer", network)])
    (kernel,) = kernels(parted)
    func = planned(kernel.schedule(host_target())[0].func)
    for info in op_info(func):
        print(info.name, info.sources, {n: info.attrs[n] for n in info.layout_sensitive})
    calls = converted(raise_ops(func))

    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s).astype("float32") for s in SHAPES.values())
    args = [np.ascontiguousarray(x.transpose(0, 2, 3, 1)),
            np.ascontiguousarray(w.transpose(2, 3, 1, 0)), b]  # fmt: skip
    found = [run(f, args) for f in (func, calls)]
    print("calls:", ", ".join(sorted(set(external_calls(calls)))))
    print("agrees with the PrimFunc:", np.allclose(*found, 1e-4, 1e-4))
    print("agrees with NumPy:", np.allclose(found[1].transpose(0, 3, 1, 2), reference(x, w, b),
                                            1e-4, 1e-4))  # fmt: skip


def run(func, args):
    """A PrimFunc on the CPU."""
    mod = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    out = empty((1, 7, 7, 16), "float32")
    get_func(build_module(mod, host_target()), "main")(*map(tensor, args), out)
    return out.numpy()


def external_calls(func):
    """The names of the library's functions in a PrimFunc's text."""
    return [part.split('"')[0] for part in func.script().split('"accelerator.')[1:]]


def reference(x, w, b):
    """In NCHW, window by window."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 2)))
    found = np.zeros((1, 16, 7, 7))
    for i, j in np.ndindex(7, 7):
        window = x[0, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
        found[0, :, i, j] = (w * window).sum((1, 2, 3)) + b
    return np.maximum(found, 0)


if __name__ == "__main__":
    main()
