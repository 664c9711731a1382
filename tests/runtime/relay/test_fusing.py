"""When TVM is told to fuse few ops: where an expression doubles, and nowhere else."""

import pytest
from tvm import relay

from selfbyoc.runtime.relay import FEW, _fusing


def doubling(x, w):
    for _ in range(8):
        x = x + relay.tanh(x)
    return x


def a_mask_of_many_layers(x, w):
    mask, y = relay.exp(x), x
    for _ in range(60):
        y = relay.nn.dense(relay.add(y, mask), w)
    return y


def a_long_line(x, w):
    y = x
    for _ in range(100):
        y = relay.add(relay.tanh(y), x)
    return y


@pytest.mark.parametrize(
    ("program", "most"), [(doubling, FEW), (a_mask_of_many_layers, None), (a_long_line, None)]
)
def test_few_ops_only_where_an_expression_doubles(program, most):
    x, w = relay.var("x", shape=(4, 8)), relay.var("w", shape=(8, 8))
    found = _fusing(relay.Function([x, w], program(x, w)))
    assert found.get("relay.FuseOps.max_depth") == most
