"""What the tests of moved layouts share."""

import numpy as np

import selfbyoc


def same(mod, done, *shapes):
    """A module computes what it did: now with the composites, before by TVM alone."""
    rng = np.random.default_rng(1)
    args = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    before, after = selfbyoc.build(mod, composites=[])(*args), selfbyoc.build(done)(*args)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
