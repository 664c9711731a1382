"""The forum's "Relay pattern replacing with custom relay ops?": an inception block as one kernel.

The te.compute is the thread's `my_conv2d`, its arithmetic completed; no op is registered.
"""

import tvm
from tvm import relay, te
from tvm.relay.dataflow_pattern import is_op, is_tuple, wildcard

import selfbyoc
from selfbyoc import Composite


def my_conv2d(ins, call):
    """data[N, H, W, I] * kernel[O, I, KH, KW]; strides, padding and shapes are the matched op's."""
    data, kernel = ins
    (down, right), (top, left, *_) = call.attrs["strides"], call.attrs["padding"]
    ic, kh, kw = (te.reduce_axis((0, kernel.shape[i]), f"r{i}") for i in (1, 2, 3))

    def element(n, y, x, c):
        y, x = y * down + kh - top, x * right + kw - left
        inside = te.all(y >= 0, y < data.shape[1], x >= 0, x < data.shape[2])
        pixel = te.if_then_else(inside, data[n, y, x, ic], 0.0)
        return te.sum(pixel * kernel[c, ic, kh, kw], axis=[kh, kw, ic])

    return te.compute(call.outputs[0].shape, element, name=call.name)


def look_for_pattern():
    """Four branches of one image and their concatenate, in Relay's own pattern language."""
    x = wildcard()
    pooled = is_op("nn.max_pool2d")(x).has_attr({"layout": "NHWC"})

    def conv(y):
        return is_op("nn.relu")(is_op("nn.conv2d")(y, wildcard()).has_attr({"data_layout": "NHWC"}))

    return is_op("concatenate")(is_tuple([conv(x), conv(conv(x)), conv(conv(x)), conv(pooled)]))


def schedule(sch, ops, target):
    """for each row of the result, in parallel: all that it is computed from, by compute_at"""
    n, row, *_ = sch.get_loops(ops.concatenate.block)
    for one in reversed([one for one in ops if one.name != "concatenate"]):
        for block in reversed(one.blocks):
            sch.compute_at(block, row)
    sch.parallel(sch.fuse(n, row))


inception = Composite("inception", look_for_pattern(), schedule, compute={"conv2d": my_conv2d})


def min_relay_prog():
    """The block in the thread's layouts, NHWC and OIHW."""
    x = relay.var("x", shape=(1, 14, 14, 16))

    def conv(y, name, *kernel):
        w = relay.var(name, shape=kernel)
        attrs = {"channels": kernel[0], "kernel_size": kernel[2:], "padding": kernel[2] // 2}
        return relay.nn.relu(relay.nn.conv2d(y, w, data_layout="NHWC", **attrs))

    b = conv(conv(x, "b1", 6, 16, 1, 1), "b2", 12, 6, 3, 3)
    c = conv(conv(x, "c1", 4, 16, 1, 1), "c2", 8, 4, 5, 5)
    d = conv(relay.nn.max_pool2d(x, (3, 3), padding=1, layout="NHWC"), "d1", 8, 16, 1, 1)
    return relay.concatenate([conv(x, "a1", 8, 16, 1, 1), b, c, d], axis=3)


if __name__ == "__main__":
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(min_relay_prog()))
    print("kernels of FuseOps:", str(relay.transform.FuseOps(2)(mod)).count("Primitive=1"))
    parted = selfbyoc.partition_for_tefuse(mod, composites=[inception])
    print(selfbyoc.report(parted))
    print(selfbyoc.melting(parted).kernels[0].nest)
    relay.build(parted, target="llvm")  # TVM's own, unmodified
    print(selfbyoc.verify(mod, composites=[inception]).summary)
