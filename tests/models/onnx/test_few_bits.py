"""Weights of few bits in groups: MatMulNBits, DequantizeLinear in blocks, and their kernels."""

import numpy as np
import onnx
import pytest
from few_bits_models import F32, PRODUCTS, model_of, nbits, network, weight_of
from onnx import TensorProto, helper, numpy_helper

import selfbyoc
from selfbyoc.__main__ import main
from selfbyoc.errors import InputError


def close(found, wanted, terms):
    np.testing.assert_allclose(found, wanted, atol=4e-7 * terms**0.5 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("shape", "units", "bits", "group", "has_zeros"),
    [*PRODUCTS, ((130, 256), 48, 4, 32, True)],
)
def test_products_of_few_bits(shape, units, bits, group, has_zeros):
    rng = np.random.default_rng(0)
    x, bias = rng.standard_normal(shape).astype(F32), rng.standard_normal(units).astype(F32)
    model, wanted = nbits(x, units, bits, group, has_zeros, bias)
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    assert library.report.counts == {"dense_few_bits": 1}
    close(library(x)[0], wanted, shape[-1])


def test_as_onnx_runtime_computes_it():
    runtime = pytest.importorskip("onnxruntime")
    x = np.random.default_rng(2).standard_normal((3, 256)).astype(F32)
    model, _ = nbits(x, 64, 4, 32, True)
    (wanted,) = runtime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    close(selfbyoc.build(selfbyoc.from_onnx(model))(x)[0], wanted, 256)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["UINT4", "INT4", "UINT8", "INT8"])
def test_constants_that_are_dequantised_in_blocks(axis, kind):
    rng, depth, units, group = np.random.default_rng(3), 128, 40, 32
    bits = int(kind[-1])
    middle = 0 if kind[0] == "U" else 1 << (bits - 1)
    levels, scale, zero, weight = weight_of(rng, units, depth, bits, group, True)
    number = getattr(TensorProto, kind)
    arrays = {"w": levels.astype(int) - middle, "s": scale, "z": zero.astype(int) - middle}
    arrays = {n: a.T if axis == 0 else a for n, a in arrays.items()}
    values = {
        n: numpy_helper.from_array(np.ascontiguousarray(a), n) if n == "s"
        else helper.make_tensor(n, number, a.shape, a.ravel().tolist())
        for n, a in arrays.items()
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=axis, block_size=group)
    ]
    if axis == 0:
        nodes.append(helper.make_node("MatMul", ["x", "d"], ["p"]))
    else:
        nodes.append(helper.make_node("Gemm", ["x", "d"], ["p"], transB=1))
    nodes.append(helper.make_node("Relu", ["p"], ["y"]))
    x = rng.standard_normal((9, depth)).astype(F32)
    model = model_of(nodes, {"x": x}, (9, units), values)
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    assert library.report.counts == {"dense_few_bits": 1}
    close(library(x)[0], np.maximum(x.astype("float64") @ weight.T, 0), depth)


def test_a_group_of_no_whole_words_is_one_of_floats():
    """Once, when it is built; and why is told."""
    rng = np.random.default_rng(4)
    levels, scale, zero, weight = weight_of(rng, 16, 80, 4, 20, True)
    values = {
        "s": scale, **{n: helper.make_tensor(n, TensorProto.UINT4, a.shape, a.ravel().tolist())
                       for n, a in (("w", levels), ("z", zero))},
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=1, block_size=20),
        helper.make_node("Gemm", ["x", "d"], ["y"], transB=1),
    ]
    x = rng.standard_normal((3, 80)).astype(F32)
    model, wanted = model_of(nodes, {"x": x}, (3, 16), values), x.astype("float64") @ weight.T
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    assert library.report.counts == {"dense": 1}
    assert "dequantize_groups" not in library.report.left
    reasons = [r.reason for r in library.report.records if r.composite == "dense_few_bits"]
    assert any("no whole words" in reason for reason in reasons)
    close(library(x)[0], wanted, 80)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"bits": 3}, "expected 2, 4, 8 bits, found 3"),
        ({"w": "x"}, "'x' has to be a constant"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(changed, told):
    model, _ = nbits(np.zeros((1, 64), F32), 16, 4, 32, False)
    (node,) = model.graph.node
    node.name = "here"
    for attribute in node.attribute:
        if attribute.name in changed:
            attribute.i = changed[attribute.name]
    if "w" in changed:
        node.input[1] = changed["w"]
    with pytest.raises(InputError, match=f"MatMulNBits 'here': .*{told}"):
        selfbyoc.from_onnx(model)


def rounded(weight, bits, group):
    """As the documentation has it, [units, depth]."""
    found = np.empty(weight.shape)
    for unit, k in np.ndindex(len(weight), -(-weight.shape[1] // group)):
        part = weight[unit, k * group :][:group].astype("float64")
        low, high = min(part.min(), 0), max(part.max(), 0)
        scale = float(np.float16((high - low) / (2**bits - 1)))
        zero = np.rint(-low / scale)
        levels = np.clip(np.rint(part / scale) + zero, 0, 2**bits - 1)
        found[unit, k * group :][:group] = (levels - zero) * scale
    return found


def around_zero(weight, bits, group):
    """The same of levels that lie around zero."""
    found, middle = np.empty(weight.shape), 2 ** (bits - 1)
    for unit, k in np.ndindex(len(weight), -(-weight.shape[1] // group)):
        part = weight[unit, k * group :][:group].astype("float64")
        scale = float(np.float16(part[np.abs(part).argmax()] / -middle))
        levels = np.clip(np.rint(part / scale), -middle, middle - 1)
        found[unit, k * group :][:group] = levels * scale
    return found


@pytest.mark.parametrize("rounded", [rounded, around_zero])
@pytest.mark.parametrize(("weights", "group"), [("int4", 32), ("int8", 24), ("int4", 64)])
def test_weights_of_few_bits_on_request(weights, group, rounded, tmp_path):
    rng, bits = np.random.default_rng(5), int(weights[3:])
    model, values = network(rng)
    mod = selfbyoc.from_onnx(model)
    library = selfbyoc.build(mod, weights=weights, group=group, symmetric=rounded is around_zero)
    assert library.report.counts == {"dense_few_bits": 2}
    index = rng.integers(0, 50, 7)
    first = values["table"][index] @ rounded(values["w1"].T, bits, group).T + values["b1"]
    wanted = np.maximum(first, 0) @ rounded(values["w2"], bits, group).T + values["b2"]
    close(library(index)[0], wanted, 96 + 80)  # two sums, one after the other
    library.export_library(tmp_path / "few.so")
    again = selfbyoc.load(tmp_path / "few.so")(index)[0]
    np.testing.assert_array_equal(again, library(index)[0])


@pytest.mark.parametrize("weights", ["int4", "int8"])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 64])
def test_groups_of_zeros_magnify_no_rounding(rows, symmetric, weights):
    """As of the unit of a token of padding: with a scale of 1 it was off by 1e-4 of the largest."""
    rng = np.random.default_rng(6)
    x, w = rng.standard_normal((rows, 896)).astype(F32), rng.standard_normal((896, 48)).astype(F32)
    w /= 50
    w[:, 5], w[64:128, 7] = 0, 0
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    mod = selfbyoc.from_onnx(model_of([node], {"x": x}, (rows, 48), {"w": w}))
    y = selfbyoc.build(mod, weights=weights, symmetric=symmetric)(x)[0]
    assert np.abs(y[:, 5]).max() < 1e-6 * np.abs(y).max()
    zeros = selfbyoc.build(
        selfbyoc.from_onnx(model_of([node], {"x": x}, (rows, 48), {"w": 0 * w})),
        weights=weights,
        symmetric=symmetric,
    )
    assert np.abs(zeros(x)[0]).max() < 1e-6


def test_the_command_takes_the_group(tmp_path, capsys):
    rng = np.random.default_rng(5)
    model, _ = network(rng)
    onnx.save(model, tmp_path / "net.onnx")
    asked = ["compile", str(tmp_path / "net.onnx"), "--weights", "int4", "-o"]
    index, found = rng.integers(0, 50, 7), {}
    for group in (32, 16):
        path = tmp_path / f"{group}.so"
        assert main([*asked, str(path), "--group", str(group)]) == 0
        found[group] = selfbyoc.load(path)(index)[0]
    mod = selfbyoc.from_onnx(model)
    whole = selfbyoc.build(mod, weights="int4", group=16)(index)[0]
    np.testing.assert_array_equal(found[16], whole)
    assert not np.array_equal(found[16], found[32])
    assert main([*asked, str(tmp_path / "none.so"), "--group", "12"]) == 1
    assert "expected a multiple of 8, found 12" in capsys.readouterr().err


def test_the_file_is_as_small_as_the_weights(tmp_path):
    x = np.random.default_rng(6).standard_normal((1024, 1024)).astype(F32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    mod = selfbyoc.from_onnx(model_of([node], {"x": x[:1]}, (1, 1024), {"w": x}))
    sizes = {}
    for weights in ("float32", "int4"):
        path = tmp_path / f"{weights}.so"
        selfbyoc.build(mod, weights=weights, group=128).export_library(path)
        sizes[weights] = path.stat().st_size
    saved = sizes["float32"] - sizes["int4"]
    assert saved > x.nbytes * 0.8


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"weights": "int3"},
            "expected float32 or float16 or bfloat16 or int4 or int8, found 'int3'",
        ),
        ({"weights": "int4", "group": 12}, "group: expected a multiple of 8, found 12"),
        ({"symmetric": True}, "symmetric: expected weights of int4 or int8, found float32"),
    ],
)
def test_weights_that_are_none(given, told):
    mod = selfbyoc.from_onnx(network(np.random.default_rng(7))[0])
    with pytest.raises(InputError, match=told):
        selfbyoc.build(mod, **given)
    parted = selfbyoc.partition_for_tefuse(mod)
    with pytest.raises(InputError, match="is partitioned already"):
        selfbyoc.build(parted, weights="int4")
