"""Programs of the fuzzer as ONNX models: they mean what they should, and TVM reads them."""

import numpy as np
import pytest

from selfbyoc.commands.fuzz.attempt import Setting, ours
from selfbyoc.commands.fuzz.infer import infer
from selfbyoc.commands.fuzz.meaning import graph_of, inputs, numbers
from selfbyoc.commands.fuzz.onnx_ops import RULES
from selfbyoc.commands.fuzz.oracle import differing, wanted
from selfbyoc.commands.fuzz.program import CONSTANT, INPUT, Node, Program, from_json
from selfbyoc.commands.fuzz.run import Plan, fuzz, programs
from selfbyoc.errors import UnsupportedOp
from selfbyoc.tvm import GENERATION

onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
from selfbyoc.commands.fuzz.onnx_writer import by_onnx_runtime, onnx_model  # noqa: E402

GROWN = [p for _, p in programs(Plan(count=60, seed=1, onnx=True))]


def written(program):
    graph = graph_of(program)
    return graph, onnx_model(program, numbers(program, graph, "random"))


def is_single(program):
    return all(program.nodes[i].dtype == "float32" for i in program.leaves())


def test_onnx_runtime_agrees_with_numpy():
    """Where both know all ops: ONNX Runtime is not exact in float64, and gelu of what is far below
    zero has few digits in float32.
    """
    compared = 0
    for program in filter(is_single, GROWN):
        graph, known = graph_of(program), wanted(program, graph_of(program), "random")
        if known.by != "NumPy":
            continue
        try:
            _, model = written(program)
            found = by_onnx_runtime(model, inputs(program, graph, "random"))
        except UnsupportedOp:
            continue
        off = [
            np.abs(a - b).max(initial=0) / max(1, np.abs(b).max(initial=0))
            for a, b in zip(found, known.outputs, strict=True)
        ]
        assert max(off) < 1e-3, program.to_json()
        compared += 1
    assert compared > 15


def test_a_model_has_the_types_that_the_program_says():
    for program in GROWN:
        try:
            graph, model = written(program)
        except UnsupportedOp:
            continue
        onnx.checker.check_model(model)
        told = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        shapes = [[d.dim_value for d in o.type.tensor_type.shape.dim] for o in told.graph.output]
        assert shapes == [list(v.shape) for v in graph.outputs], program.to_json()


def test_all_ops_of_onnx_are_grown_and_text_and_back():
    grown = [p for _, p in programs(Plan(count=400, seed=2, onnx=True))]
    kinds = {kind for p in grown for kind in p.kinds() if kind.startswith("onnx.")}
    assert kinds == set(RULES)
    assert all(from_json(p.to_json()) == p for p in grown[:20])


def leaf(kind, *shape):
    return Node(kind, shape=shape, dtype="float32")


def test_onnx_runtime_is_asked_for_what_numpy_does_not_know():
    """Batch norm with the statistics of the batch: nothing may read it as the plain one."""
    moments = [leaf(CONSTANT, 4) for _ in range(4)]
    nodes = (
        leaf(INPUT, 2, 3, 5, 5), leaf(CONSTANT, 4, 3, 3, 3), *moments, Node("conv2d", (0, 1)),
        Node("onnx.BatchNormalization", (6, 2, 3, 4, 5), {"epsilon": 0.1, "training_mode": 1}),
        Node("relu", (7,)),
    )  # fmt: skip
    program = Program(nodes, (8,), 3, onnx=True)
    assert infer(program)[8] == (((2, 4, 3, 3), "float32"),)
    found = ours(program.to_json(), Setting())
    if GENERATION == "relay":
        assert "training_mode is 1" in found.unwritten
        return
    assert (found.raised, found.unwritten, found.oracle) == ("", "", "ONNX Runtime")
    known = wanted(program, graph_of(program), "random")
    assert differing(found.found["random"], known.outputs, graph_of(program)) == found.wrong.get(
        "random", ""
    )


def test_a_short_run_finds_nothing(tmp_path):
    # Two small programs.
    done = fuzz(Plan(600.0, count=2, seed=21, jobs=1, folder=tmp_path, onnx=True))
    assert [f.text for f in done.findings] == []
    assert done.counts["graphs"] == 2
    assert done.counts["builds"] >= 2
