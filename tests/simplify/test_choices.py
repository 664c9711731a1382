"""A `where` of a constant that is the same all over, on both generations."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.runtime.tolerance import first_wrong

SHAPES = {"x": (2, 5, 7), "y": (2, 5, 7), "row": (7,), "condition": (5, 1)}


def arrays_of(condition):
    rng = np.random.default_rng(4)
    found = {n: rng.standard_normal(SHAPES[n], "float32") for n in ("x", "y", "row")}
    return found | {"condition": condition}


def left(program, condition):
    """What is left of a program of a constant condition, whose numbers are right."""
    arrays = arrays_of(condition)
    types = {n: (a.shape, str(a.dtype)) for n, a in arrays.items()}
    constants = {"condition": condition}
    library = selfbyoc.build(emit(program, types, constants), cache=False)
    inputs = {n: a for n, a in arrays.items() if n not in constants}
    (found,) = library(**inputs)
    return found, library.report.left, arrays


@pytest.mark.parametrize("truth", [True, False])
def test_all_of_one_side(truth):
    def program(x, y, row, condition):
        return op.add(op.where(condition, x, op.exp(y)), row)

    found, ops, arrays = left(program, np.full((5, 1), truth))
    assert "where" not in ops
    wanted = (arrays["x"] if truth else np.exp(arrays["y"])) + arrays["row"]
    assert first_wrong(found, wanted, "float32", 1) is None


@pytest.mark.parametrize("case", ["both", "a side of fewer axes"])
def test_what_stays(case):
    def program(x, y, row, condition):
        chosen = op.where(condition, row if case != "both" else y, op.exp(x))
        return op.add(chosen, op.multiply(row, op.add(x, y)))

    condition = np.full((5, 1), True)
    condition[2] = case != "both"
    found, _, given = left(program, condition)
    chosen = np.where(condition, given["row"] if case != "both" else given["y"], np.exp(given["x"]))
    wanted = chosen + given["row"] * (given["x"] + given["y"])
    assert first_wrong(found, wanted.astype("float32"), "float32", 1) is None


def test_a_guard_of_no_rows_leaves_attention():
    def program(q, k, v, hidden):
        soft = op.softmax(op.batch_matmul(q, k, transpose_b=True))
        return op.batch_matmul(op.where(hidden, 0.0, soft), v)

    rng = np.random.default_rng(0)
    shapes = {"q": (2, 9, 8), "k": (2, 11, 8), "v": (2, 11, 5)}
    given = {n: rng.standard_normal(s, "float32") for n, s in shapes.items()}
    hidden = np.zeros((9, 1), bool)
    types = {n: (s, "float32") for n, s in shapes.items()} | {"hidden": (hidden.shape, "bool")}
    library = selfbyoc.build(emit(program, types, {"hidden": hidden}), cache=False)
    assert library.report.counts == {"attention": 1}
    (found,) = library(**given)
    q, k, v = (a.astype("float64") for a in given.values())
    powers = np.exp(q @ k.swapaxes(-1, -2))
    wanted = (powers / powers.sum(-1, keepdims=True) @ v).astype("float32")
    assert first_wrong(found, wanted, "float32", 20) is None
