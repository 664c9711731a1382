"""The virtual machine makes each shape, and each tensor of a memory, once."""

import re
from collections import Counter

import numpy as np
import pytest
import tvm
from tvm import relax

import selfbyoc
from selfbyoc.tvm import tir

VERSION = tuple(int(part) for part in tvm.__version__.split(".")[:2])


def six_softmaxes(rows):
    builder, op = relax.BlockBuilder(), relax.op
    x = relax.Var("x", relax.TensorType((1, rows, 24), "float32"))
    w = relax.Var("w", relax.TensorType((24, 24), "float32"))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            y = x
            for _ in range(3):
                y = op.reshape(op.nn.softmax(op.matmul(y, w)), (1, rows, 4, 6))
                y = op.nn.softmax(op.permute_dims(y, [0, 1, 3, 2]))
                y = builder.emit(op.reshape(y, (1, rows, 24)))
            out = builder.emit_output(y)
        builder.emit_func_output(out)
    return builder.get()


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("is_open", [True, False])
def test_what_is_equal_is_made_once(is_open):
    w = np.random.default_rng(0).standard_normal((24, 24)).astype("float32")
    mod = six_softmaxes(tir.Var("n", "int64") if is_open else 7)
    library = selfbyoc.build(mod, params={"w": w})
    for rows in (1, 7, 33) if is_open else (7,):
        x = np.random.default_rng(rows).standard_normal((1, rows, 24)).astype("float32")
        wanted = x
        for _ in range(3):
            turned = softmax(wanted @ w).reshape(1, rows, 4, 6).transpose(0, 1, 3, 2)
            wanted = softmax(turned).reshape(1, rows, 24)
        np.testing.assert_allclose(library(x)[0], wanted, rtol=1e-5, atol=1e-6)
    code = library.native.as_text()
    kinds = "make_shape|alloc_tensor" if VERSION < (0, 27) else "make_shape|alloc_tensor|reshape"
    made = re.findall(rf"vm\.builtin\.(?:{kinds}) .*?(?=dst)", code)
    assert made
    assert max(Counter(" ".join(line.split()) for line in made).values()) == 1
