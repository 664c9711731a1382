"""conv2d-relu-conv2d-relu as one kernel: the program of TVM's RFC on task extraction, 1x3x224x224.

Plain `relay.build` refuses it as one function: it takes one op with a TOPI schedule in each.
Relax has no such limit: there the example only builds the chain and checks it.
"""

import numpy as np

import selfbyoc
from selfbyoc import Case, Composite, emit, op
from selfbyoc.tvm import GENERATION

SHAPES = {"x": (1, 3, 224, 224), "w1": (32, 3, 3, 3), "w2": (32, 32, 3, 3)}


def pattern(x, w1, w2):
    """Two convolutions, each with its ReLU."""
    y = op.relu(op.conv2d(x, w1, padding=(1, 1)))
    return op.relu(op.conv2d(y, w2, padding=(1, 1)))


def reference(x, w1, w2):
    """NumPy, independent of TVM."""
    return relu_conv(relu_conv(x, w1), w2)


def relu_conv(x, w):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.maximum(np.einsum("nchwij,ocij->nohw", view, w, optimize=True), 0)


chain = Composite(
    "conv_chain",
    pattern,
    reference=reference,
    cases=(Case(x=(1, 3, 17, 19), w1=(8, 3, 3, 3), w2=(5, 8, 3, 3)),),
    why="the first convolution's result need not be a tensor of the model",
)


def refusal_of_relay(mod):
    """What relay.build says to the whole chain as one primitive function."""
    import tvm
    from tvm import relay

    main = mod["main"]
    whole = main.with_attr("Primitive", 1)
    params = [relay.Var(p.name_hint, p.checked_type) for p in main.params]
    one = tvm.IRModule.from_expr(relay.Function(params, relay.Call(whole, params)))
    try:
        relay.build(one, target="llvm")
    except tvm.TVMError as err:
        text = str(err)
        return text[text.index("Cannot apply") :].splitlines()[0]
    raise AssertionError("relay.build accepted two convolutions in one function")


def main():
    """Refused by TVM, built through tefuse."""
    mod = emit(pattern, {name: (shape, "float32") for name, shape in SHAPES.items()})
    if GENERATION == "relay":
        print("relay.build:", refusal_of_relay(mod))
    mod = selfbyoc.partition_for_tefuse(mod, composites=[chain])
    print(selfbyoc.report(mod))
    rng = np.random.default_rng(0)
    args = {name: rng.standard_normal(shape, np.float32) for name, shape in SHAPES.items()}
    (found,) = selfbyoc.build(mod)(**args)
    expected = reference(**args)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    print(f"agrees with NumPy: {error < 1e-5}")


if __name__ == "__main__":
    main()
