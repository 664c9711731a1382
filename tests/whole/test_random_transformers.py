"""Random shapes through the transformer and integer composites; SELFBYOC_FUZZ=500 looks longer."""

from harness import assert_close, run_case
from random_cases import RANDOM, hypothesis

from selfbyoc import BUILTIN, Case, op

st = hypothesis.strategies
COMPOSITES = {composite.name: composite for composite in BUILTIN}


def check(name, case):
    run = run_case(COMPOSITES[name], case)
    assert run.counts == {name: 1}
    assert_close(run)


@st.composite
def attentions(draw):
    """Any order of the operands, with and without scale and mask."""
    batch, m, n = draw(st.integers(1, 4)), draw(st.integers(1, 70)), draw(st.integers(1, 70))
    d, e = draw(st.integers(1, 40)), draw(st.integers(1, 50))
    turn_k, turn_v, scale = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    masks = [None, (batch, m, n), (1, m, n), (batch, 1, n), (n,)]
    mask = draw(st.sampled_from(masks))

    def program(q, k, v, mask=None):
        scores = op.batch_matmul(q, k, transpose_b=turn_k)
        scores = op.multiply(scores, 0.3) if scale else scores
        scores = scores if mask is None else op.add(scores, mask)
        return op.batch_matmul(op.softmax(scores), v, transpose_b=turn_v)

    shapes = {
        "q": (batch, m, d),
        "k": (batch, n, d) if turn_k else (batch, d, n),
        "v": (batch, e, n) if turn_v else (batch, n, e),
    }
    if mask is None:
        return Case(lambda q, k, v: program(q, k, v), **shapes)
    return Case(program, **shapes, mask=mask)


@RANDOM
@hypothesis.given(attentions())
def test_attention(case):
    check("attention", case)


LEAD = st.one_of(
    st.tuples(st.integers(1, 80)), st.lists(st.integers(1, 12), min_size=2, max_size=3).map(tuple)
)


@RANDOM
@hypothesis.given(LEAD, st.integers(1, 70), st.integers(1, 70), st.integers(1, 50), st.booleans())
def test_dense_gelu_dense(lead, inner, hidden, units, constant):
    def program(x, w1, b1, w2, b2):
        y = op.gelu(op.bias_add(op.dense(x, w1), b1, axis=-1))
        return op.bias_add(op.dense(y, w2), b2, axis=-1)

    shapes = {"x": (*lead, inner), "w1": (hidden, inner), "b1": (hidden,)}
    shapes |= {"w2": (units, hidden), "b2": (units,)}
    check("dense_gelu_dense", Case(program, **shapes, constants=("w1", "w2") if constant else ()))


@RANDOM
@hypothesis.given(LEAD, st.integers(2, 150), st.integers(1, 70))
def test_rows(lead, count, units):
    def program(x, gamma, beta, weight):
        return op.relu(op.dense(op.layer_norm(x, gamma, beta), weight))

    affine = {"gamma": (count,), "beta": (count,)}
    check("layer_norm_dense", Case(program, x=(*lead, count), **affine, weight=(units, count)))
    check("layer_norm", Case(x=(*lead, count), **affine))
    check("softmax", Case(x=(*lead, count)))


@st.composite
def narrowed(draw):
    groups, inner, outer = (draw(st.integers(1, most)) for most in (3, 12, 12))
    attrs = {
        "groups": groups,
        "strides": (draw(st.integers(1, 2)), draw(st.integers(1, 3))),
        "padding": tuple(draw(st.integers(0, 2)) for _ in range(4)),
        "dilation": (draw(st.integers(1, 2)), 1),
        "out_dtype": "int32",
    }
    shift = draw(st.integers(3, 12))

    def program(x, weight, bias):
        sums = op.bias_add(op.conv2d(x, weight, **attrs), bias)
        return op.cast(op.clip(op.right_shift(sums, shift), a_min=-128, a_max=127), dtype="int8")

    image = (draw(st.integers(6, 20)), draw(st.integers(6, 20)))
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 4)))
    return Case(
        program,
        x=((draw(st.integers(1, 3)), inner * groups, *image), "int8"),
        weight=((outer * groups, inner, *kernel), "int8"),
        bias=((outer * groups,), "int32"),
        constants=draw(st.sampled_from([(), ("weight", "bias")])),
    )


@RANDOM
@hypothesis.given(narrowed())
def test_narrowed_conv2d(case):
    check("conv2d_narrowed", case)
