"""One value as several arguments of a composite, through one view or through several."""

import inspect
import random
import zlib
from collections import defaultdict
from math import prod

import numpy as np
import pytest
from harness import CASES, Run, assert_close, expected, random_args

import selfbyoc
from selfbyoc import op

SMALL = 20_000  # elements of all arguments
RNG = np.random.default_rng(0)


def groups(case):
    """The names of arguments that may be views of one value, by dtype; ids are no floats.

    Scales are none of them: TVM 0.17's type relation of qnn.dequantize ends the process where a
    scale's type is not known yet, as that of a reshape in a composite's function is.
    """
    found = defaultdict(list)
    for name, (shape, dtype) in case.args.items():
        if dtype == "float32" and prod(shape) > 1 and "scale" not in name:
            found[dtype].append(name)
    return [names for names in found.values() if len(names) > 1]


def smallest():
    """The smallest case of each composite that has two such arguments."""
    by_name = {}
    for param in CASES:
        composite, case = param.values
        size = sum(prod(shape) for shape, _ in case.args.values())
        if groups(case) and size < by_name.get(composite.name, (SMALL, None))[0]:
            by_name[composite.name] = size, param
    return [param for _, param in by_name.values()]


def view(draw, shape):
    """A vector as a tensor of this shape -> the same as ops, and of NumPy."""
    order = list(range(len(shape)))
    draw.shuffle(order)
    if draw.random() < 0.4 or len(shape) < 2:
        return (
            lambda base: op.reshape(base, shape=shape),
            lambda base: base.reshape(shape),
        )
    before = tuple(shape[order.index(axis)] for axis in range(len(shape)))
    return (
        lambda base: op.transpose(op.reshape(base, shape=before), axes=tuple(order)),
        lambda base: base.reshape(before).transpose(order),
    )


def drawn(composite, case, draw):
    """A program whose chosen arguments are views of `base`; its inputs, and what each argument is.

    Arguments of one shape are one view, or two of the same value.
    """
    (names,) = groups(case)
    chosen = draw.sample(names, draw.randint(2, len(names)))
    extents = {name: prod(case.args[name][0]) for name in chosen}
    arrays = random_args(case)
    largest = max(extents, key=extents.__getitem__)
    base = np.abs(arrays[largest].ravel()) + np.float32(0.1)  # a variance among them, perhaps
    is_computed, made = draw.random() < 0.5, {}
    for name in chosen:
        shape = tuple(case.args[name][0])
        key = shape if draw.random() < 0.7 else name
        made[name] = next((m for m in made.values() if m[0] == key), (key, *view(draw, shape)))
    args = {n: made[n][2](base[: extents[n]]) if n in made else arrays[n] for n in case.args}

    def program(**given):
        value = given.pop("base")
        value, views = op.relu(value) if is_computed else value, {}
        for name, (key, of_ops, _) in made.items():
            if key not in views:
                part = value
                if extents[name] < base.size:
                    part = op.split(value, indices_or_sections=(extents[name],), axis=0)[0]
                views[key] = of_ops(part)
            given[name] = views[key]
        return (case.program or composite.pattern)(**{name: given[name] for name in case.args})

    types = {n: t for n, t in case.args.items() if n not in made} | {
        "base": (base.shape, "float32")
    }
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    program.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in types])
    weights = {n: arrays[n] for n in case.constants if n in types}
    return program, types, weights, args, {**args, "base": base}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("composite", "case"), smallest())
def test_views_of_one_value(composite, case, seed):
    """Partitioned before it is built: a match that cannot be built is nobody's to leave out."""
    draw = random.Random(zlib.crc32(composite.name.encode()) + seed)
    program, types, weights, args, given = drawn(composite, case, draw)
    mod = selfbyoc.emit(program, types, weights)
    library = selfbyoc.build(selfbyoc.partition_for_tefuse(mod))
    found = library(*(given[name] for name, _, _ in library.inputs))
    assert_close(Run(mod, library.report.counts, found, expected(composite, case, args), ""))


@pytest.mark.parametrize("rows", [1, 5])
def test_a_product_by_itself(rows):
    """Both sides are one transpose, which `dense` may take into neither."""
    pytest.importorskip("onnx")
    from onnx import parser

    model = parser.parse_model(f"""
      <ir_version: 8, opset_import: ["" : 17]>
      gram (float[{rows}, {rows}] x) => (float[{rows}, {rows}] y)
      {{ side = Transpose<perm = [1, 0]>(x) y = MatMul(side, side) }}""")
    x = RNG.standard_normal((rows, rows), np.float32)
    library = selfbyoc.build(selfbyoc.partition_for_tefuse(selfbyoc.from_onnx(model)))
    assert library.report.counts == {"dense": 1}
    np.testing.assert_allclose(library(x)[0], x.T @ x.T, rtol=1e-5, atol=1e-5)
