"""Convolutions for the random tests."""

from random_cases import hypothesis

st = hypothesis.strategies


@st.composite
def convolutions(draw):
    """A convolution that exists: the kernel fits into the padded image."""
    groups = draw(st.sampled_from([1, 1, 2, 5]))
    per_group, out_per_group = draw(st.integers(1, 20)), draw(st.integers(1, 20))
    kernel = (draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    dilation = (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    padding = tuple(draw(st.integers(0, 2)) for _ in range(4))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = [draw(st.integers(max(1, s - p), 40)) for s, p in zip(spans, padding[:2], strict=True)]
    attrs = {
        "strides": (draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
    }
    x = (draw(st.integers(1, 3)), per_group * groups, *size)
    return x, (out_per_group * groups, per_group, *kernel), attrs
