"""Ensembles of trees, as LightGBM's are exported: by ONNX Runtime, and NaN where it is missing."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import selfbyoc
from selfbyoc import from_onnx
from selfbyoc._tvm import GENERATION
from selfbyoc.errors import InputError
from selfbyoc.models.onnx.trees import without_trees

runtime = pytest.importorskip("onnxruntime")


def grown(rng, depth, count, features, targets):
    """Random trees: (nodes, leaves); a node is (feature, split, way for yes, way for no)."""
    nodes, leaves, roots = [], [], []

    def grow(level):
        """-> (is a leaf, its place)"""
        if level == depth or (level and rng.random() < 0.3):
            leaves.append((int(rng.integers(targets)), float(rng.standard_normal())))
            return 1, len(leaves) - 1
        place = len(nodes)
        nodes.append(None)
        yes, no = grow(level + 1), grow(level + 1)
        nodes[place] = (int(rng.integers(features)), float(rng.standard_normal()), yes, no)
        return 0, place

    for _ in range(count):
        roots.append(grow(0)[1])
    return nodes, leaves, roots


def ensemble(nodes, leaves, roots, targets, mode=0, missing=False, rows=5, **more):
    dtype = np.float32
    features, splits, yes, no = zip(*nodes, strict=True)
    node = helper.make_node(
        "TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", n_targets=targets, tree_roots=roots,
        nodes_featureids=features, nodes_splits=numpy_helper.from_array(np.asarray(splits, dtype)),
        nodes_modes=numpy_helper.from_array(np.full(len(nodes), mode, np.uint8)),
        nodes_truenodeids=[place for _, place in yes], nodes_trueleafs=[leaf for leaf, _ in yes],
        nodes_falsenodeids=[place for _, place in no], nodes_falseleafs=[leaf for leaf, _ in no],
        nodes_missing_value_tracks_true=[n % 2 if missing else 0 for n in range(len(nodes))],
        leaf_targetids=[target for target, _ in leaves],
        leaf_weights=numpy_helper.from_array(np.asarray([w for _, w in leaves], dtype)), **more,
    )  # fmt: skip
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [rows, 7])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [rows, targets])
    graph = helper.make_graph([node], "g", [x], [y])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 5)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.skipif(GENERATION == "relay", reason="0.17 would take minutes for a few levels")
@pytest.mark.parametrize(
    ("targets", "how"),
    [
        (1, {}), (1, {"mode": 3, "rows": 1}), (1, {"missing": True}),
        (3, {}), (1, {"aggregate_function": 0}),
    ],
)  # fmt: skip
def test_trees(targets, how):
    rng = np.random.default_rng(0)
    made = ensemble(*grown(rng, 4, 5, 7, targets), targets, **how)
    x = rng.standard_normal((how.get("rows", 5), 7)).astype("float32")
    x[:, 2] = np.nan
    (wanted,) = runtime.InferenceSession(made.SerializeToString()).run(None, {"x": x})
    (found,) = selfbyoc.build(from_onnx(made), cache=False)(x)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_what_is_not_written_is_refused_by_name():
    made = ensemble(*grown(np.random.default_rng(0), 3, 2, 7, 1), 1, post_transform=2)
    assert [node.op_type for node in without_trees(made).graph.node] == ["TreeEnsemble"]
    with pytest.raises(InputError, match="TreeEnsemble"):
        from_onnx(made)
