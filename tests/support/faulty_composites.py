"""Composites with a fault each, for the tests of the fuzzer: one of TABLE is the file's own."""

import os
import signal

from selfbyoc import Case, Composite, op, require
from selfbyoc.tvm import te

WIDE = 8  # a fault that only shows in wider rows


def wrong_sum(x, y):
    """x + y; in wide rows the last column is x alone."""
    last = int(x.shape[-1]) - 1
    if last < WIDE:
        return te.compute(x.shape, lambda i, j: x[i, j] + y[i, j], name="sum")
    return te.compute(
        x.shape, lambda i, j: x[i, j] + te.if_then_else(j < last, y[i, j], 0.0), name="sum"
    )


def two_of_a_shape(match):
    x, y = match.args["x"], match.args["y"]
    require(x.ndim == 2 and x.shape == y.shape, "only two matrices of one shape")


def dies(match):
    os.kill(os.getpid(), signal.SIGSEGV)


def raises(x):
    raise ValueError("planted")


def written_so(match):
    first = match.op("maximum").inputs[0]
    require(first is match.args["x"], "the inputs are the other way round")


SHAPES = {"x": (5, 20), "y": (5, 20)}
TABLE = {
    "wrong": Composite(
        "wrong_sum",
        lambda x, y: op.add(x, y),
        check=two_of_a_shape,
        compute=wrong_sum,
        cases=(Case(lambda x, y: op.tanh(op.add(op.exp(x), y)), **SHAPES),),
    ),
    "crash": Composite("dies", lambda x: op.erf(x), check=dies, cases=(Case(x=(3, 7)),)),
    "raised": Composite(
        "raises",
        lambda x: op.erf(x),
        compute=raises,
        cases=(Case(lambda x: op.relu(op.erf(x)), x=(3, 7)),),
    ),
    "missed": Composite(
        "written_so",
        lambda x: op.maximum(x, op.exp(x)),
        check=written_so,
        cases=(Case(x=(3, 7)),),
    ),
}
