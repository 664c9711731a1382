"""Every op of the vocabulary as a model of its own."""

from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.ops.vocabulary import KINDS
from selfbyoc.tvm import GENERATION

X = (2, 4, 6, 6)
SHAPES = {
    "batch_matmul": [(2, 4, 8), (2, 8, 6)],
    "batch_norm": [X, (4,), (4,), (4,), (4,)],
    "bias_add": [X, (4,)],
    "broadcast_to": [(1, 4, 1, 1)],
    "concatenate": [X, X],
    "conv1d_transpose": [(2, 4, 6), (4, 8, 3)],
    "conv2d": [X, (8, 4, 3, 3)],
    "conv2d_transpose": [X, (4, 8, 3, 3)],
    "dequantize": [X, (), ()],
    "dequantize_groups": [(6, 40), (6, 2), (6, 2)],
    "dense": [(4, 8), (6, 8)],
    "embedding": [(6, 40), (4,)],
    "fake_quantize_groups": [(4, 40)],
    "gru": [(3, 2, 18), (1, 18, 6), (1, 2, 6), (1, 6)],
    "half_weight": [(6, 40)],
    "layer_norm": [(4, 8), (8,), (8,)],
    "lstm": [(3, 2, 24), (1, 24, 6), (1, 2, 6), (1, 2, 6)],
    "peephole_lstm": [(3, 2, 24), (1, 24, 6), (1, 2, 6), (1, 2, 6), (1, 18)],
    "quantize": [X, (), ()],
    "requantize_by_channel": [X, (4,), (4,)],
    "rms_norm": [(4, 8), (8,)],
    "rnn": [(3, 2, 6), (1, 6, 6), (1, 2, 6)],
    "tree_ensemble": [(4, 6), (5,), (5,), (5, 3), (2,), (7,), (7,)],
}
ATTRS = {
    "batch_matmul": {"transpose_b": False},
    "broadcast_to": {"shape": X},
    "cast": {"dtype": "int32"},
    "fixed_point_multiply": {"multiplier": 3 << 29, "shift": -2},
    "max": {"axis": (1,)},
    "mean": {"axis": (1,)},
    "requantize": {"input_scale": 0.5, "output_scale": 1.0},
    "requantize_by_channel": {"axis": 1},
    "reshape": {"shape": (8, 36)},
    "resize2d": {"size": (9, 4)},
    "split": {"indices_or_sections": 2, "axis": 1},
    "sum": {"axis": (1,)},
    "tile": {"repeats": (1, 2, 3, 1)},
    "transpose": {"axes": (0, 2, 3, 1)},
}
OF_INTEGERS = (
    "fixed_point_multiply", "left_shift", "requantize", "requantize_by_channel", "right_shift",
)  # fmt: skip
# Known to one generation only.
MISSING = {"relay": set(), "relax": {"fixed_point_multiply", "lrn", "requantize"}}[GENERATION]


def model(kind):
    count = KINDS[kind].inputs or 2
    shapes = SHAPES.get(kind, [X] * count)
    dtype = "int32" if kind in OF_INTEGERS else "float32"
    names = [f"a{i}" for i in range(len(shapes))]
    several = kind in ("split", "batch_norm", "lstm", "peephole_lstm")
    inputs = f"[{', '.join(names)}]" if kind == "concatenate" else ", ".join(names)
    text = f"lambda {', '.join(names)}: op.{kind}({inputs}, **attrs){'[0]' if several else ''}"
    program = eval(text, {"op": op, "attrs": ATTRS.get(kind, {})})
    types = {n: (s, dtype) for n, s in zip(names, shapes, strict=True)}
    if kind in ("dequantize", "quantize"):
        types["a0"] = (X, "int8" if kind == "dequantize" else "float32")
        types["a2"] = ((), "int32")
    if kind == "dequantize_groups":
        types["a0"] = ((6, 40), "uint8")
    if kind == "embedding":
        types["a1"] = ((4,), "int64")
    if kind == "half_weight":
        types["a0"] = ((6, 40), "float16")
    if kind == "tree_ensemble":
        types |= {name: (types[name][0], "int32") for name in ("a2", "a3", "a4", "a5")}
    if kind == "where":
        types["a0"] = (shapes[0], "bool")
    return emit(program, types)
