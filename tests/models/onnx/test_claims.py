"""Files of a few bytes that claim to need gigabytes: refused before anything is allocated."""

import resource
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import FLOAT, INT64, model, random, value

import selfbyoc
from selfbyoc.common.probes import ask_beside
from selfbyoc.errors import InputError

runtime = pytest.importorskip("onnxruntime")
HUGE, LONG = 1 << 30, np.array(1 << 33)
WIDE = np.array([1 << 17, 1 << 16])


def of(op, inputs, weights, attrs=None, shape=(2, 1, 3), opset=17, kind=FLOAT):
    """A model of one op."""
    nodes = [(op, inputs, "y", attrs or {})]
    return model(nodes, [value("x", kind, *shape)], [value("y", FLOAT)], opset=opset, **weights)


def constant(op, inputs, weights, attrs=None, opset=17):
    """A model that adds what an op makes of constants."""
    nodes = [(op, inputs, "c", attrs or {}), ("Add", ["x", "c"], "y", {})]
    return model(nodes, [value("x", FLOAT, 1)], [value("y", FLOAT)], opset=opset, **weights)


def recurrent(op, gates):
    weights = {"w": np.zeros((1, gates, 3), "float32"), "r": np.zeros((1, gates, 1), "float32")}
    return of(op, ["x", "w", "r"], weights, {"hidden_size": HUGE})


def computed():
    """Of a size that is computed itself, in a branch."""
    inner = [helper.make_node("Mul", ["a", "a"], ["s"])]
    inner += [helper.make_node("ConstantOfShape", ["s"], ["c"])]
    inner += [helper.make_node("ReduceSum", ["c"], ["z"], keepdims=0)]
    branch = helper.make_graph(inner, "b", [], [value("z", FLOAT)])
    more = {"then_branch": branch, "else_branch": branch}
    ends = [value("x", TensorProto.BOOL)], [value("y", FLOAT)]
    return model([("If", ["x"], "y", more)], *ends, a=np.array([1 << 9, 1 << 9, 9]))


def sparse():
    proto = constant("Identity", ["t"], {})
    parts = (np.ones(1, "float32"), "t"), (np.array([0]), "i")
    tensors = [numpy_helper.from_array(*part) for part in parts]
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(*tensors, WIDE.tolist()))
    return proto


HOSTILE = {
    "LSTM": (lambda: recurrent("LSTM", 4), f"hidden_size is {HUGE}, so that 'w' is"),
    "GRU": (lambda: recurrent("GRU", 3), f"hidden_size is {HUGE}, so that 'w' is"),
    "ConstantOfShape": (lambda: constant("ConstantOfShape", ["n"], {"n": WIDE}), "its result 'c'"),
    "in a branch": (computed, "its result 'c', [262144, 262144, 81]"),
    "Expand": (
        lambda: constant("Expand", ["k", "n"], {"k": np.float32(1), "n": WIDE}), "its result 'c'",
    ),
    "Tile": (
        lambda: constant("Tile", ["k", "n"], {"k": np.ones((1, 1), "float32"), "n": WIDE}),
        "its result 'c'",
    ),
    "Pad": (
        lambda: constant(
            "Pad", ["k", "n"], {"k": np.ones((1, 1), "float32"), "n": np.array([0, 0, *WIDE])}
        ),
        "its result 'c'",
    ),
    "Range": (
        lambda: constant(
            "Range", list("klm"),
            {n: np.float32(e) for n, e in zip("klm", (0, 1e9, 1e-2), strict=True)},
        ),
        "its result 'c'",
    ),
    "OneHot": (
        lambda: of("OneHot", ["x", "n", "v"], {"n": LONG, "v": np.float32([0, 1])}, kind=INT64),
        "Range: its result",
    ),
    "EyeLike": (lambda: of("EyeLike", ["x"], {}, shape=WIDE.tolist()), "it takes a table"),
    "DFT": (
        lambda: of("DFT", ["x", "n"], {"n": np.array(1 << 30)}, {"axis": 1}, (1, 16, 1)),
        "it takes a table",
    ),
    "Split": (
        lambda: of("Split", ["x"], {}, {"num_outputs": HUGE}, opset=18), "expected num_outputs=1",
    ),
    "sparse": (sparse, "expected a dense tensor, found a sparse one"),
}  # fmt: skip
ROOM = 3 << 29  # bytes more than there are


def tried():
    """In a process that has little room; what was not refused as it should be."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM,) * 2)
    for name, (make, text) in HOSTILE.items():
        try:
            selfbyoc.from_onnx(make())
            print(f"{name}: read; ", end="")
        except InputError as err:
            print("" if text in str(err) else f"{name}: {err}; ", end="")


@pytest.mark.filterwarnings("ignore::selfbyoc.errors.ModelWarning")
def test_files_of_a_few_bytes():
    answer = ask_beside(tried, "")
    assert (answer.printed, answer.why_not) == ("", "")


def test_what_a_file_holds_may_grow():
    """A weight may be cast or spread: what it takes is compared with what the file has."""
    from selfbyoc.models.onnx import claims

    weight = random(1, 1 << 10)
    nodes = [("Expand", ["w", "n"], "c", {}), ("Add", ["x", "c"], "y", {})]
    ends = [value("x", FLOAT, 1)], [value("y", FLOAT)]
    proto = model(nodes, *ends, w=weight, n=np.array([8, 1 << 10]))
    claims._look(proto, proto.graph, {}, claims._GROWS * weight.nbytes)
    with pytest.raises(InputError, match="takes 32,768 bytes; expected at most 4,096"):
        claims._look(proto, proto.graph, {}, weight.nbytes)
