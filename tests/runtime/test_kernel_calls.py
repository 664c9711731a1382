"""The kernels of a built model, called one by one."""

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx_models import FLOAT, model, random, value

import selfbyoc
from selfbyoc.runtime.executors.generation import executor
from selfbyoc.runtime.generation import runtime
from selfbyoc.tvm import GENERATION


def two_results():
    """A split: one op that writes two tensors."""
    nodes = [
        ("MatMul", ["x", "w"], "a", {}),
        ("Relu", ["a"], "b", {}),
        ("Split", ["b"], ["c", "d"], {"axis": 1}),
        ("Softmax", ["c"], "y", {}),
        ("Sigmoid", ["d"], "z", {}),
    ]
    ends = [value("x", FLOAT, 5, 24)], [value("y", FLOAT, 5, 15), value("z", FLOAT, 5, 15)]
    return model(nodes, *ends, w=random(24, 30))


def test_calls_made_one_by_one_compute_the_model():
    """Their names are the composites' symbols; a split writes two results."""
    library = selfbyoc.build(selfbyoc.from_onnx(two_results()), cache=False)
    x = random(5, 24)
    wanted = library(x)
    calls = runtime.kernel_calls(library.native, ["x"], [executor.to_tensor(x)])
    names = [call.name for call in calls]
    assert {record.symbol for record in library.report.matched} <= {*names}
    results = [result.numpy() for call in calls for result in call.results]
    for array in wanted:
        assert any(a.shape == array.shape and np.allclose(a, array) for a in results)
    for call in calls:
        call.run()
        call.call_nothing()
        assert all(any(r is a for a in call.arguments) for r in call.results)
    assert [len(call.weights) for call in calls if call.weights] == [1]
    assert max(len(call.results) for call in calls) == 2


@pytest.mark.skipif(GENERATION == "relay", reason="the debug executor hands out copies")
def test_calls_are_made_on_the_executors_memory():
    library = selfbyoc.build(selfbyoc.from_onnx(two_results()), cache=False)
    tensor = executor.to_tensor(random(5, 24))
    calls = runtime.kernel_calls(library.native, ["x"], [tensor])
    for call in calls:
        for result in call.results:
            result.copyfrom(np.full(result.shape, 7, "float32"))
        call.run()
        assert all((result.numpy() != 7).all() for result in call.results)
