"""Random shapes on edge inputs: borders, signs, denormals, large values, extreme integers.

A short run belongs to the suite; SELFBYOC_FUZZ=500 looks longer and anew each time.
"""

from harness import model, random_args
from random_cases import EXAMPLES, RANDOM, hypothesis
from random_convolutions import convolutions

from selfbyoc import BUILTIN, Case, op, verify

st = hypothesis.strategies
FEW = hypothesis.settings(RANDOM, max_examples=EXAMPLES or 2)
BY_NAME = {c.name: c for c in BUILTIN}


def check(name, case):
    composite = BY_NAME[name]
    found = verify(model(composite, case, random_args(case)), composites=[composite])
    assert [v.status for v in found.verdicts] == ["passed"], str(found)


@FEW
@hypothesis.given(convolutions())
def test_conv2d(found):
    x, weight, attrs = found

    def program(x, weight, bias):
        return op.relu(op.bias_add(op.conv2d(x, weight, **attrs), bias))

    check(
        "conv2d", Case(program, x=x, weight=weight, bias=(weight[0],), constants=["weight", "bias"])
    )


@FEW
@hypothesis.given(convolutions(), st.sampled_from(["int8", "uint8"]), st.integers(1, 14))
def test_quantised_conv2d(found, dtype, shift):
    x, weight, attrs = found
    # With one channel, or a result of one pixel, Relax's form of a bias is any addition.
    hypothesis.assume(x[0] > 1 and weight[0] > 1)

    def program(x, weight, bias):
        y = op.bias_add(op.conv2d(x, weight, out_dtype="int32", **attrs), bias)
        y = op.right_shift(op.add(y, 1 << (shift - 1)), shift)
        return op.cast(op.clip(y, a_min=-128, a_max=127), dtype="int8")

    args = {"x": (x, dtype), "weight": (weight, "int8"), "bias": ((weight[0],), "int32")}
    check("conv2d_narrowed", Case(program, **args, constants=["weight", "bias"]))


@FEW
@hypothesis.given(st.lists(st.integers(1, 60), min_size=5, max_size=5))
def test_attention(extents):
    batch, queries, keys, depth, values = extents

    def program(q, k, v):
        scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), 0.2)
        return op.batch_matmul(op.softmax(scores), v)

    batch = 1 + batch // 15
    check(
        "attention",
        Case(program, q=(batch, queries, depth), k=(batch, keys, depth), v=(batch, keys, values)),
    )


@FEW
@hypothesis.given(
    st.integers(1, 4), st.integers(1, 4), st.booleans(), st.lists(st.integers(4, 30), min_size=2)
)
def test_max_pool2d(size, stride, padded, extents):
    attrs = {"pool_size": size, "strides": stride, "padding": size // 2 if padded else 0}
    check("max_pool2d", Case(lambda x: op.max_pool2d(x, **attrs), x=(2, extents[0], *extents[:2])))
