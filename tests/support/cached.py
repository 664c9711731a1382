"""A model built with a folder of kernels."""

import numpy as np
from harness import model, random_args

import selfbyoc
from selfbyoc import Case, op
from selfbyoc.schedules.composites.dense import dense

CASE = Case(
    lambda x, weight, bias: op.relu(op.bias_add(op.dense(x, weight), bias)),
    x=(5, 37), weight=(19, 37), bias=(19,), constants=("weight", "bias"),
)  # fmt: skip


def reference(args):
    return np.maximum(args["x"] @ args["weight"].T + args["bias"], 0)


def built(place, composite=dense, case=CASE, target=None, seed=0):
    """The library, after its result was compared with NumPy."""
    args = random_args(case, seed)
    mod = selfbyoc.partition_for_tefuse(
        model(composite, case, args), target=target, composites=[composite]
    )
    assert selfbyoc.report(mod).counts == {composite.name: 1}
    library = selfbyoc.build(mod, target, cache=place)
    found = library(args["x"])[0]
    np.testing.assert_allclose(found, reference(args), rtol=1e-4, atol=1e-4)
    return library


def uses(library):
    return len(library.cache.hits), len(library.cache.misses)


def entries(place):
    return sorted(place.glob("*.kernel"))
