"""Ensembles of trees, as LightGBM's are exported: by ONNX Runtime, and NaN where it is missing."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

import selfbyoc
from selfbyoc import from_onnx
from selfbyoc.errors import InputError
from selfbyoc.tvm import GENERATION

RELAX = pytest.mark.skipif(
    GENERATION == "relay", reason="Relay's graph executor runs no open extents"
)
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
        split = float(rng.choice([0.5, rng.standard_normal()]))
        nodes[place] = (int(rng.integers(features)), split, yes, no)
        return 0, place

    for _ in range(count):
        roots.append(grow(0)[1])
    return nodes, leaves, roots


def ensemble(
    nodes, leaves, roots, targets, mode=0, missing=False, rows=5, dtype=np.float32, **more
):
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
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x = helper.make_tensor_value_info("x", kind, [rows, 7])
    y = helper.make_tensor_value_info("y", kind, [rows, targets])
    graph = helper.make_graph([node], "g", [x], [y])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 5)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize(
    ("targets", "how"),
    [
        (1, {}), (1, {"mode": 3, "rows": 1}), (1, {"missing": True}), (3, {"mode": 1}),
        (3, {"dtype": np.float64}), (1, {"aggregate_function": 0}),
        (1, {"aggregate_function": 2, "mode": 2}), (1, {"aggregate_function": 3}),
        (3, {"aggregate_function": 0, "rows": 20}), (1, {"mode": 4, "missing": True}),
        (1, {"mode": 5}), (1, {"trees": 1}), (2, {"trees": 8}),
        pytest.param(2, {"rows": "n"}, marks=RELAX),
    ],
)  # fmt: skip
def test_trees(targets, how):
    rng = np.random.default_rng(0)
    how = dict(how)
    dtype, rows = how.get("dtype", np.float32), how.get("rows", 5)
    count = how.pop("trees", 11)
    made = ensemble(*grown(rng, 4, count, 7, targets), targets, **how)
    built = selfbyoc.build(from_onnx(made), cache=False)
    for count in (1, 5, 33) if rows == "n" else (rows,):
        x = rng.standard_normal((count, 7)).astype(dtype)
        x[:, 2] = np.nan
        x[:, 0] = 0.5  # a split of some nodes
        (wanted,) = runtime.InferenceSession(made.SerializeToString()).run(None, {"x": x})
        (found,) = built(x)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("targets", "how", "told"),
    [
        (1, {"post_transform": 2}, "expected no post_transform, found 2"),
        (1, {"mode": 6}, r"expected one mode for all nodes, of 0 to 5, found \[6\]"),
        (2, {"aggregate_function": 3}, "expected a sum or a mean for 2 targets, found max"),
    ],
)
def test_what_no_op_does_is_refused_by_name(targets, how, told):
    made = ensemble(*grown(np.random.default_rng(0), 3, 2, 7, targets), targets, **how)
    with pytest.raises(InputError, match=f"TreeEnsemble.*{told}"):
        from_onnx(made)


FULL = (
    [(0, 0.5, (0, 1), (0, 2)), (1, 0.5, (1, 0), (1, 1)), (2, 0.5, (1, 2), (1, 3))],
    [(0, 1.0), (0, 2.0), (0, 3.0), (0, 4.0)], [0],
)  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"tree_roots": [0, 99]}, "tree_roots: expected 0 to 2, found 0 to 99"),
        ({"nodes_truenodeids": [0, 0, 2]}, "a node leads back to itself"),
        ({"nodes_featureids": [0, 7, 0]}, "nodes_featureids: expected 0 to 6, found 0 to 7"),
        ({"leaf_targetids": [0, 0, 0, -1]}, "leaf_targetids: expected 0 to 0, found -1 to 0"),
        ({"nodes_truenodeids": [1, 9, 2]}, "expected ways to 3 nodes and 4 leaves, found others"),
    ],
)
def test_trees_that_lead_nowhere(changed, told):
    made = ensemble(*FULL, 1)
    if told == "a node leads back to itself":
        changed = {**changed, "nodes_trueleafs": [0, 0, 1]}
    for attribute in made.graph.node[0].attribute:
        if attribute.name in changed:
            value = changed[attribute.name]
            attribute.CopyFrom(helper.make_attribute(attribute.name, value))
    with pytest.raises(InputError, match=f"TreeEnsemble.*{told}"):
        from_onnx(made)
