"""Functions with several heavy ops, each in three forms: play with them, and add your own.

    python examples/rfc_functions.py [NAME ...]

For each function: how many of TVM's own kernels it is (fused as TVM fuses, and each op apart), and
one kernel of ours with each op by itself, or by a schedule of its own where there is one.
"""

import sys

import numpy as np

import selfbyoc
from selfbyoc import BUILTIN, Composite, each_op, emit, op
from selfbyoc.tvm import GENERATION, tvm


def chain(x, w1, w2):
    """The RFC's: conv2d, relu, conv2d, relu."""
    y = op.relu(op.conv2d(x, w1, padding=(1, 1)))
    return op.relu(op.conv2d(y, w2, padding=(1, 1)))


def int8_pair(x, gamma, beta, weight):
    """The thread's: layer_norm and dense in int8."""
    y = op.layer_norm(op.cast(x, dtype="float32"), gamma, beta)
    y = op.cast(op.clip(op.round(op.multiply(y, 16.0)), a_min=-128, a_max=127), dtype="int8")
    return op.dense(y, weight, out_dtype="int32")


def attention(x, keys, values):
    """Two products with a softmax between."""
    return op.dense(op.softmax(op.dense(x, keys)), values)


def branches(x, w1, w2):
    """Two convolutions side by side, and their concatenate."""
    return op.concatenate([op.relu(op.conv2d(x, w)) for w in (w1, w2)], axis=1)


TARGET = "llvm"  # by target, TVM takes some ops apart: the same one for all
IMAGE, MATRIX = ((1, 3, 33, 35), "float32"), ((9, 64), "float32")
FUNCTIONS = {
    "chain": (chain, {"x": IMAGE, "w1": ((32, 3, 3, 3), "float32"),
                      "w2": ((32, 32, 3, 3), "float32")}),
    "int8_pair": (int8_pair, {"x": ((9, 64), "int8"), "gamma": ((64,), "float32"),
                              "beta": ((64,), "float32"), "weight": ((48, 64), "int8")}),
    "attention": (attention, {"x": MATRIX, "keys": ((50, 64), "float32"),
                              "values": ((30, 50), "float32")}),
    "branches": (branches, {"x": IMAGE, "w1": ((8, 3, 3, 3), "float32"),
                            "w2": ((9, 3, 3, 3), "float32")}),
}  # fmt: skip


def kernels(mod):
    """How many kernels of its own TVM makes of main."""
    if GENERATION == "relay":
        import json

        from tvm import relay

        with tvm.transform.PassContext(opt_level=2):  # 3 adds kernels that change layouts
            graph = json.loads(relay.build(mod, target=TARGET).get_graph_json())
        return sum(node["op"] == "tvm_op" for node in graph["nodes"])
    from tvm import relax

    passes = [
        relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern(),
        relax.transform.FuseOps(), relax.transform.FuseTIR(),
    ]  # fmt: skip
    main = tvm.transform.Sequential(passes)(mod)["main"]
    values = [binding.value for block in main.body.blocks for binding in block.bindings]
    return sum(isinstance(value, relax.Call) and "call_tir" in str(value.op) for value in values)


def arrays_of(types):
    rng = np.random.default_rng(0)
    return [
        rng.integers(-9, 9, shape).astype(dtype)
        if dtype == "int8"
        else rng.standard_normal(shape).astype(dtype)
        for shape, dtype in types.values()
    ]


def play(name):
    """Print what becomes of one function."""
    function, types = FUNCTIONS[name]
    mod, arrays = emit(function, types), arrays_of(types)
    apart = Composite(name, function, each_op({}))  # put schedules of your own here
    parted = selfbyoc.partition_for_tefuse(mod, composites=[apart])
    forms = {
        "one kernel, each op by itself": parted,
        "as TVM fuses it": selfbyoc.unfuse(parted),
        "each op a function of its own": selfbyoc.unfuse(parted, separate=True, target=TARGET),
        "the built-in composites": selfbyoc.partition_for_tefuse(mod, composites=BUILTIN),
    }
    results = []
    for form, each in forms.items():
        counts = selfbyoc.report(each).counts
        found = ", ".join(f"{n} x {c}" for c, n in counts.items()) or f"{kernels(each)} of TVM's"
        print(f"{name}: {form}: {found}")
        results.append(selfbyoc.build(each, TARGET)(*arrays)[0])
    agree = all(np.allclose(results[0], other, rtol=1e-4, atol=1e-4) for other in results)
    print(f"{name}: all agree: {agree}")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or FUNCTIONS:
        play(chosen)
