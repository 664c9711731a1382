"""Random shapes and attributes through the default schedule and the built-in composites, against
NumPy.

A short run belongs to the suite; SELFBYOC_FUZZ=500 looks longer and anew each time.
"""

from harness import assert_close, run_case
from random_cases import RANDOM, hypothesis
from random_convolutions import convolutions

from selfbyoc import BUILTIN, Case, Composite, op

st = hypothesis.strategies


def check(composite, case):
    run = run_case(composite, case)
    assert run.counts == {composite.name: 1}
    assert_close(run)


@RANDOM
@hypothesis.given(convolutions())
def test_conv2d_on_the_default_schedule(found):
    x, weight, attrs = found
    plain = Composite("plain", lambda x, w: op.relu(op.conv2d(x, w)))
    check(plain, Case(lambda x, w: op.relu(op.conv2d(x, w, **attrs)), x=x, w=weight))


@RANDOM
@hypothesis.given(convolutions())
def test_the_built_in_conv2d(found):
    x, weight, attrs = found
    composite = next(c for c in BUILTIN if c.name == "conv2d")

    def program(x, weight, bias):
        return op.clip(op.bias_add(op.conv2d(x, weight, **attrs), bias), a_min=0.0, a_max=6.0)

    check(
        composite,
        Case(program, x=x, weight=weight, bias=(weight[0],), constants=["weight", "bias"]),
    )


@RANDOM
@hypothesis.given(st.lists(st.integers(1, 70), min_size=4, max_size=4))
def test_dense_softmax_dense_on_the_default_schedule(extents):
    m, k, n, p = extents
    plain = Composite("plain", lambda x, w, v: op.dense(op.softmax(op.dense(x, w)), v))
    check(plain, Case(x=(m, k), w=(n, k), v=(p, n)))


@RANDOM
@hypothesis.given(st.lists(st.integers(1, 70), min_size=3, max_size=3), st.booleans())
def test_the_built_in_dense(extents, constant):
    m, k, n = extents
    composite = next(c for c in BUILTIN if c.name == "dense")

    def program(x, weight, bias):
        return op.gelu(op.bias_add(op.dense(x, weight), bias, axis=-1))

    constants = ["weight", "bias"] if constant else []
    check(composite, Case(program, x=(m, k), weight=(n, k), bias=(n,), constants=constants))


@RANDOM
@hypothesis.given(st.lists(st.integers(1, 40), min_size=2, max_size=3), st.integers(-2, -1))
def test_normalisation_on_the_default_schedule(shape, axis):
    plain = Composite("plain", lambda x: op.softmax(op.relu(x)))
    check(plain, Case(lambda x: op.softmax(op.relu(x), axis=axis), x=tuple(shape)))


@RANDOM
@hypothesis.given(
    st.integers(1, 4), st.integers(1, 4), st.integers(0, 1), st.booleans(),
    st.sampled_from(["max", "avg"]),
    st.integers(4, 30), st.integers(4, 30),
)  # fmt: skip
def test_pools_on_the_default_schedule(size, stride, pad, ceil_mode, how, height, width):
    # TVM lets a window of ceil_mode lie outside the image; PyTorch and ONNX do not.
    last = [-(-(extent + 2 * pad - size) // stride) * stride - pad for extent in (height, width)]
    hypothesis.assume(pad <= size // 2 and last[0] < height and last[1] < width)
    kind = getattr(op, f"{how}_pool2d")
    attrs = {"pool_size": size, "strides": stride, "padding": pad, "ceil_mode": ceil_mode}
    plain = Composite("plain", lambda x: op.relu(kind(x)))
    check(plain, Case(lambda x: op.relu(kind(x, **attrs)), x=(2, 5, height, width)))
