"""Change one thing in a program that matches: the decisions name exactly that.

Each row has a program with the change, and what the composite's record at one root must say.
"""

from dataclasses import dataclass, replace
from typing import Any

import pytest

import selfbyoc
from selfbyoc import Composite, op, require
from selfbyoc.ir.emit import emit
from selfbyoc.tvm import GENERATION

# Their patterns alone: what is elementwise after them would join the kernel
BUILTIN = {c.name: replace(c, epilogue=False, prologue=()) for c in selfbyoc.BUILTIN}


def same(y):
    return y


def bias_add(y, bias):
    return op.bias_add(y, bias, axis=1)


def unknown():
    """An extent that is not known when compiling: no symbol of an input's alone."""
    from selfbyoc.tvm import tir

    return tir.Var("n", "int64") * 2


# ---- the programs, with a place for every change


def chain(first=None, second=None, end=op.relu, between=same, add=bias_add, w1=same, **extra):
    """The RFC's program."""
    first, second = first or {}, second or {}

    def program(x, w1_, b1, w2, b2, **more):
        y = add(op.conv2d(x, w1(w1_), **{"padding": 1, **first}), b1)
        hidden = between(op.relu(y))
        y = op.conv2d(hidden, w2, **{"padding": 1, **second})
        out = end(op.bias_add(y, b2))
        return (out, *(f(hidden) for f in extra.get("also", ())))

    return program


CHAIN = {"x": (1, 3, 10, 12), "w1_": (8, 3, 3, 3), "b1": (8,), "w2": (8, 8, 3, 3), "b2": (8,)}


def attend(scaled=None, masked=None, last=None, soften=op.softmax, between=same, also=()):
    def program(q, k, v, mask):
        raw = op.batch_matmul(q, k, transpose_b=True)
        scores = (scaled or (lambda y: op.multiply(y, 0.125)))(raw)
        scores = (masked or op.add)(scores, mask)
        shares = between(soften(scores))
        out = (last or op.batch_matmul)(shares, v)
        return (out, *(f(shares) for f in also))

    return program


ATTEND = {"q": (2, 7, 8), "k": (2, 7, 8), "v": (2, 7, 8), "mask": (2, 7, 7)}


def norm_dense(between=same, norm=None, dense=op.dense, also=()):
    def program(x, gamma, beta, w, b):
        y = (norm or op.layer_norm)(x, gamma, beta)
        out = op.gelu(op.bias_add(dense(between(y), w), b, axis=-1))
        return (out, *(f(y) for f in also))

    return program


NORM = {"x": (5, 16), "gamma": (16,), "beta": (16,), "w": (12, 16), "b": (12,)}


def mlp(between=same, act=op.gelu, add=None, w2=same, also=()):
    def program(x, w1, b1, w2_, b2):
        hidden = between(act((add or op.bias_add)(op.dense(x, w1), b1)))
        out = op.bias_add(op.dense(hidden, w2(w2_)), b2)
        return (out, *(f(hidden) for f in also))

    return program


MLP = {"x": (5, 8), "w1": (16, 8), "b1": (16,), "w2_": (6, 16), "b2": (6,)}


def googlenet(axis=1, pool=op.max_pool2d, act=op.relu, five=same, branch=None, also=()):
    def conv(x, w, b, act=op.relu, **attrs):
        return act(op.bias_add(op.conv2d(x, w, **attrs), b))

    def program(x, w1, b1, w3r, b3r, w3, b3, w5r, b5r, w5, b5, wp, bp):
        three = conv(x, w3r, b3r)
        branches = [
            conv(x, w1, b1),
            conv(three, w3, b3, padding=1),
            conv(five(conv(x, w5r, b5r, act)), w5, b5, padding=2),
            conv(pool(branch(x) if branch else x, pool_size=3, padding=1), wp, bp),
        ]
        return (op.concatenate(branches, axis=axis), *(f(three) for f in also))

    return program


GOOGLENET = {
    "x": (1, 4, 6, 6), "w1": (4, 4, 1, 1), "b1": (4,), "w3r": (4, 4, 1, 1), "b3r": (4,),
    "w3": (4, 4, 3, 3), "b3": (4,), "w5r": (4, 4, 1, 1), "b5r": (4,), "w5": (4, 4, 5, 5),
    "b5": (4,), "wp": (4, 4, 1, 1), "bp": (4,),
}  # fmt: skip


def inverted(groups=12, active=op.clip, residual=None, window=None):
    def program(x, we, be, wd, bd, wp, bp):
        y = op.clip(op.bias_add(op.conv2d(x, we), be), a_min=0, a_max=6)
        y = op.bias_add(op.conv2d(y, wd, groups=groups, padding=1), bd)
        y = active(y)
        y = op.bias_add(op.conv2d(y, wp, **(window or {})), bp)
        return op.add(y, (residual or same)(x))

    return program


INVERTED = {
    "x": (1, 4, 6, 6), "we": (12, 4, 1, 1), "be": (12,), "wd": (12, 1, 3, 3), "bd": (12,),
    "wp": (4, 12, 1, 1), "bp": (4,),
}  # fmt: skip


def narrowed(shift=None, bound=None, between=same, dtype="int8", out="int32", layout=None, also=()):
    def program(x, w, b):
        attrs = {"padding": 1, "out_dtype": out, **(layout or {})}
        sums = op.bias_add(op.conv2d(x, w, **attrs), b, axis=1)
        y = between((shift or (lambda y: op.right_shift(y, 10)))(sums))
        done = op.cast((bound or (lambda y: op.clip(y, a_min=-128, a_max=127)))(y), dtype=dtype)
        return (done, *(f(sums) for f in also))

    return program


NARROWED = {"x": ((1, 5, 7, 9), "int8"), "w": ((6, 5, 3, 3), "int8"), "b": ((6,), "int32")}


def normed(item=0, between=same, layout=None, also=()):
    def program(x, w, gamma, beta, mean, var):
        y = op.conv2d(x, w, padding=1, **(layout or {}))
        n = op.batch_norm(between(y), gamma, beta, mean, var, axis=3 if layout else 1)
        return (op.relu(n[item]), *(f(y) for f in also))

    return program


NORMED = {
    "x": (1, 4, 6, 6), "w": (6, 4, 3, 3), "gamma": (6,), "beta": (6,), "mean": (6,), "var": (6,),
}  # fmt: skip


def layer(between=same, add=None, act=op.relu, also=()):
    def program(x, w, b):
        y = (add or op.bias_add)(between(op.dense(x, w)), b)
        return (act(y), *(f(y) for f in also))

    return program


LAYER = {"x": (3, 8), "w": (5, 8), "b": (5,)}


def pool(**attrs):
    return lambda x: op.max_pool2d(x, **{"pool_size": 3, "strides": 2, **attrs})


# ---- the composites that check something of their own


def one(groups):
    return groups == 1


def _strided(x, w):
    return op.relu(op.conv2d(x, w, strides=2, groups=one))


STRIDED = Composite("strided", _strided)
SCALED = Composite("scaled", lambda x, w: op.multiply(op.dense(x, w), 0.5))
LAST = Composite(
    "last",
    lambda x: op.softmax(x, axis=-1),
    check=lambda match: require(match.x.shape[-1] > 4, f"rows of {match.x.shape[-1]} are short"),
)
NORM_EPSILON = Composite("norm", lambda x, gamma, beta: op.layer_norm(x, gamma, beta, epsilon=1e-5))
TWICE = Composite("twice", lambda x: op.add(op.relu(x), op.relu(x)))
RESIDUAL = Composite("residual", lambda x, w: op.add(op.conv2d(x, w), op.relu(x)))
BROKEN = Composite("broken", lambda x: op.relu(op.abs(x)), check=lambda match: 1 / 0)


def twice(x):
    y = op.relu(x)
    return op.add(y, y)


def branches(count):
    def program(x, w):
        return op.concatenate([op.relu(op.conv2d(x, w)) for _ in range(count)])

    return program


def shared_bias(x, w, b):
    """The importer's broadcast of the bias has another reader."""
    shaped = op.broadcast_to(b, shape=(1, 4, 6, 6))
    y = op.relu(op.add(op.conv2d(x, w), shaped))
    return op.multiply(y, shaped)


def plain(**attrs):
    return lambda x, w: op.relu(op.conv2d(x, w, **{"strides": 2, **attrs}))


PLAIN = {"x": (1, 4, 9, 9), "w": (4, 4, 3, 3)}


# ---- the table


@dataclass
class Row:
    """A change, and what the record at `root` must say."""

    name: str
    composite: Any  # the name of a built-in one, or one of the above
    program: Any
    args: Any
    root: str
    wanted: dict


def missed(where, wanted, found, **more):
    return {"status": "missed", "where": where, "wanted": wanted, "found": found, **more}


def refused(reason, **more):
    return {"status": "refused", "reason": reason, **more}


def used(where, reader):
    return {"status": "refused", "cause": "used outside", "where": where, "reader": reader}


def shapes(base, **changes):
    return {**base, **changes}


C, A, L, M = "conv2d_relu_conv2d_relu", "attention", "layer_norm_dense", "dense_gelu_dense"
G, R, N, B = "inception", "inverted_residual", "conv2d_narrowed", "conv2d_batch_norm_relu"
NHWC = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
BIASED = "op bias_add or conv2d"

ROWS = [
    # the RFC's program
    Row("another op between", C, chain(between=op.tanh), CHAIN, "relu_1",
        missed("tanh", "op relu", "op tanh")),
    Row("a max_pool2d between", C,
        chain(between=lambda y: op.max_pool2d(y, pool_size=3, padding=1)), CHAIN, "relu_1",
        missed("max_pool2d", "op relu", "op max_pool2d")),
    Row("the first bias along a column", C, chain(add=op.add),
        shapes(CHAIN, b1=(1, 8, 10, 1)), "relu_1",
        missed("add", BIASED, "op add",
               hint="add adds b1 to conv2d: its shape [1, 8, 10, 1] is no bias of "
                    "float32[1, 8, 10, 12]")),
    Row("an importer's reshape to no bias", C,
        chain(add=lambda y, b: op.add(y, op.reshape(b, shape=(1, 8, 10, 1)))),
        shapes(CHAIN, b1=(80,)), "relu_1",
        missed("add", BIASED, "op add",
               hint="an importer's reshape lies before add: its shape [1, 8, 10, 1] is no bias of "
                    "float32[1, 8, 10, 12]")),
    Row("a computed bias", C,
        chain(add=lambda y, b: op.add(y, op.tanh(b))), shapes(CHAIN, b1=(1, 8, 1, 1)), "relu_1",
        missed("add", BIASED, "op add",
               hint="what is added to conv2d is computed by tanh, so it is no bias")),
    Row("a transpose left in", C, chain(between=lambda y: op.transpose(y, axes=(0, 1, 3, 2))),
        CHAIN, "relu_1",
        missed("transpose", "op relu", "op transpose",
               hint="transpose lies between relu and conv2d_1 and changes the axes to "
                    "(0, 1, 3, 2)")),
    Row("a cast left in", C,
        chain(between=lambda y: op.cast(op.cast(y, dtype="float64"), dtype="float32")), CHAIN,
        "relu_1", missed("cast_1", "op relu", "op cast")),
    Row("another reader of the first relu", C, chain(also=[op.tanh]), CHAIN, "relu_1",
        used("relu", "tanh")),
    Row("the first relu returned", C, chain(also=[same]), CHAIN, "relu_1", used("relu", "output")),
    Row("the first layout", C,
        chain(first=NHWC, between=lambda y: op.transpose(y, axes=(0, 3, 1, 2)),
              add=lambda y, b: op.bias_add(y, b, axis=3)),
        shapes(CHAIN, x=(1, 10, 12, 3), w1_=(3, 3, 3, 8)), "relu_1",
        {"status": "matched"}),  # it is moved to that of the second one
    Row("a dtype", C, chain(), {k: (s, "float64") for k, s in CHAIN.items()}, "relu_1",
        refused("only float32 is scheduled, found float64 -> float64", cause="check")),
    Row("an unknown extent", C, chain(), shapes(CHAIN, x=(unknown, 3, 10, 12)), "relu_1",
        refused("x has an extent that is not known when compiling: float32[dynamic, 3, 10, 12]",
                cause="unknown shape", where="x", found="float32[dynamic, 3, 10, 12]")),
    # attention
    Row("tanh for softmax", A, attend(soften=op.tanh), ATTEND, "batch_matmul_1",
        missed("tanh", "op softmax", "op tanh")),
    Row("softmax over the queries", A, attend(soften=lambda y: op.softmax(y, axis=1)), ATTEND,
        "batch_matmul_1", refused("softmax is over axis 1, not over the keys, axis 2",
                                  cause="check")),
    Row("a mask of more batches", A, attend(),
        shapes(ATTEND, q=(1, 7, 8), k=(1, 7, 8)), "batch_matmul_1",
        refused("add makes float32[2, 7, 7] of float32[1, 7, 7] by broadcasting")),
    Row("a scale of each score", A, lambda q, k, v, mask: op.batch_matmul(
        op.softmax(op.multiply(op.batch_matmul(q, k, transpose_b=True), mask)), v),
        ATTEND, "batch_matmul_1",
        refused("the scores are scaled by more than one number, found mask: float32[2, 7, 7]")),
    Row("a power for the scale", A, attend(scaled=lambda y: op.power(y, 2.0)), ATTEND,
        "batch_matmul_1",
        missed("power", "op add, multiply, divide or batch_matmul", "op power")),
    Row("scores that are squashed", A, attend(scaled=lambda y: op.multiply(op.erf(y), 0.125)),
        ATTEND, "batch_matmul_1", missed("erf", "op tanh or batch_matmul", "op erf")),
    Row("the same, the scale in front", A, attend(scaled=lambda y: op.multiply(0.125, op.erf(y))),
        ATTEND, "batch_matmul_1", missed("erf", "op tanh or batch_matmul", "op erf")),
    Row("a cap of each score", A,
        attend(scaled=op.tanh, masked=lambda y, mask: op.multiply(y, mask)), ATTEND,
        "batch_matmul_1", missed("multiply", "a constant of one element",
                                 "an input, float32[2, 7, 7]")),
    Row("a scale of each query", A,
        attend(scaled=lambda y: op.multiply(y, op.exp(y))), ATTEND, "batch_matmul_1",
        used("batch_matmul", "exp")),
    Row("another reader of the shares", A, attend(also=[op.tanh]), ATTEND, "batch_matmul_1",
        used("softmax", "tanh")),
    Row("a subtracted mask", A, attend(masked=op.subtract), ATTEND, "batch_matmul_1",
        missed("subtract", "op add, bias_add, multiply, divide or batch_matmul", "op subtract")),
    Row("shares transposed", A, attend(between=lambda y: op.transpose(y, axes=(0, 2, 1))), ATTEND,
        "batch_matmul_1", refused("the probabilities are transposed before they are used")),
    Row("a reshape of the shares", A, attend(between=lambda y: op.reshape(y, shape=(7, 2, 7))),
        shapes(ATTEND, v=(7, 7, 16)), "batch_matmul_1",
        missed("reshape", "op softmax", "op reshape")),
    # layer_norm and dense
    Row("an op between", L, norm_dense(between=op.tanh), NORM, "gelu",
        missed("tanh", "op layer_norm", "op tanh")),
    Row("another norm", L, norm_dense(norm=lambda x, g, b: op.add(op.multiply(x, g), b)), NORM,
        "gelu", missed("add", "op layer_norm", "op add")),
    Row("another reader of the norm", L, norm_dense(also=[op.tanh]), NORM, "gelu",
        used("layer_norm", "tanh")),
    Row("a norm over another axis", L,
        norm_dense(norm=lambda x, g, b: op.layer_norm(x, g, b, axis=0)),
        shapes(NORM, gamma=(5,), beta=(5,)), "gelu",
        refused("layer_norm is over axis 0, not the last", cause="check")),
    Row("a matmul for the dense", L,
        norm_dense(dense=lambda y, w: op.batch_matmul(y, w, transpose_b=True)),
        shapes(NORM, x=(2, 5, 16), w=(2, 12, 16)), "gelu",
        missed("batch_matmul", "op dense", "op batch_matmul")),
    # dense, gelu, dense
    Row("relu for gelu", M, mlp(act=op.relu), MLP, "bias_add_1",
        missed("relu", "op gelu", "op relu")),
    Row("almost a gelu", M,
        mlp(act=lambda x: op.multiply(op.multiply(x, op.add(op.erf(op.divide(x, 1.5)), 1.0)), 0.5)),
        MLP, "bias_add_1",
        missed("multiply_1", "op gelu", "op multiply",
               hint="erf is of divide by 1.5, not of x / sqrt(2), as in GELU")),
    Row("a bias of each row", M, mlp(add=op.add), shapes(MLP, b1=(5, 1)), "bias_add",
        missed("add", "op bias_add", "op add",
               hint="add adds b1 to dense: its shape [5, 1] is no bias of float32[5, 16]")),
    Row("a dropout by hand", M, mlp(between=lambda y: op.multiply(y, 0.9)), MLP, "bias_add_1",
        missed("multiply", "op gelu", "op multiply")),
    Row("another reader of the hidden", M, mlp(also=[op.tanh]), MLP, "bias_add_1",
        used("gelu", "tanh")),
    Row("the hidden returned", M, mlp(also=[same]), MLP, "bias_add_1", used("gelu", "output")),
    # GoogLeNet's block
    Row("avg for max", G, googlenet(pool=op.avg_pool2d), GOOGLENET, "concatenate",
        missed("avg_pool2d", "op max_pool2d", "op avg_pool2d")),
    Row("a clip in the third branch", G, googlenet(act=lambda y: op.clip(y)), GOOGLENET,
        "concatenate", missed("clip", "op relu", "op clip")),
    Row("an op in the third branch", G, googlenet(five=op.tanh), GOOGLENET, "concatenate",
        missed("tanh", "op relu", "op tanh")),
    Row("the rows concatenated", G, googlenet(axis=2), GOOGLENET, "concatenate",
        refused("the branches must be concatenated along their channels, axis 1; found axis 2")),
    Row("another reader inside a branch", G, googlenet(also=[op.tanh]), GOOGLENET, "concatenate",
        used("relu_1", "tanh")),
    Row("another input for the last branch", G, googlenet(branch=op.abs), GOOGLENET, "concatenate",
        missed("x", "the same value as x: float32[1, 4, 6, 6]", "abs: float32[1, 4, 6, 6]",
               cause="value")),
    # the inverted residual
    Row("fewer groups", R, inverted(groups=4), shapes(INVERTED, wd=(12, 3, 3, 3)), "add",
        refused("conv2d_1 must be depthwise: 12 groups, found 4")),
    Row("another activation", R, inverted(active=op.tanh), INVERTED, "add",
        missed("tanh", "op clip, relu or hard_swish", "op tanh")),
    Row("a wide window at the end", R, inverted(window={"padding": 1}),
        shapes(INVERTED, wp=(4, 12, 3, 3)), "add",
        refused("conv2d_2 must be pointwise: a 1x1 window, found 3x3")),
    Row("another residual", R, inverted(residual=op.abs), INVERTED, "add",
        missed("x", "the same value as x: float32[1, 4, 6, 6]", "abs: float32[1, 4, 6, 6]")),
    # integers
    Row("multiplied, not shifted", N, narrowed(shift=lambda y: op.multiply(y, 3)), NARROWED, "cast",
        missed("multiply", "op right_shift, round, requantize or requantize_by_channel",
               "op multiply")),
    Row("no clip", N, narrowed(bound=same), NARROWED, "cast",
        missed("right_shift", "op clip", "op right_shift")),
    Row("a wide result", N, narrowed(dtype="int16"), NARROWED, "cast",
        refused("the result is int16, not 8 bits")),
    Row("another layout of the weight", N, narrowed(layout={"kernel_layout": "HWIO"}),
        {"x": ((1, 5, 7, 9), "int8"), "w": ((3, 3, 5, 6), "int8"), "b": ((6,), "int32")}, "cast",
        missed("conv2d", "kernel_layout='OIHW'", "kernel_layout='HWIO'",
               attribute="kernel_layout")),
    Row("another reader of the sums", N, narrowed(also=[op.abs]), NARROWED, "cast",
        used("bias_add", "abs")),
    Row("a shift of each channel", N, narrowed(shift=lambda y: op.right_shift(y, y)), NARROWED,
        "cast", refused("argument shift is computed inside the group, by bias_add", cause="cycle")),
    Row("wide inputs", N, narrowed(),
        {"x": ((1, 5, 7, 9), "int16"), "w": ((6, 5, 3, 3), "int16"), "b": ((6,), "int32")}, "cast",
        refused("only int8 and uint8 are narrowed, found int16[1, 5, 7, 9]")),
    # batch_norm
    Row("an op before the norm", B, normed(between=op.tanh), NORMED, "relu",
        missed("tanh", BIASED, "op tanh")),
    Row("another reader of the convolution", B, normed(also=[op.tanh]), NORMED, "relu",
        used("conv2d", "tanh")),
    Row("channels last", B, normed(layout=NHWC),
        shapes(NORMED, x=(1, 6, 6, 4), w=(3, 3, 4, 6)), "relu",
        refused("conv2d: only NCHW, OIHW and NCHW are scheduled, found NHWC, HWIO, NHWC")),
    # dense
    Row("an activation before the bias", "dense", layer(between=op.tanh), LAYER, "relu",
        # Relax has no bias_add: there it is an add with a reason for not being one.
        missed("tanh", "op dense", "op tanh") if GENERATION == "relay" else
        missed("add", "op bias_add or dense", "op add", hint="tanh lies between dense and add")),
    Row("a bias of each row", "dense", layer(add=op.add), shapes(LAYER, b=(3, 1)), "relu",
        missed("add", "op bias_add or dense", "op add",
               hint="add adds b to dense: its shape [3, 1] is no bias of float32[3, 5]")),
    Row("another reader of the sum", "dense", layer(also=[op.tanh]), LAYER, "relu",
        used("bias_add", "tanh")),
    Row("tanh for relu", "dense", layer(act=lambda y: op.relu(op.tanh(y))), LAYER, "relu",
        missed("tanh", "op bias_add or dense", "op tanh")),
    Row("an unknown number of rows", "dense", layer(), shapes(LAYER, x=(unknown, 8)), "relu",
        refused("x has an extent that is not known when compiling: float32[dynamic, 8]")),
    # pools
    Row("a layout", "max_pool2d", pool(layout="NHWC"), {"x": (1, 9, 9, 4)}, "max_pool2d",
        refused("only NCHW is scheduled, found NHWC")),
    Row("a dtype", "max_pool2d", pool(), {"x": ((1, 4, 9, 9), "int32")}, "max_pool2d",
        refused("only float32, int8, uint8 is scheduled, found int32")),
    # several outputs, any number of inputs, one op in two places, a weight that is computed
    Row("the mean of the norm", B, normed(item=1), NORMED, "relu",
        missed("batch_norm", "output 0 of batch_norm", "another of its outputs", cause="output")),
    Row("one branch alone", "parallel_conv2d", branches(1), {"x": (1, 4, 6, 6), "w": (4, 4, 1, 1)},
        "concatenate", missed("concatenate", "2 inputs or more", "1 input", cause="inputs")),
    Row("three branches", G, branches(3), {"x": (1, 4, 6, 6), "w": (4, 4, 1, 1)}, "concatenate",
        missed("concatenate", "4 inputs", "3 inputs", cause="inputs")),
    Row("one relu for two", TWICE, twice, {"x": (3, 5)}, "add",
        missed("relu", "another relu", "an op that is taken already", cause="op taken twice")),
    Row("both inputs changed", RESIDUAL,
        lambda x, w: op.add(op.abs(op.conv2d(x, w)), op.tanh(x)),
        {"x": (1, 4, 6, 6), "w": (4, 4, 1, 1)}, "add",
        missed("abs", "op conv2d", "op abs", also=("at tanh: wanted op conv2d, found op tanh",))),
    Row("a bias that is read elsewhere", "conv2d", shared_bias,
        {"x": (1, 4, 6, 6), "w": (4, 4, 1, 1), "b": (1, 4, 1, 1)}, "relu",
        missed("add", BIASED, "op add", hint="broadcast_to before add is read by multiply too")
        if GENERATION == "relay" else {"status": "matched"}),  # Relax adds what was not broadcast
    Row("a computed weight", C, chain(w1=op.tanh), CHAIN, "relu_1", {"status": "matched", "args": (
        ("x", "float32[1, 3, 10, 12]", "input"), ("w1", "float32[8, 3, 3, 3]", "tanh"),
        ("b1", "float32[8]", "input"), ("w2", "float32[8, 8, 3, 3]", "input"),
        ("b2", "float32[8]", "input"))}),
    # attributes, constants and checks of composites of one's own
    Row("a stride", STRIDED, plain(strides=1), PLAIN, "relu",
        missed("conv2d", "strides=(2, 2)", "strides=(1, 1)", attribute="strides")),
    Row("groups", STRIDED, plain(groups=2), shapes(PLAIN, w=(4, 2, 3, 3)), "relu",
        missed("conv2d", "groups=one", "groups=2", attribute="groups")),
    Row("a constant", SCALED, lambda x, w: op.multiply(op.dense(x, w), 0.25),
        {"x": (3, 8), "w": (5, 8)}, "multiply",
        missed("multiply", "the constant 0.5", "0.25", cause="constant")),
    Row("no constant", SCALED, lambda x, w, y: op.multiply(op.dense(x, w), y),
        {"x": (3, 8), "w": (5, 8), "y": (3, 5)}, "multiply",
        missed("multiply", "the constant 0.5", "an input, float32[3, 5]", cause="constant")),
    Row("an epsilon", NORM_EPSILON, lambda x, g, b: op.layer_norm(x, g, b, epsilon=1e-3),
        {"x": (3, 8), "g": (8,), "b": (8,)}, "layer_norm",
        missed("layer_norm", "epsilon=1e-05", "epsilon=0.001", attribute="epsilon")),
    Row("an axis", LAST, lambda x: op.softmax(x, axis=0), {"x": (5, 6)}, "softmax",
        missed("softmax", "axis=-1", "axis=0", attribute="axis")),
    Row("a shape that a check refuses", LAST, lambda x: op.softmax(x), {"x": (5, 3)}, "softmax",
        refused("rows of 3 are short", cause="check")),
    Row("a check that raises", BROKEN, lambda x: op.relu(op.abs(x)), {"x": (3,)}, "relu",
        {"status": "broken", "reason": "its check raised ZeroDivisionError: division by zero"}),
]  # fmt: skip
if (
    GENERATION == "relay"
):  # any `Any` of an input's is a symbol; of others, tests/whole/relay/test_build_and_run.py
    ROWS = [row for row in ROWS if not any(unknown in shape for shape in row.args.values())]


def explained(row):
    args = {}
    for name, of in row.args.items():
        shape, dtype = of if isinstance(of[-1], str) else (of, "float32")
        args[name] = (tuple(e() if callable(e) else e for e in shape), dtype)
    composite = BUILTIN[row.composite] if isinstance(row.composite, str) else row.composite
    return selfbyoc.explain(emit(row.program, args), composites=[composite]), composite.name


def title(row):
    return f"{getattr(row.composite, 'name', row.composite)}: {row.name}".replace(" ", "_")


@pytest.mark.parametrize("row", ROWS, ids=title)
def test_the_record_names_the_change(row):
    found, name = explained(row)
    records = [r for r in found.of(name) if r.root == row.root]
    assert len(records) == 1, found
    (record,) = records
    assert {field: getattr(record, field) for field in row.wanted} == row.wanted, record
