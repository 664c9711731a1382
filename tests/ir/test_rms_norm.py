"""RMS norm as models spell it: read as one op, and what is none stays as it is."""

import numpy as np
import pytest
from harness import assert_close, model, random_args, run_case
from program_graphs import kinds

import selfbyoc
from selfbyoc import Case, op
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.tvm import GENERATION

SHAPES = {"x": (2, 5, 37), "g": (37,)}
NORM = next(c for c in selfbyoc.BUILTIN if c.name == "rms_norm")


def mean_of(square, axis=(-1,), keepdims=True):
    return op.mean(square, axis=axis, keepdims=keepdims)


def spelled(
    square=lambda x: op.power(x, 2.0),
    mean=mean_of,
    plus=lambda s: op.add(s, 1e-5),
    scale=lambda x, s: op.multiply(x, op.rsqrt(s)),
    affine=op.multiply,
):
    """x over the root of the mean of its squares, one step of it in other words."""
    return lambda x, g: affine(scale(x, plus(mean(square(x)))), g)


FORMS = {
    "Llama": spelled(affine=lambda y, g: op.multiply(g, y)),
    "a product": spelled(lambda x: op.multiply(x, x)),
    "a last axis by its number": spelled(mean=lambda s: mean_of(s, (2,))),
    "epsilon before": spelled(plus=lambda s: op.add(1e-5, s)),
    "a reciprocal": spelled(scale=lambda x, s: op.multiply(x, op.divide(1.0, op.sqrt(s)))),
    "a reciprocal before": spelled(scale=lambda x, s: op.multiply(op.divide(1.0, op.sqrt(s)), x)),
    "a quotient": spelled(scale=lambda x, s: op.divide(x, op.sqrt(s))),
    "a power": spelled(scale=lambda x, s: op.multiply(x, op.power(s, -0.5))),
    "the op": lambda x, g: op.rms_norm(x, g),
}


@pytest.mark.parametrize("form", FORMS)
def test_it_is_read_and_right(form):
    assert kinds(FORMS[form], **SHAPES) == ["rms_norm"]
    case = Case(FORMS[form], **SHAPES, constants=("g",))
    run = run_case(NORM, case, composites=selfbyoc.BUILTIN)
    assert run.counts == {"rms_norm": 1}
    assert_close(run)


def test_gemma():
    """It scales by 1 + gamma: an op on the weight alone, which stays in front."""

    def program(x, g):
        return spelled()(x, op.add(g, 1.0))

    assert kinds(program, **SHAPES) == ["add", "rms_norm"]
    run = run_case(NORM, Case(program, **SHAPES, constants=("g",)), composites=selfbyoc.BUILTIN)
    assert run.counts == {"rms_norm": 1}
    assert_close(run)


def test_into_a_dense():
    """With what the norm reads read by others, as every block of a transformer has it."""

    def program(x, g, w):
        y = op.tanh(x)
        return op.multiply(y, op.dense(FORMS["Llama"](y, g), w))

    case = Case(program, **SHAPES, w=(37, 37), constants=("g", "w"))
    run = run_case(NORM, case, composites=selfbyoc.BUILTIN)
    assert run.counts == {"rms_norm_dense": 1}
    assert_close(run)


@pytest.mark.parametrize("constants", [(), ("g", "w")])
def test_three_denses_on_one_norm(constants):
    """Queries, keys and values: the norm is computed once."""

    def program(x, g, w):
        y = FORMS["Llama"](x, g)
        return tuple(op.dense(y, w) for _ in range(3))

    case = Case(program, **SHAPES, w=(19, 37), constants=constants)
    run = run_case(NORM, case, composites=selfbyoc.BUILTIN)
    assert run.counts == {"rms_norm": 1, "dense": 3}
    assert_close(run)


NEAR = {
    "a cube": spelled(lambda x: op.power(x, 3.0)),
    "another value squared": spelled(lambda x: op.multiply(x, op.tanh(x))),
    "the square of another": spelled(lambda x: op.power(op.tanh(x), 2.0)),
    "another axis": spelled(mean=lambda s: mean_of(s, (1,))),
    "two axes": spelled(mean=lambda s: mean_of(s, (1, 2))),
    "a sum": spelled(mean=lambda s: op.sum(s, axis=(-1,), keepdims=True)),
    "no epsilon": spelled(plus=lambda s: s),
    "epsilon subtracted": spelled(plus=lambda s: op.subtract(s, -1e-5)),
    "by the root": spelled(scale=lambda x, s: op.multiply(x, op.sqrt(s))),
    "over the reciprocal": spelled(scale=lambda x, s: op.divide(x, op.rsqrt(s))),
    "twice the reciprocal": spelled(
        scale=lambda x, s: op.multiply(x, op.divide(2.0, op.sqrt(s)))
    ),
    "another value scaled": spelled(scale=lambda x, s: op.multiply(op.tanh(x), op.rsqrt(s))),
    "gamma added": spelled(affine=op.add),
    "no gamma": spelled(affine=lambda y, g: op.add(y, op.sum(g))),
}  # fmt: skip


@pytest.mark.parametrize("name", NEAR)
def test_what_is_none(name):
    assert "rms_norm" not in kinds(NEAR[name], **SHAPES)


@pytest.mark.parametrize(
    ("shape", "is_read"),
    [((), True), ((1,), True), ((1, 1, 1), True), ((1, 1, 1, 1), False), ((37,), False)],
)
def test_epsilon_is_one_number_of_no_more_axes_than_x(shape, is_read):
    def program(x, g, e):
        return spelled(plus=lambda s: op.add(s, e))(x, g)

    case = Case(program, **SHAPES, e=shape, constants=("g", "e"))
    args = {**random_args(case), "e": np.full(shape, 1e-5, "float32")}
    found = [call.kind for call in ir.read(model(NORM, case, args)["main"])]
    assert (found == ["rms_norm"]) == is_read == ("rms_norm" in found)


def test_a_gamma_of_each_row():
    assert "rms_norm" not in kinds(spelled(), x=(2, 37, 37), g=(37, 37))


def mean_read_too(x, g):
    mean = mean_of(op.multiply(x, x))
    return op.add(spelled(mean=lambda _: mean)(x, g), mean)


def mean_returned(x, g):
    mean = mean_of(op.multiply(x, x))
    return spelled(mean=lambda _: mean)(x, g), mean


def by_its_own_square(x, g):
    square = op.multiply(x, x)
    return spelled(lambda _: square, affine=lambda y, _: op.multiply(y, square))(x, g)


@pytest.mark.parametrize("program", [mean_read_too, mean_returned])
def test_what_others_read_stays(program):
    assert "rms_norm" not in kinds(program, **SHAPES)


def test_what_it_computes_is_no_gamma():
    """Of one row the square has gamma's shape."""
    assert "rms_norm" not in kinds(by_its_own_square, x=(37,), g=(37,))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_dtypes_stay(dtype):
    shapes = {name: (shape, dtype) for name, shape in SHAPES.items()}
    mod = selfbyoc.partition_for_tefuse(emit(FORMS["a product"], shapes))
    assert selfbyoc.report(mod).counts == {}


@pytest.mark.skipif(GENERATION == "relay", reason="spelled there in float16")
def test_float16_is_summed_wider():
    """300 * 300 is more than float16 holds."""
    own = selfbyoc.Composite("norm", lambda x, g: op.rms_norm(x, g))
    shapes = {name: (shape, "float16") for name, shape in SHAPES.items()}
    library = selfbyoc.build(emit(lambda x, g: op.rms_norm(x, g), shapes), composites=[own])
    assert library.report.counts == {"norm": 1}
    (found,) = library(np.full((2, 5, 37), 300, "float16"), np.ones(37, "float16"))
    np.testing.assert_allclose(found, np.ones((2, 5, 37)), rtol=1e-3)


@pytest.mark.parametrize(("last", "wanted"), [
    (lambda y, b: op.add(y, b), ["layer_norm"]),
    (lambda y, b: op.multiply(y, b), ["mean", "subtract", "rms_norm", "multiply"]),
])  # fmt: skip
def test_what_is_centred(last, wanted):
    """With a beta it is a layer norm; without one an RMS norm of the differences."""

    def program(x, g, b):
        return last(FORMS["a quotient"](op.subtract(x, mean_of(x)), g), b)

    assert kinds(program, **SHAPES, b=(37,)) == wanted


def test_layer_norm_is_no_quotient_by_the_reciprocal():
    def program(x, g, b):
        centred = op.subtract(x, mean_of(x))
        root = op.rsqrt(op.add(mean_of(op.multiply(centred, centred)), 1e-5))
        return op.add(op.multiply(op.divide(centred, root), g), b)

    assert "layer_norm" not in kinds(program, **SHAPES, b=(37,))
