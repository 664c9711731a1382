"""`--shape` for a module whose inputs have symbolic sizes."""

import numpy as np
import pytest
import tvm
from tvm.script import ir as I
from tvm.script import relax as R

import selfbyoc
from selfbyoc.errors import InputError
from selfbyoc.models.relax.sizes import sized


@I.ir_module
class Dynamic:
    @R.function
    def main(
        x: R.Tensor(("n", "k"), "float32"), w: R.Tensor((5, "k"), "float32"), b: R.Tensor("float32")
    ):
        R.func_attr({"tir_var_upper_bound": {"n": 64}, "tir_var_lower_bound": {"n": 2}})
        with R.dataflow():
            y = R.nn.relu(R.matmul(x, R.permute_dims(w)))
            R.output(y)
        return y


def test_what_is_sized_has_kernels():
    library = selfbyoc.build(sized(Dynamic, {"x": (3, 7)}, "net.json"))
    assert library.report.counts == {"dense": 1}
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((3, 7)), rng.standard_normal((5, 7))
    (found,) = library(x.astype("float32"), w.astype("float32"), np.zeros(1, "float32"))
    np.testing.assert_allclose(found, np.maximum(x @ w.T, 0), rtol=1e-5, atol=1e-5)


def test_what_nobody_gives_stays_open():
    tvm.ir.assert_structural_equal(sized(Dynamic, {}, "net.json"), Dynamic)
    main = sized(Dynamic, {"w": (5, 9)}, "net.json")["main"]
    assert [str(e) for e in main.params[0].ty.shape.values] == ["n", "T.int64(9)"]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"xx": (1,)}, "no input 'xx'; known: .*did you mean 'x'"),
        ({"x": (3,)}, "input x is nxk, the shape given is 3"),
        ({"w": (6, 7)}, "input w is 5xk, the shape given is 6x7"),
        ({"x": (3, 7), "w": (5, 8)}, "input w: k is 8 here and 7 at net.json: input x"),
        ({"x": (65, 7)}, "input x: n is at most 64, the size given is 65"),
        ({"x": (1, 7)}, "input x: n is at least 2, the size given is 1"),
        ({"b": (1,)}, "input b is of no known rank, the shape given is 1"),
    ],
)
def test_wrong_sizes(shapes, message):
    with pytest.raises(InputError, match=message):
        sized(Dynamic, shapes, "net.json")
