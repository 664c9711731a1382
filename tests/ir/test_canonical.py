"""Importer noise, one rule at a time: what is read away, and what must not be."""

import numpy as np
import pytest
from harness import assert_close, run_case
from program_graphs import graph_of, kinds

import selfbyoc
from selfbyoc import Case, Composite, op
from selfbyoc.ir.canonical import declined
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir, writer
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.tvm import GENERATION, te

BUILTIN = {c.name: c for c in selfbyoc.BUILTIN}

CONV = {"x": (2, 4, 8, 8), "w": (6, 4, 3, 3)}


def conv(x, w):
    return op.conv2d(x, w, padding=1)


def test_bias_through_reshape():
    """ONNX and PyTorch: add(conv, reshape(bias)) (TVM issue 18173)."""

    def program(x, w, b):
        return op.add(conv(x, w), op.reshape(b, shape=(1, 6, 1, 1)))

    assert kinds(program, **CONV, b=(6,)) == ["conv2d", "bias_add"]


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_a_bias_that_is_stored_in_another_dtype(dtype):
    def program(x, w, b):
        return op.relu(op.add(op.cast(b, dtype="float32"), op.dense(x, w)))

    case = Case(program, x=(3, 8), w=(5, 8), b=((5,), dtype), constants=("w", "b"))
    run = run_case(BUILTIN["dense"], case, composites=selfbyoc.BUILTIN)
    assert run.counts == {"dense": 1}
    assert_close(run)
    shapes = {"x": ((3, 8), "float32"), "w": ((5, 8), "float32"), "b": ((5,), dtype)}
    assert [c.kind for c in ir.read(emit(program, shapes)["main"])] == [
        "cast", "dense", "bias_add", "relu",
    ]  # fmt: skip


def test_a_bias_that_is_computed_is_none():
    def program(x, w, b):
        return op.add(op.dense(x, w), op.cast(op.exp(b), dtype="float32"))

    shapes = {"x": ((3, 8), "float32"), "w": ((5, 8), "float32"), "b": ((5,), "float16")}
    assert [c.kind for c in ir.read(emit(program, shapes)["main"])] == [
        "dense", "exp", "cast", "add",
    ]  # fmt: skip


@pytest.mark.parametrize(("x", "w"), [
    ((1, 4, 3, 3), (6, 4, 3, 3)), ((1, 4, 3, 3), (1, 4, 3, 3)), ((1, 4, 8, 8), (1, 4, 3, 3)),
    ((2, 4, 3, 3), (1, 4, 3, 3)),
])  # fmt: skip
def test_bias_of_a_result_with_one_element_a_channel_or_one_channel(x, w):
    """There the reshaped bias has the shape of the whole result."""
    channels = w[0]

    def program(x, w, b):
        return op.relu(op.add(op.conv2d(x, w), op.reshape(b, shape=(1, channels, 1, 1))))

    case = Case(program, x=x, w=w, b=(channels,))
    run = run_case(BUILTIN["conv2d"], case, composites=selfbyoc.BUILTIN)
    assert run.counts == {"conv2d": 1}
    assert kinds(program, x=x, w=w, b=(channels,)) == ["conv2d", "bias_add", "relu"]
    assert_close(run)


@pytest.mark.parametrize("constants", [(), ("b",)])
def test_a_residual_of_one_element_a_channel(constants):
    """Nothing tells it from a bias that has its shape already; both are added right."""

    def program(x, w, b):
        return op.relu(op.add(op.conv2d(x, w), b))

    case = Case(program, x=(1, 4, 3, 3), w=(6, 4, 3, 3), b=(1, 6, 1, 1), constants=constants)
    run = run_case(BUILTIN["conv2d_add"], case, composites=selfbyoc.BUILTIN)
    assert run.counts == {"conv2d_add": 1}
    assert_close(run)
    own = Composite("biased", lambda x, w, b: op.relu(op.bias_add(op.conv2d(x, w), b)))
    (record,) = selfbyoc.explain(run.mod, composites=[own]).why_not("relu")
    assert "has the shape of conv2d's whole result, float32[1, 6, 1, 1], so" in record.hint


def test_bias_through_reshape_and_broadcast_to():
    def program(x, w, b):
        shaped = op.reshape(b, shape=(1, 6, 1, 1))
        return op.add(conv(x, w), op.broadcast_to(shaped, shape=(2, 6, 8, 8)))

    assert kinds(program, **CONV, b=(6,)) == ["conv2d", "bias_add"]


def test_bias_stored_with_four_axes():
    def program(x, w, b):
        return op.add(b, conv(x, w))

    assert kinds(program, **CONV, b=(1, 6, 1, 1)) == ["conv2d", "reshape", "bias_add"]


@pytest.mark.parametrize("shape", [(2, 6, 8, 8), (1, 6, 8, 8), (1, 1, 8, 8), (2, 6, 1, 1), (8,)])
def test_what_is_no_bias(shape):
    """A residual, a map over positions, one value an image, one a column."""
    assert kinds(lambda x, w, b: op.add(conv(x, w), b), **CONV, b=shape) == ["conv2d", "add"]


def test_a_shaped_bias_with_another_reader_stays():
    def program(x, w, b):
        shaped = op.reshape(b, shape=(1, 6, 1, 1))
        return op.multiply(op.add(conv(x, w), shaped), shaped)

    assert kinds(program, **CONV, b=(6,))[-1] == "multiply"
    assert "reshape" in kinds(program, **CONV, b=(6,))


def test_a_computed_vector_is_no_bias():
    def program(x, w, b):
        return op.add(conv(x, w), op.reshape(op.tanh(b), shape=(1, 6, 1, 1)))

    found = kinds(program, **CONV, b=(6,))
    assert found.count("tanh") == 1
    assert found[-1] in ("bias_add", "add")


def test_dense_on_the_transposed_weight():
    def program(x, w):
        return op.dense(x, op.transpose(w, axes=(1, 0)))

    assert kinds(program, x=(3, 8), w=(8, 5)) in (["dense"], ["transpose", "dense"])


def test_silu():
    def program(x):
        return op.multiply(op.sigmoid(x), x)

    assert kinds(program, x=(3, 8)) == ["silu"]


def test_no_silu_of_another_value():
    assert kinds(lambda x, y: op.multiply(x, op.sigmoid(y)), x=(3,), y=(3,)) == [
        "sigmoid",
        "multiply",
    ]


def test_no_silu_where_the_gate_is_read_twice():
    def program(x):
        gate = op.sigmoid(x)
        return op.add(op.multiply(x, gate), gate)

    assert kinds(program, x=(3, 8)) == ["sigmoid", "multiply", "add"]


HARD_SWISHES = {
    "after": lambda x: op.divide(op.multiply(x, op.clip(op.add(x, 3.0))), 6.0),
    "a sixth": lambda x: op.multiply(op.multiply(op.clip(op.add(3.0, x)), x), 1 / 6),
    "the gate's": lambda x: op.multiply(op.divide(op.clip(op.add(x, 3.0)), 6.0), x),
    "hard sigmoid": lambda x: op.multiply(
        x, op.clip(op.add(op.multiply(1 / 6, x), 0.5), a_min=0, a_max=1)
    ),
    "a quotient": lambda x: op.multiply(
        op.clip(op.add(0.5, op.divide(x, 6.0)), a_min=0, a_max=1), x
    ),
    "before": lambda x: op.multiply(op.divide(x, 6.0), op.clip(op.add(x, 3.0))),
    "limits of their own": lambda x: op.divide(
        op.multiply(x, op.minimum(op.maximum(op.add(x, 3.0), 0.0), 6.0)), 6.0
    ),
}


@pytest.mark.parametrize("form", sorted(HARD_SWISHES))
def test_hard_swish(form):
    assert kinds(HARD_SWISHES[form], x=(3, 8)) == ["hard_swish"]


NO_HARD_SWISHES = {
    "slope": lambda x: op.multiply(x, op.clip(op.add(op.multiply(0.2, x), 0.5), a_min=0, a_max=1)),
    "shift": lambda x: op.divide(op.multiply(x, op.clip(op.add(x, 2.0))), 6.0),
    "limit": lambda x: op.divide(op.multiply(x, op.clip(op.add(x, 3.0), a_max=7)), 6.0),
    "lower limit": lambda x: op.divide(op.multiply(x, op.clip(op.add(x, 3.0), a_min=-1)), 6.0),
    "factor": lambda x: op.divide(op.multiply(x, op.clip(op.add(x, 3.0))), 5.0),
    "turned over": lambda x: op.divide(6.0, op.multiply(x, op.clip(op.add(x, 3.0)))),
}


@pytest.mark.parametrize("form", sorted(NO_HARD_SWISHES))
def test_no_hard_swish_of_other_numbers(form):
    assert "hard_swish" not in kinds(NO_HARD_SWISHES[form], x=(3, 8))


def test_no_hard_swish_of_two_values_or_where_the_gate_is_read_twice():
    def two(x, y):
        return op.divide(op.multiply(x, op.clip(op.add(y, 3.0))), 6.0)

    def twice(x):
        gate = op.clip(op.add(x, 3.0))
        return op.add(op.divide(op.multiply(x, gate), 6.0), gate)

    def wider(x, three):  # of [8], but for the number's axes
        return op.multiply(x, op.divide(op.clip(op.add(x, three)), 6.0))

    assert "hard_swish" not in kinds(two, x=(3,), y=(3,))
    assert "hard_swish" not in kinds(twice, x=(3, 8))
    three = {"three": np.full((1, 1, 1), 3, "float32")}
    graph = ir.read(emit(wider, {"x": (8,)}, three)["main"])
    assert "hard_swish" not in [call.kind for call in graph]


GELUS = {
    "divide": lambda x: op.multiply(op.multiply(x, op.add(op.erf(op.divide(x, 2**0.5)), 1.0)), 0.5),
    "multiply": lambda x: op.multiply(
        op.multiply(0.5, x), op.add(1.0, op.erf(op.multiply(x, 0.5**0.5)))
    ),
    "half of the gate": lambda x: op.multiply(
        x, op.multiply(op.add(op.erf(op.divide(x, 2**0.5)), 1.0), 0.5)
    ),
    "each half of the gate": lambda x: op.multiply(
        x, op.add(0.5, op.multiply(op.erf(op.multiply(x, 0.5**0.5)), 0.5))
    ),
}


@pytest.mark.parametrize("form", GELUS)
def test_gelu(form):
    assert kinds(GELUS[form], x=(3, 8)) == ["gelu"]


def test_almost_a_gelu():
    """Another constant is another function."""

    def program(x):
        return op.multiply(op.multiply(x, op.add(op.erf(op.divide(x, 1.5)), 1.0)), 0.5)

    assert "gelu" not in kinds(program, x=(3, 8))


@pytest.mark.parametrize(("one", "weight"), [(1.0, 0.5), (0.5, 1.0), (0.5, 0.25)])
def test_almost_a_gelu_of_two_halves(one, weight):
    def program(x):
        gate = op.add(one, op.multiply(op.erf(op.multiply(x, 0.5**0.5)), weight))
        return op.multiply(x, gate)

    assert "gelu" not in kinds(program, x=(3, 8))


def test_a_gate_of_halves_that_is_read_elsewhere():
    def program(x):
        bell = op.multiply(op.erf(op.multiply(x, 0.5**0.5)), 0.5)
        return op.subtract(op.multiply(x, op.add(0.5, bell)), bell)

    assert "gelu" not in kinds(program, x=(3, 8))


def test_a_batch_matmul_of_a_repeated_matrix():
    """PyTorch's Linear of three axes, by Relay's importer; one that differs is a product of
    batches.
    """

    def linear(x, w):
        matrix = op.transpose(w, axes=(1, 0))
        return op.batch_matmul(x, op.broadcast_to(matrix, shape=(3, 8, 5)))

    def of_batches(x, w):
        return op.batch_matmul(x, op.transpose(w, axes=(0, 2, 1)))

    assert kinds(linear, x=(3, 4, 8), w=(5, 8)) == ["dense"]
    assert kinds(of_batches, x=(3, 4, 8), w=(3, 5, 8)) == ["batch_matmul"]
    run = run_case(
        BUILTIN["dense"], Case(linear, x=(3, 4, 8), w=(5, 8), constants=("w",)),
        composites=selfbyoc.BUILTIN,
    )  # fmt: skip
    assert run.counts == {"dense": 1}
    assert_close(run)


def test_a_matrix_that_is_repeated_for_others_too():
    def program(x, w):
        spread = op.broadcast_to(w, shape=(3, 8, 8))
        return op.add(op.batch_matmul(x, spread), spread)

    assert "batch_matmul" in kinds(program, x=(3, 8, 8), w=(8, 8))


def test_relu_written_as_maximum():
    assert kinds(lambda x: op.maximum(x, 0.0), x=(3, 8)) == ["relu"]
    assert kinds(lambda x: op.maximum(x, 1.0), x=(3, 8)) == ["maximum"]


CLIPS = {
    "from below": (lambda x: op.minimum(op.maximum(x, -1.0), 6.0), (-1.0, 6.0)),
    "from above": (lambda x: op.maximum(op.minimum(x, 6.0), -1.0), (-1.0, 6.0)),
    "numbers first": (lambda x: op.maximum(-1.0, op.minimum(6.0, x)), (-1.0, 6.0)),
    "relu below": (lambda x: op.minimum(op.relu(x), 6.0), (0.0, 6.0)),
    "relu above": (lambda x: op.relu(op.minimum(x, 6.0)), (0.0, 6.0)),
    "maximum with 0": (lambda x: op.maximum(op.minimum(x, 6.0), 0.0), (0.0, 6.0)),
    "crossing, as a clip": (lambda x: op.maximum(op.minimum(x, -1.0), 2.0), (2.0, -1.0)),
    "crossing relu": (lambda x: op.relu(op.minimum(x, -3.0)), (0.0, -3.0)),
}


@pytest.mark.parametrize("name", CLIPS)
def test_clip_written_as_minimum_and_maximum(name):
    program, limits = CLIPS[name]
    (call,) = graph_of(program, x=(3, 8)).ops
    assert call.kind == "clip"
    assert (call.attrs["a_min"], call.attrs["a_max"]) == limits


@pytest.mark.parametrize(
    "program",
    [
        lambda x: op.minimum(op.maximum(x, 2.0), -1.0),  # the upper limit counts: no clip
        lambda x: op.maximum(op.maximum(x, 2.0), -1.0),
        lambda x: op.minimum(op.maximum(x, op.abs(x)), 1.0),
        lambda x: (lambda below: op.add(op.relu(below), below))(op.minimum(x, 6.0)),
    ],
)
def test_no_clip(program):
    assert "clip" not in kinds(program, x=(3, 8))


def test_global_pool_written_as_mean():
    def mean(x):
        return op.mean(x, axis=(2, 3), keepdims=True)

    assert kinds(mean, x=(2, 4, 8, 8)) == ["global_avg_pool2d"]
    assert kinds(lambda x: op.mean(x, axis=(1, 3), keepdims=True), x=(2, 4, 8, 8)) == ["mean"]
    last = ir.read(
        emit(lambda x: op.mean(x, axis=(1, 2), keepdims=True), {"x": (2, 8, 8, 4)})["main"]
    )
    assert [(c.kind, c.attrs) for c in last.ops] == [("global_avg_pool2d", {"layout": "NHWC"})]


def test_batched_matmul_of_a_transposed_matrix():
    def program(a, b):
        return op.batch_matmul(a, b, transpose_b=True)

    graph = ir.read(
        emit(program, {"a": ((2, 3, 8), "float32"), "b": ((2, 5, 8), "float32")})["main"]
    )
    (call,) = graph.ops
    assert (call.kind, call.attrs["transpose_b"]) == ("batch_matmul", True)


def test_attributes_are_the_same_on_both_generations():
    """The eight that a converter needs (wish B3)."""

    def program(x, w):
        return op.conv2d(x, w, strides=2, padding=(1, 0), dilation=(1, 2), groups=2)

    (call,) = ir.read(
        emit(program, {"x": ((1, 4, 9, 9), "float32"), "w": ((6, 2, 3, 3), "float32")})["main"]
    ).ops
    assert call.attrs == {
        "strides": (2, 2), "padding": (1, 0, 1, 0), "dilation": (1, 2), "groups": 2,
        "data_layout": "NCHW",
        "kernel_layout": "OIHW", "out_layout": "NCHW", "out_dtype": None,
    }  # fmt: skip


IDENTITIES = {
    "reshape": lambda y: op.reshape(y, shape=(3, 8)),
    "cast": lambda y: op.cast(y, dtype="float32"),
    "transpose": lambda y: op.transpose(y, axes=(0, 1)),
    "broadcast_to": lambda y: op.broadcast_to(y, shape=(3, 8)),
}


@pytest.mark.parametrize("identity", IDENTITIES)
def test_what_changes_nothing_is_read_away(identity):
    same = IDENTITIES[identity]
    assert kinds(lambda x: op.relu(same(op.tanh(x))), x=(3, 8)) == ["tanh", "relu"]
    # An input has no op that could take it, nor has a value that is read twice: the reader does.
    assert kinds(lambda x: op.relu(same(x)), x=(3, 8)) == ["relu"]
    y = kinds(lambda x: op.add(op.relu(same(x)), op.tanh(same(x))), x=(3, 8))
    assert sorted(y) == ["add", "relu", "tanh"]


@pytest.mark.parametrize("columns", [8, 1])
@pytest.mark.parametrize("identity", IDENTITIES)
def test_what_changes_nothing_within_a_norm(identity, columns):
    """What is before it is a norm, too: of the root of a mean of squares."""
    if columns == 1 and identity in ("reshape", "broadcast_to"):
        same = {"reshape": op.reshape, "broadcast_to": op.broadcast_to}[identity]

        def as_it_is(y):
            return same(y, shape=(3, 1))
    else:
        as_it_is = IDENTITIES[identity]

    def program(x, gamma, beta):
        centred = op.subtract(x, op.mean(x, axis=-1, keepdims=True))
        variance = op.mean(op.multiply(centred, centred), axis=-1, keepdims=True)
        normal = op.divide(centred, op.sqrt(op.add(variance, 1e-5)))
        return op.relu(op.add(as_it_is(op.multiply(normal, gamma)), beta))

    shapes = {"x": (3, columns), "gamma": (columns,), "beta": (columns,)}
    assert kinds(program, **shapes) == ["layer_norm", "relu"]


def transposed(x, *orders):
    for axes in orders:
        x = op.transpose(x, axes=axes)
    return x


@pytest.mark.parametrize(
    ("orders", "left"),
    [
        ([(2, 0, 1), (1, 2, 0)], []),
        ([(2, 0, 1), (2, 0, 1)], [(1, 2, 0)]),
        ([(1, 0, 2), (0, 2, 1), (2, 1, 0)], [(0, 2, 1)]),
    ],
)
def test_transposes_one_after_another_are_one(orders, left):
    shape = (3, 4, 5)
    graph = graph_of(lambda x: op.exp(transposed(op.relu(x), *orders)), x=shape)
    assert [c.attrs["axes"] for c in graph.ops if c.kind == "transpose"] == left
    marked = Composite("marked", lambda x: op.exp(x), compute=lambda x: te_exp(x))
    case = Case(lambda x: op.exp(transposed(x, *orders)), x=shape)
    assert_close(run_case(marked, case))


def te_exp(x):
    return te.compute(x.shape, lambda *i: te.exp(x(*i)), name="exp")


C = 0.7978845608
TANH_GELUS = {
    "as one": lambda x: op.gelu_tanh(x),
    "gpt2": lambda x: op.multiply(
        op.multiply(0.5, x),
        op.add(1.0, op.tanh(op.multiply(C, op.add(x, op.multiply(0.044715, op.power(x, 3.0)))))),
    ),
    "products": lambda x: op.multiply(
        op.multiply(x, op.add(op.tanh(op.multiply(op.multiply(x, C), quartic(x))), 1.0)), 0.5
    ),
}


def quartic(x):
    return op.add(op.multiply(op.multiply(x, x), 0.044715), 1.0)


@pytest.mark.parametrize("form", TANH_GELUS)
def test_gelu_by_tanh(form):
    assert kinds(TANH_GELUS[form], x=(3, 7)) == ["gelu_tanh"]
    pattern = Composite("pattern", lambda x, w: op.gelu_tanh(op.dense(x, w)))
    case = Case(lambda x, w: TANH_GELUS[form](op.dense(x, w)), x=(5, 9), w=(13, 9))
    assert_close(run_case(pattern, case))


@pytest.mark.parametrize(
    "other",
    [
        lambda x, y: op.multiply(op.multiply(0.5, y), op.add(1.0, op.tanh(op.multiply(C, x)))),
        lambda x, y: op.multiply(
            op.multiply(0.5, x), op.add(1.0, op.tanh(op.multiply(quartic(x), op.multiply(y, C))))
        ),
        lambda x, y: op.multiply(
            op.multiply(0.5, x), op.add(1.0, op.tanh(op.multiply(quartic(x), op.multiply(x, 0.8))))
        ),
    ],
)
def test_what_is_no_gelu_by_tanh(other):
    assert "gelu_tanh" not in kinds(other, x=(3, 7), y=(3, 7))


def test_two_transposes_of_matrices_at_the_end_of_a_kernel():
    """Nobody in its function reads them, as the factors of a product would be read."""
    marked = Composite("marked", lambda x: op.exp(x), compute=lambda x: te_exp(x))
    turned = [(0, 2, 1), (0, 2, 1)]
    case = Case(lambda x: op.softmax(transposed(op.exp(x), *turned)), x=(3, 4, 5))
    assert_close(run_case(marked, case))


def test_a_transpose_that_others_read_stays():
    def program(x):
        turned = op.transpose(op.relu(x), axes=(1, 0, 2))
        return op.exp(op.transpose(turned, axes=(2, 1, 0))), op.tanh(turned)

    assert kinds(program, x=(3, 4, 5)).count("transpose") == 2


def test_the_transpose_of_a_product_stays_the_products():
    def program(x, y):
        heads = op.transpose(y, axes=(1, 0, 2))
        return op.batch_matmul(x, op.transpose(heads, axes=(0, 2, 1)))

    graph = graph_of(program, x=(4, 7, 5), y=(6, 4, 5))
    assert [c.kind for c in graph.ops] == ["transpose", "batch_matmul"]
    assert graph.ops[1].attrs["transpose_b"]


def test_what_changes_nothing_is_read_twice_by_one_op():
    def program(x):
        same = op.reshape(x, shape=(5, 3))
        return op.add(same, same)

    graph = ir.read(emit(program, {"x": (5, 3)})["main"])
    (add,) = graph.ops
    assert add.inputs == graph.inputs * 2


@pytest.mark.parametrize("identity", IDENTITIES)
def test_what_changes_nothing_is_cut_out_with_its_composite(identity):
    same = IDENTITIES[identity]
    case = Case(
        lambda x, w, b: same(op.relu(op.bias_add(same(op.dense(same(x), w)), b))),
        x=(3, 8), w=(8, 8), b=(8,), constants=["w", "b"],
    )  # fmt: skip
    run = run_case(BUILTIN["dense"], case)
    assert run.counts == {"dense": 1}
    assert_close(run)


def dropped():
    """tanh, dropout, relu; the vocabulary has no dropout."""
    if GENERATION == "relay":
        from tvm import relay

        x = relay.var("x", shape=(3, 5))
        y = relay.nn.relu(relay.nn.dropout(relay.tanh(x)))
        from selfbyoc.tvm import tvm

        return relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], y)))
    from tvm import relax

    x = relax.Var("x", relax.TensorType((3, 5), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.dropout(builder.emit(relax.op.tanh(x)), 0.5))
            y = builder.emit(relax.op.nn.relu(builder.emit(relax.TupleGetItem(y, 0))))
            out = builder.emit_output(y)
        builder.emit_func_output(out)
    return builder.get()


def test_a_dropout_is_read_away_and_cut_out():
    composite = Composite("tanh_relu", lambda x: op.relu(op.tanh(x)))
    alone = Composite("tanh", lambda x: op.tanh(x))
    graph = ir.read(dropped()["main"])
    assert [call.kind for call in graph] == ["tanh", "relu"]
    assert ("nn.dropout", "nn.dropout", "tanh") in graph.absorbed
    for used in (composite, alone):
        parted = selfbyoc.partition_for_tefuse(dropped(), composites=[used])
        assert selfbyoc.report(parted).counts == {used.name: 1}
    x = np.random.default_rng(0).standard_normal((3, 5), np.float32)
    found = selfbyoc.build(dropped(), composites=[composite])(x)[0]
    np.testing.assert_allclose(found, np.maximum(np.tanh(x), 0), atol=1e-6)


def _merged(x, w, b):
    y = op.dense(op.reshape(x, shape=(14, 16)), w)
    return op.reshape(op.bias_add(y, b, axis=-1), shape=(2, 7, 12))


def test_rows_that_are_merged_and_split_again():
    """PyTorch's linear on a batch."""
    shapes = {"x": (2, 7, 16), "w": (12, 16), "b": (12,)}
    assert kinds(_merged, **shapes) in (["dense", "bias_add"], ["transpose", "dense", "bias_add"])
    case = Case(lambda x, w, b: op.gelu(_merged(x, w, b)), **shapes, constants=["w", "b"])
    run = run_case(BUILTIN["dense"], case)
    assert run.counts == {"dense": 1}
    assert_close(run)


def test_rows_that_are_split_otherwise_stay():
    def program(x, w):
        return op.reshape(op.dense(op.reshape(x, shape=(14, 16)), w), shape=(7, 2, 12))

    assert kinds(program, x=(2, 7, 16), w=(12, 16)).count("reshape") == 2


def test_a_vector_is_no_row_without_its_axis():
    """Kernels of dense layers count rows: a vector that was made one row stays one."""

    def program(x, w):
        return op.reshape(op.dense(op.reshape(x, shape=(1, 16)), w), shape=(12,))

    assert kinds(program, x=(16,), w=(12, 16)).count("reshape") == 2
    run = run_case(BUILTIN["dense"], Case(program, x=(16,), w=(12, 16), constants=["w"]))
    assert run.counts == {"dense": 1}
    assert_close(run)


@pytest.mark.parametrize("half", ["dense", "bias_add"])
def test_half_of_what_was_merged_is_refused(half):
    """The IR has no dense layer of three axes here: only the bias_add's reshape makes three."""
    one = {
        "dense": Composite("half", lambda x, w: op.dense(x, w)),
        "bias_add": Composite("half", lambda x, b: op.bias_add(x, b)),
    }[half]
    case = Case(_merged, x=(2, 7, 16), w=(12, 16), b=(12,))
    run = run_case(one, case)
    assert run.counts == {}
    assert_close(run)
    args = {n: (s, d) for n, (s, d) in case.args.items()}
    (record,) = selfbyoc.explain(emit(_merged, args), composites=[one]).records
    other = "bias_add" if half == "dense" else "dense"
    assert (record.cause, record.where, record.reader) == ("tied", half, other)


def test_batches_that_are_merged_and_split_again():
    """PyTorch's attention: heads as one axis of batches."""

    def program(q, k, v):
        a, b = op.reshape(q, shape=(6, 5, 8)), op.reshape(k, shape=(6, 5, 8))
        scores = op.reshape(op.batch_matmul(a, b, transpose_b=True), shape=(2, 3, 5, 5))
        shares = op.reshape(op.softmax(scores), shape=(6, 5, 5))
        y = op.batch_matmul(shares, op.reshape(v, shape=(6, 5, 7)))
        return op.reshape(y, shape=(2, 3, 5, 7))

    shapes = {"q": (2, 3, 5, 8), "k": (2, 3, 5, 8), "v": (2, 3, 5, 7)}
    assert kinds(program, **shapes) == ["batch_matmul", "softmax", "batch_matmul"]
    run = run_case(BUILTIN["attention"], Case(program, **shapes))
    assert run.counts == {"attention": 1}
    assert_close(run)


def test_a_matrix_repeated_for_every_batch():
    if GENERATION == "relay":
        pytest.skip("Relay has no matmul that broadcasts")
    from tvm import relax

    x = relax.Var("x", relax.TensorType((2, 5, 8), "float32"))
    w = relax.Var("w", relax.TensorType((8, 6), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w]):
        with builder.dataflow():
            wide = builder.emit(relax.op.broadcast_to(w, (2, 8, 6)))
            out = builder.emit_output(relax.op.matmul(x, wide))
        builder.emit_func_output(out)
    graph = ir.read(builder.get()["main"])
    assert [call.kind for call in graph] == ["transpose", "dense"]
    arrays = [np.random.default_rng(0).standard_normal(s) for s in ((2, 5, 8), (8, 6))]
    np.testing.assert_allclose(evaluate(graph, arrays)[0], arrays[0] @ arrays[1], atol=1e-9)


def test_what_a_rule_declines():
    def program(x, w, b):
        return op.relu(op.add(op.cast(op.cast(conv(x, w), dtype="float16"), dtype="float32"), b))

    args = {**CONV, "b": (1, 6, 1, 1)}
    graph = ir.read(emit(program, {n: (s, "float32") for n, s in args.items()})["main"])
    assert [(d.op, d.kind) for d in declined(graph)] == [("cast", "conv2d"), ("cast_1", "cast")]
    assert declined(graph)[0].reason == (
        "cast lies between conv2d and cast_1 and changes float32[2, 6, 8, 8] to float16[2, 6, 8, 8]"
    )


@pytest.mark.skipif(GENERATION == "relay", reason="Relay has an lrn of its own")
def test_lrn_of_the_onnx_importer():
    onnx = pytest.importorskip("onnx")
    make = onnx.helper
    x, y = (make.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, 7, 5, 6]) for n in "xy")
    node = make.make_node("LRN", ["x"], ["y"], size=5, alpha=0.2, beta=0.6, bias=1.5)
    graph = make.make_graph([node], "g", [x], [y])
    proto = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)
    from selfbyoc.models.onnx_model import import_onnx

    mod = import_onnx(proto)
    (call,) = ir.read(mod["main"]).ops
    assert call.kind == "lrn"
    assert call.attrs == pytest.approx(
        {"size": 5, "axis": 1, "bias": 1.5, "alpha": 0.2, "beta": 0.6}
    )
    found, data = Composite("lrn", lambda x: op.lrn(x)), np.random.default_rng(0)
    image = data.standard_normal((1, 7, 5, 6)).astype("float32")
    squares = np.pad(image**2, ((0, 0), (2, 2), (0, 0), (0, 0)))
    sums = sum(squares[:, i : i + 7] for i in range(5))
    expected = image / (1.5 + 0.2 / 5 * sums) ** 0.6
    library = selfbyoc.build(mod, composites=[found])
    assert selfbyoc.explain(mod, composites=[found]).report.counts == {"lrn": 1}
    np.testing.assert_allclose(library(image)[0], expected, rtol=1e-5)


def guarded_module(mask, factor, queries=5, *, whole=False, by="any"):
    """PyTorch's softmax: rows of -inf alone give 0, as it exports programs or (`isnan`) ONNX."""
    from tvm import relax

    def body(q, k, m):
        scores = relax.op.multiply(relax.op.matmul(q, k), relax.const(factor, "float32"))
        scores = {"none": lambda: scores, "added": lambda: relax.op.add(scores, m),
                  "multiplied": lambda: relax.op.multiply(scores, m)}[mask]()  # fmt: skip
        soft = relax.op.nn.softmax(scores)
        if by == "isnan":
            safe = relax.op.where(relax.op.isnan(soft), relax.const(0.0, "float32"), soft)
            return [relax.op.matmul(safe, k) if whole else safe]
        is_inf = relax.op.equal(scores, relax.const(-np.inf, "float32"))
        some = relax.op.astype(relax.op.logical_not(is_inf), "int8")
        some = relax.op.astype(relax.op.max(some, axis=-1, keepdims=True), "bool")
        zeros = relax.op.full_like(soft, relax.const(0.0, "float32"))
        safe = relax.op.where(relax.op.logical_not(some), zeros, soft)
        return [relax.op.matmul(safe, k) if whole else safe]

    rows = ((2, queries, 5), "float32")
    mod = writer.emit_module({"q": rows, "k": ((2, 5, 5), "float32"), "m": rows}, body)
    return relax.transform.Normalize()(mod)


def guarded(mask, factor):
    return ir.read(guarded_module(mask, factor)["main"])


@pytest.mark.skipif(GENERATION == "relay", reason="torch.export is imported by Relax only")
@pytest.mark.parametrize("mask", ["none", "added", "multiplied"])
@pytest.mark.parametrize("factor", [0.5, np.inf])
def test_a_guarded_softmax(mask, factor):
    last = guarded(mask, factor).ops[-1]
    assert (last.kind, last.attrs["guarded"]) == ("softmax", True)


@pytest.mark.skipif(GENERATION == "relay", reason="torch.export is imported by Relax only")
def test_a_compute_that_does_not_guard_is_refused():
    def plain(ins, call):
        (x,), axis = ins, call.attrs["axis"]
        return te.compute(x.shape, lambda *i: te.exp(x(*i)) + float(axis), name="plain")

    own = Composite("own", lambda x: op.softmax(x), compute={"softmax": plain})
    (record,) = selfbyoc.explain(guarded_module("none", 0.5), composites=[own]).records
    assert record.status == "refused"
    assert "guarded" in record.reason


@pytest.mark.parametrize("by", ["any", "isnan"])
@pytest.mark.skipif(GENERATION == "relay", reason="torch.export is imported by Relax only")
@pytest.mark.parametrize(
    ("taken", "queries"),
    [("attention", 37), ("attention", 3), ("softmax", 37), ("softmax", 3), ("rows", 5)],
)
def test_a_row_of_minus_infinity_alone_gives_zeros(taken, queries, by):
    """By attention of many and of few queries, by softmax, and by the op's own compute; where there
    was NaN, that, or (`isnan`) zeros too.
    """
    mod = guarded_module("added", 0.5, queries, whole=taken == "attention", by=by)
    own = [Composite("rows", lambda x: op.softmax(x))] if taken == "rows" else None
    library = selfbyoc.build(mod, composites=own)
    products = {"batch_matmul": 1} if taken == "softmax" else {}
    assert library.report.counts == {taken: 1} | products
    rng = np.random.default_rng(0)
    q, k, m = (rng.standard_normal((2, n, 5)).astype("float32") for n in (queries, 5, queries))
    m[0, 1], m[0, 2, :4], m[1, 2, 0], m[1, 0, 2] = -np.inf, -np.inf, np.nan, -np.inf
    (found,) = library(q, k, m)
    (plain,) = selfbyoc.build(selfbyoc.partition_for_tefuse(mod, composites=[]))(q, k, m)
    np.testing.assert_allclose(found, plain, rtol=1e-5, atol=1e-6)
    assert not found[0, 1].any()
    assert np.isnan(found[1, 2]).all() if by == "any" else not found[1, 2].any()


def test_a_guarded_softmax_of_onnx():
    """As `torch.onnx.export` writes scaled_dot_product_attention: one kernel, zeros for NaN."""
    import onnx
    from onnx import TensorProto, helper

    from selfbyoc.models.onnx_model import import_onnx

    shapes = {"q": (2, 37, 5), "k": (2, 5, 21), "v": (2, 21, 7), "m": (2, 37, 21)}
    nodes = [
        ("MatMul", "q k", "raw"), ("Add", "raw m", "scores"), ("Softmax", "scores", "soft"),
        ("IsNaN", "soft", "is_nan"), ("Where", "is_nan zero soft", "safe"),
        ("MatMul", "safe v", "y"),
    ]  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node(kind, ins.split(), [out]) for kind, ins, out in nodes], "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 37, 7))],
        [helper.make_tensor("zero", TensorProto.FLOAT, (), [0.0])],
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(proto)
    library = selfbyoc.build(import_onnx(proto))
    assert library.report.counts == {"attention": 1}
    rng = np.random.default_rng(0)
    q, k, v, m = (rng.standard_normal(shape).astype("float32") for shape in shapes.values())
    m[0, 3], m[0, 4, :20], m[1, 5, 20] = -np.inf, -np.inf, np.nan
    scores = q @ k + m
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        soft = powers / powers.sum(axis=-1, keepdims=True)
    expected = np.where(np.isnan(soft), 0, soft) @ v
    np.testing.assert_allclose(library(q, k, v, m)[0], expected, rtol=1e-5, atol=1e-5)
    assert not expected[0, 3].any()
    assert not expected[1, 5].any()
