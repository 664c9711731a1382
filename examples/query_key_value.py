"""Three products of one input as one kernel with three results: queries, keys and values.

None of them is computed from another: the pattern returns all three. Runs unchanged on Relay and on
Relax.
"""

import numpy as np

import selfbyoc
from selfbyoc import Case, Composite, emit, op

NAMES = ("x", "query", "key", "value")


def projections(x, query, key, value):
    """What the composite takes, and returns."""
    return op.dense(x, query), op.dense(x, key), op.dense(x, value)


query_key_value = Composite(
    "query_key_value",
    projections,
    cases=(Case(x=(9, 32), query=(16, 32), key=(16, 32), value=(24, 32)),),
    why="the input is read once, and there is one parallel region for the three",
)


def main():
    """One kernel, and right."""
    rng = np.random.default_rng(0)
    shapes = {"x": (9, 32), "query": (16, 32), "key": (16, 32), "value": (24, 32)}
    parted = selfbyoc.partition_for_tefuse(emit(projections, shapes), composites=[query_key_value])
    print(selfbyoc.report(parted))
    arrays = {name: rng.standard_normal(shapes[name], np.float32) for name in NAMES}
    found = selfbyoc.build(parted)(**arrays)
    wanted = [arrays["x"] @ arrays[name].T for name in NAMES[1:]]
    pairs = zip(found, wanted, strict=True)
    agrees = all(np.allclose(f, w, rtol=1e-4, atol=1e-4) for f, w in pairs)
    print(f"{len(found)} results, agree with NumPy: {agrees}")


if __name__ == "__main__":
    main()
