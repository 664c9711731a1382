"""`optimize_layouts` on random programs: the same numbers, and never more bytes moved."""

import json

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.language.nodes import Node
from selfbyoc.partition.layouts.record import LAYOUTS, Layouts
from selfbyoc.runtime.numpy_ops import evaluate

UNARY = {
    "relu": lambda x: np.maximum(x, 0),
    "negative": np.negative,
    "abs": np.abs,
    "tanh": np.tanh,
}
BINARY = {"add": np.add, "multiply": np.multiply, "subtract": np.subtract, "maximum": np.maximum}


class Random:
    """A seeded program: each value as a node of the program, and as NumPy computes it."""

    def __init__(self, seed, arrays):
        self.rng, self.arrays = np.random.default_rng(seed), arrays

    def __call__(self, nodes):
        self.values = list(zip(nodes, self.arrays, strict=True))
        for _ in range(int(self.rng.integers(5, 16))):
            step = self.rng.choice(
                [self.transpose, self.unary, self.binary, self.join, self.reduce, self.softmax],
                p=[0.4, 0.2, 0.2, 0.08, 0.08, 0.04],
            )
            self.values.append(step(*self.values[self.rng.integers(len(self.values))]))
        # The last one, whatever it is, and one of any users: outputs that are transposes, inputs.
        picked = [len(self.values) - 1, int(self.rng.integers(len(nodes), len(self.values)))]
        found = [self.values[i] for i in dict.fromkeys(picked)]
        return tuple(n for n, _ in found), [a for _, a in found]

    def transpose(self, node, array):
        axes = tuple(map(int, self.rng.permutation(array.ndim)))
        return op.transpose(node, axes=axes), array.transpose(axes)

    def unary(self, node, array):
        kind = str(self.rng.choice(list(UNARY)))
        return getattr(op, kind)(node), UNARY[kind](array)

    def binary(self, node, array):
        """With a value that broadcasts, transposed or not; else with itself."""
        kind, others = str(self.rng.choice(list(BINARY))), [(node, array)]
        others += [(n, a) for n, a in self.values if _broadcasts(a.shape, array.shape)]
        other, with_it = others[self.rng.integers(len(others))]
        pair = [(node, array), (other, with_it)][:: int(self.rng.choice([1, -1]))]
        nodes, arrays = zip(*pair, strict=True)
        return getattr(op, kind)(*nodes), BINARY[kind](*arrays)

    def join(self, node, array):
        axis = int(self.rng.integers(array.ndim))
        others = [(node, array)] + [(n, a) for n, a in self.values if a.shape == array.shape]
        other, with_it = others[self.rng.integers(len(others))]
        joined = op.concatenate([node, other], axis=axis)
        return joined, np.concatenate([array, with_it], axis=axis)

    def reduce(self, node, array):
        if array.ndim < 3:
            return self.unary(node, array)
        axis, keeps = (int(self.rng.integers(array.ndim)),), bool(self.rng.integers(2))
        return op.sum(node, axis=axis, keepdims=keeps), array.sum(axis=axis, keepdims=keeps)

    def softmax(self, node, array):
        power = np.exp(array - array.max(-1, keepdims=True))
        return op.softmax(node, axis=-1), power / power.sum(-1, keepdims=True)


def _broadcasts(one, other):
    try:
        return len(np.broadcast_shapes(one, other)) <= 4
    except ValueError:
        return False


def random_model(seed):
    """A module, its inputs, and what it computes; the second input is a constant at times."""
    rng = np.random.default_rng(seed)
    extents = [int(e) for e in rng.choice([1, 2, 3, 5], 4)]
    shapes = [tuple(extents), tuple(extents[-2:]), (extents[3],), tuple(reversed(extents))]
    names = ["a", "b", "c", "d"]
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    expected = []

    def program(a: Node, b: Node, c: Node, d: Node):
        nodes, found = Random(seed, [x.astype("float64") for x in arrays])((a, b, c, d))
        expected[:] = found
        return nodes if len(nodes) > 1 else nodes[0]

    inputs = dict(zip(names, arrays, strict=True))
    fixed = {n: inputs[n] for n in names[1 : 1 + seed % 3]}
    mod = emit(program, {n: a.shape for n, a in inputs.items()}, fixed)
    return mod, {n: a for n, a in inputs.items() if n not in fixed}, expected


def told(mod):
    return Layouts(**json.loads(str(mod.attrs[LAYOUTS])))


@pytest.mark.parametrize("seed", range(0, 240, 3))
def test_random_programs_mean_the_same(seed):
    mod, inputs, expected = random_model(seed)
    done = selfbyoc.optimize_layouts(mod)
    graph = ir.read(done["main"])
    for found, wanted in zip(evaluate(graph, list(inputs.values())), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    assert told(done).bytes_left <= told(done).bytes_written


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_random_programs_run(seed):
    mod, inputs, expected = random_model(seed)
    library = selfbyoc.build(selfbyoc.optimize_layouts(mod))
    given = {name: inputs[name] for name, _, _ in library.inputs}
    for found, wanted in zip(library(**given), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_some_of_them_move_less():
    """And not only by taking inverse pairs away: ops take other orders."""
    models = (random_model(seed)[0] for seed in range(0, 120, 3))
    every = [told(selfbyoc.optimize_layouts(mod, composites=[])) for mod in models]
    assert sum(each.bytes_left < each.bytes_written for each in every) >= 3
    assert sum(each.moved > 0 for each in every) >= 3
