"""The issue's "Extract Op Info from PrimFunc": its converter, fed by a PrimFunc of Relax.

There the converter reads an op of the graph, which a layout planner on PrimFuncs has lost.
"""

import tvm
from tvm import relax
from tvm.s_tir import Schedule

from selfbyoc import UNKNOWN, op_info, transform_layout
from selfbyoc.transform import AttachOpInfo, FuseTIR


def convert(conv):
    """Conv2DOpConverter of TensorRT's BYOC, line by line; every value is op info's."""
    layouts = [conv.attrs[name] for name in ("data_layout", "kernel_layout", "out_layout")]
    if any(layout is UNKNOWN for layout in layouts):
        return "no converter: a layout is not known"
    if layouts != ["NCHW", "OIHW", "NCHW"]:
        return f"no converter: expected NCHW, OIHW, NCHW, found {', '.join(layouts)}"
    weight = conv.inputs[1]
    layer = f"addConvolution(channels={conv.attrs['channels']}, kernel={weight.shape[2:]}"
    names = ("strides", "padding", "dilation", "groups")
    return ", ".join([layer, *(f"{n}={conv.attrs[n]}" for n in names), f"{weight.dtype})"])


def relax_program():
    """What a frontend hands over."""
    shapes = {"data": (1, 8, 16, 16), "weight": (32, 8, 3, 3)}
    data, weight = [relax.Var(n, relax.TensorType(s, "float32")) for n, s in shapes.items()]
    builder = relax.BlockBuilder()
    with builder.function("main", [data, weight]):
        with builder.dataflow():
            conv = builder.emit(relax.op.nn.conv2d(data, weight, strides=2, padding=(1, 1)))
            result = builder.emit_output(relax.op.nn.relu(conv))
        builder.emit_func_output(result)
    return builder.get()


def lowered(mod):
    """The PrimFunc of both ops, after TVM's own fusion; two passes are ours, for LegalizeOps and
    FuseTIR.
    """
    passes = [AttachOpInfo(), relax.transform.FuseOps(), FuseTIR()]
    mod = tvm.transform.Sequential(passes)(mod)
    (func,) = (f for var, f in mod.functions.items() if var.name_hint != "main")
    return func


if __name__ == "__main__":
    func = lowered(relax_program())
    for info in op_info(func):
        print(info.name, info.pattern, info.inputs, "->", info.outputs)
    print("lowered: ", convert(op_info(func)[0]))

    def nhwc(n, c, h, w):
        return n, h, w, c

    # A planner that sees loops alone: images become NHWC, of which nobody tells op info.
    sch = Schedule(func)
    sch.transform_layout("pad_temp", ("read", 0), nhwc)
    for block in ("conv2d_nchw", "compute"):
        sch.transform_layout(block, ("write", 0), nhwc)
    print("planned: ", convert(op_info(sch)[0]))
    # Or one that keeps to layouts that ops can be written in: the others stay, by a copy.
    sch = Schedule(func)
    transform_layout(sch, sch.get_sblock("conv2d_nchw"), ("write", 0), nhwc)
    print("restored:", convert(op_info(sch)[0]))
