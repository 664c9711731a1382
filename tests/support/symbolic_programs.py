"""Programs of open sizes, as modules, and their results compared with NumPy."""

import numpy as np

import selfbyoc
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.language.pattern import op
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.runtime.tolerance import first_wrong, longest_reduction
from selfbyoc.tvm import GENERATION, tir

HEADS = {"axes": (0, 2, 1, 3)}


def attention(q, k, v):
    scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), 0.125)
    return op.batch_matmul(op.softmax(scores), v)


def _heads(q, k, v, mask):
    q, k, v = (op.transpose(x, **HEADS) for x in (q, k, v))
    scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), 0.25)
    weighted = op.batch_matmul(op.softmax(op.add(scores, mask)), v)
    return op.transpose(weighted, **HEADS)


def _gelu(x, w1, b1, w2, b2):
    hidden = op.gelu(op.bias_add(op.dense(x, w1), b1, axis=-1))
    return op.bias_add(op.dense(hidden, w2), b2, axis=-1)


N = "n"

UNKNOWN = tir.Var("n", "int64") if GENERATION == "relax" else tir.Any()

# Name: what it is, a program, its arguments, those that are weights.
CASES = {
    "dense": (
        "dense",
        lambda x, weight, bias: op.gelu(op.bias_add(op.dense(x, weight), bias, axis=-1)),
        {"x": (1, N, 33), "weight": (48, 33), "bias": (48,)}, ("weight", "bias"),
    ),
    "deep": (
        "dense_gelu_dense", _gelu,
        {"x": (N, 24), "w1": (512, 24), "b1": (512,), "w2": (40, 512), "b2": (40,)},
        ("w1", "b1", "w2", "b2"),
    ),
    "gated": (
        "gated_dense", lambda x, gate, up: op.multiply(op.silu(op.dense(x, gate)), op.dense(x, up)),
        {"x": (1, N, 33), "gate": (48, 33), "up": (48, 33)}, ("gate", "up"),
    ),
    "after other axes": (
        "dense",
        lambda x, weight, bias: op.bias_add(op.dense(x, op.transpose(weight)), bias, axis=-1),
        {"x": (5, N, 6), "weight": (6, 76), "bias": (76,)}, ("weight", "bias"),
    ),
    # As many batches have plans of their own as there are: a kernel is of all 17 * n rows.
    "before other axes": (
        "dense", lambda x, weight: op.dense(x, weight),
        {"x": (N, 17, 32), "weight": (96, 32)}, ("weight",),
    ),
    "heads": (
        "attention_of_heads", _heads,
        {"q": (1, N, 2, 16), "k": (1, N, 2, 16), "v": (1, N, 2, 16), "mask": (1, 1, 1, N)}, (),
    ),
    "packed heads": (
        "attention_of_heads", _heads,
        {"q": (1, N, 4, 64), "k": (1, N, 4, 64), "v": (1, N, 4, 64), "mask": (1, 1, 1, N)}, (),
    ),
    "images": (
        "conv2d",
        lambda x, weight, bias: op.relu(op.bias_add(op.conv2d(x, weight, padding=1), bias)),
        {"x": (N, 5, 14, 13), "weight": (18, 5, 3, 3), "bias": (18,)}, ("weight", "bias"),
    ),
    "attention": ("attention", attention, {"q": (3, N, 20), "k": (3, N, 20), "v": (3, N, 24)}, ()),
    "keys apart": (
        "attention", lambda q, k, v: op.batch_matmul(op.softmax(op.batch_matmul(q, k)), v),
        {"q": (3, N, 64), "k": (3, 64, N), "v": (3, N, 64)}, (),
    ),
    "queries": ("attention", attention, {"q": (3, N, 16), "k": (3, 21, 16), "v": (3, 21, 8)}, ()),
    "keys": ("attention", attention, {"q": (3, 7, 16), "k": (3, N, 16), "v": (3, N, 8)}, ()),
    "dense and residual": (
        "dense", lambda x, weight, residual: op.add(op.dense(x, weight), residual),
        {"x": (N, 64), "weight": (50, 64), "residual": (N, 50)}, ("weight",),
    ),
    "dense_gelu_dense": (
        "dense_gelu_dense", _gelu,
        {"x": (1, N, 32), "w1": (80, 32), "b1": (80,), "w2": (24, 80), "b2": (24,)},
        ("w1", "b1", "w2", "b2"),
    ),
    "layer_norm": (
        "layer_norm", lambda x, gamma, beta: op.layer_norm(x, gamma, beta),
        {"x": (2, N, 40), "gamma": (40,), "beta": (40,)}, ("gamma", "beta"),
    ),
    "layer_norm_dense": (
        "layer_norm_dense",
        lambda x, gamma, beta, weight: op.dense(op.layer_norm(x, gamma, beta), weight),
        {"x": (1, N, 48), "gamma": (48,), "beta": (48,), "weight": (64, 48)},
        ("gamma", "beta", "weight"),
    ),
    "softmax": ("softmax", lambda x: op.softmax(x), {"x": (4, N, 30)}, ()),
    "rows of any length": ("softmax", lambda x: op.softmax(x), {"x": (2, 3, N, N)}, ()),
    "layer_norm of any length": (
        "layer_norm", lambda x, gamma, beta: op.layer_norm(x, gamma, beta),
        {"x": (9, N), "gamma": (N,), "beta": (N,)}, (),
    ),
    "rms_norm of any length": (
        "rms_norm", lambda x, gamma: op.gelu(op.rms_norm(x, gamma)),
        {"x": (9, N), "gamma": (N,)}, (),
    ),
    "batch_matmul": (
        "batch_matmul", lambda x, y: op.batch_matmul(x, y), {"x": (3, N, 20), "y": (3, 20, 40)}, (),
    ),
    # Of one row the mask has the shape of a bias.
    "masked products": (
        "batch_matmul", lambda x, y, mask: op.add(op.batch_matmul(x, y), mask),
        {"x": (3, N, 20), "y": (3, 20, 40), "mask": (1, N, 40)}, (),
    ),
    "depthwise": (
        "conv2d", lambda x, weight: op.relu(op.conv2d(x, weight, padding=1, groups=6)),
        {"x": (N, 6, 19, 17), "weight": (6, 1, 3, 3)}, ("weight",),
    ),
    "pointwise": (
        "conv2d", lambda x, weight: op.relu(op.conv2d(x, weight)),
        {"x": (N, 20, 9, 9), "weight": (33, 20, 1, 1)}, ("weight",),
    ),
    "max_pool2d": (
        "max_pool2d", lambda x: op.max_pool2d(x, pool_size=3, strides=2, padding=1),
        {"x": (N, 8, 17, 21)}, (),
    ),
    "pool of whole images": (
        "global_avg_pool2d", lambda x: op.global_avg_pool2d(x), {"x": (N, 20, 7, 7)}, (),
    ),
}  # fmt: skip


def another():
    """Another symbol."""
    return tir.Var("m", "int64") if GENERATION == "relax" else tir.Any()


def at(size, shape):
    return tuple(size if extent == N else extent for extent in shape)


def arrays(name, size):
    _, _, args, constants = CASES[name]
    rng = np.random.default_rng(len(name))  # weights do not depend on the size
    weights = {a: rng.standard_normal(args[a]).astype("float32") for a in constants}
    rng = np.random.default_rng(size)
    rest = [a for a in args if a not in constants]
    return {a: rng.standard_normal(at(size, args[a])).astype("float32") for a in rest}, weights


def module(name, size):
    _, program, args, constants = CASES[name]
    weights = {a: w for a, w in arrays(name, 1)[1].items()}
    return emit(program, {a: at(size, s) for a, s in args.items() if a not in constants}, weights)


def symbolic(name):
    return named(module(name, UNKNOWN), CASES[name][2])


def named(mod, shapes):
    """Relay's `Any` called n, as the symbol of Relax is."""
    if GENERATION == "relax":
        return mod
    axes = {a: {axis: N for axis, e in enumerate(s) if e == N} for a, s in shapes.items()}
    return selfbyoc.name_sizes(mod, {a: named for a, named in axes.items() if named})


def check(name, library, size):
    given, weights = arrays(name, size)
    (found,) = library(**given)
    static = ir.read(module(name, size)["main"])
    _, program, args, _ = CASES[name]
    whole = ir.read(emit(program, {a: at(size, s) for a, s in args.items()})["main"])
    (wanted,) = evaluate(whole, [{**given, **weights}[v.name] for v in whole.inputs])
    wrong = first_wrong(found, np.asarray(wanted), "float32", longest_reduction(static))
    assert wrong is None, f"{name} of {size}: {wrong}"
