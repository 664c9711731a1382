"""Small ONNX models that the tests of `bench` write as files."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from selfbyoc.commands.bench.own import own_workloads

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def value(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, *, opset=17, ir=8, **weights):
    """Nodes are (op, inputs, output or outputs) and attributes."""
    named = [(op, xs, [ys] if isinstance(ys, str) else ys, more) for op, xs, ys, more in nodes]
    made = [helper.make_node(op, xs, ys, **attrs) for op, xs, ys, attrs in named]
    arrays = [numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()]
    graph = helper.make_graph(made, "g", inputs, outputs, arrays)
    domains = {"": opset} | {attrs["domain"]: 1 for *_, attrs in nodes if "domain" in attrs}
    opsets = [helper.make_opsetid(*pair) for pair in domains.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir)


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def check_by_reference(proto, *given):
    """Ours against ONNX's reference: ONNX Runtime lacks ops, and differs from it in some."""
    import selfbyoc

    names = [v.name for v in proto.graph.input]
    wanted = ReferenceEvaluator(proto).run(None, dict(zip(names, given, strict=True)))
    found = selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)(*given)
    for ours, theirs in zip(found, map(np.asarray, wanted), strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        ours, theirs = (a.astype("float64") for a in (ours, theirs))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def check_at_sizes(proto, *shapes, atol=1e-6):
    """A model of one input x of open sizes against ONNX Runtime; none of its shapes is computed as
    data.
    """
    import onnxruntime

    import selfbyoc

    mod = selfbyoc.from_onnx(proto)
    text = str(mod["main"])
    assert "match_cast" not in text
    assert "one_size" not in text
    assert "tensor_to_shape" not in text
    library = selfbyoc.build(mod, cache=False)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for shape in shapes:
        x = random(*shape)
        (wanted,) = session.run(None, {"x": x})
        (found,) = library(x)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=atol)


def dense(rows=5, **options):
    """A matrix product; its tail is no multiple of anything."""
    nodes = [("MatMul", ["x", "w"], "y0", {}), ("Relu", ["y0"], "y", {})]
    ends = [value("x", FLOAT, rows, 24)], [value("y", FLOAT, rows, 31)]
    return model(nodes, *ends, w=random(24, 31), **options)


def sentence():
    """Ids, types and a mask, as an exporter writes them: open sizes, and a name with a dot."""
    nodes = [
        ("Gather", ["words", "input.ids"], "word", {}),
        ("Cast", ["token_type"], "type32", {"to": TensorProto.INT32}),
        ("Gather", ["types", "type32"], "type", {}),
        ("Add", ["word", "type"], "sum", {}),
        ("Cast", ["mask"], "mask32", {"to": FLOAT}),
        ("Unsqueeze", ["mask32", "last"], "column", {}),
        ("Mul", ["sum", "column"], "masked", {}),
        ("MatMul", ["masked", "w"], "y", {}),
    ]
    ins = [value(n, INT64, "batch", "length") for n in ("input.ids", "token_type", "mask")]
    weights = {"words": random(50, 24), "types": random(2, 24), "w": random(24, 31)}
    last = np.array([-1], "int64")
    return model(nodes, ins, [value("y", FLOAT, "batch", "length", 31)], last=last, **weights)


def strange():
    """An op that nobody knows."""
    ends = [value("x", FLOAT, 1, 4)], [value("y", FLOAT, 1, 4)]
    return model([("Strange", ["x"], "y", {"domain": "my.domain"})], *ends)


def saved(path, what):
    onnx.save(what, path)
    return path


def own(path, *shapes, inputs=()):
    (workload,) = own_workloads([path], shapes, inputs)
    return workload
