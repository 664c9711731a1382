"""Chains of elementwise ops that read each value twice are built in time linear in their length."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op

LINKS = {
    "x + tanh(x)": (lambda x: x + op.tanh(x), lambda x: x + np.tanh(x)),
    "silu": (lambda x: x * op.sigmoid(x), lambda x: x / (1 + np.exp(-x))),
    "sigmoid * tanh": (
        lambda x: op.sigmoid(x) * op.tanh(x),
        lambda x: np.tanh(x) / (1 + np.exp(-x)),
    ),
}
LENGTH = 24  # written out, 2 ** 24 ops: nobody builds that


def chain(link, x):
    for _ in range(LENGTH):
        x = link(x)
    return x


@pytest.mark.parametrize("name", LINKS)
def test_a_chain_that_no_composite_takes(name):
    link, of_numpy = LINKS[name]
    x = np.random.default_rng(0).standard_normal((3, 17), np.float32)
    library = selfbyoc.build(selfbyoc.emit(lambda x: chain(link, x), {"x": (x.shape, "float32")}))
    wanted = chain(of_numpy, x.astype(np.float64))
    scale = max(1.0, float(np.abs(wanted).max()))
    np.testing.assert_allclose(library(x)[0], wanted, rtol=2e-5, atol=2e-5 * scale)
    assert library.report.counts == {}
