"""Weights of few bits by rows that are levels of 8 bits: `accuracy_level` 4 of MatMulNBits, and
`build(activations="int8")`.
"""

import re

import numpy as np
import onnx
import pytest
from few_bits_models import F32, PRODUCTS, nbits, network
from onnx import helper

import selfbyoc
from selfbyoc import op
from selfbyoc.__main__ import main
from selfbyoc.analysis.kernels import kernels
from selfbyoc.errors import InputError, TargetError
from selfbyoc.machine import host
from selfbyoc.ops.few_bits import levels_of_rows
from selfbyoc.tir.lowering import finished, machine_code
from selfbyoc.tvm import GENERATION, make_target, module_source


def by_levels(shape, units, bits, group, has_zeros=True, bias=None):
    """-> such a model, rows for it, and what integers make of them in NumPy."""
    x = np.random.default_rng(2).standard_normal(shape).astype(F32)
    model, _ = nbits(x, units, bits, group, has_zeros, bias)
    (node,) = model.graph.node
    node.attribute.append(helper.make_attribute("accuracy_level", 4))
    return model, x, nbits(rounded(x, group), units, bits, group, has_zeros, bias)[1]


def rounded(x, group):
    levels, unit = levels_of_rows(x, group)
    assert np.abs(levels).max() == 127
    return levels * unit.astype("float64")


def close(found, wanted):
    """Sums of a group are exact; those over groups are of floats."""
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("shape", "units", "bits", "group", "has_zeros"),
    [
        *PRODUCTS,
        ((13, 256), 48, 4, 64, True),
        ((1, 1, 64), 1, 8, 32, True),
        ((4, 16), 7, 4, 32, True),
    ],
)
def test_products_of_rows_of_levels(shape, units, bits, group, has_zeros):
    bias = np.random.default_rng(0).standard_normal(units).astype(F32)
    model, x, wanted = by_levels(shape, units, bits, group, has_zeros, bias)
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    assert library.report.counts == {"dense_few_bits": 1}
    assert not library.report.left
    close(library(x)[0], wanted)


def test_any_number_of_rows():
    if GENERATION == "relay":
        pytest.skip("Relay's sizes have no names")
    model, _, _ = by_levels((7, 160), 33, 4, 32)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "rows"
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    assert library.report.counts == {"dense_few_bits": 1}
    for rows in (1, 2, 7, 40, 131):
        x = np.random.default_rng(rows).standard_normal((rows, 160)).astype(F32)
        close(library(x)[0], nbits(rounded(x, 32), 33, 4, 32, True)[1])


@pytest.mark.parametrize("bits", [4, 8])
def test_as_onnx_runtime_computes_it(bits):
    runtime = pytest.importorskip("onnxruntime")
    model, x, _ = by_levels((3, 256), 64, bits, 32)
    (wanted,) = runtime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    close(selfbyoc.build(selfbyoc.from_onnx(model))(x)[0], wanted)


def dense(bits, group, rows_group=None):
    def program(x, levels, scale, zero):
        weight = op.dequantize_groups(levels, scale, zero, bits=bits, group=group)
        return op.dense(op.fake_quantize_groups(x, group=rows_group or group), weight)

    return program


def module(shape, units, bits, group, rows_group=None, dtype="float32"):
    rng, depth = np.random.default_rng(1), shape[-1]
    count = -(-depth // group)
    values = {
        "levels": rng.integers(0, 1 << bits, (units, depth), "uint8"),
        "scale": rng.uniform(0.01, 0.02, (units, count)).astype(dtype),
        "zero": rng.integers(0, 1 << bits, (units, count)).astype(dtype),
    }
    types = {n: (a.shape, str(a.dtype)) for n, a in values.items()}
    program = dense(bits, group, rows_group)
    mod = selfbyoc.emit(program, {"x": (shape, "float32"), **types}, values)
    at = np.arange(depth) // group
    scale, zero = (values[name].astype("float64")[:, at] for name in ("scale", "zero"))
    return mod, (values["levels"] - zero) * scale


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(
    "cpu", ["x86-64", "nehalem", "haswell", "skylake-avx512", "cascadelake", "sierraforest"]
)
def test_every_cpu_sums_the_same(cpu, bits, dtype):
    """Those that the host is not are compiled."""
    try:
        target = make_target(f"llvm -mcpu={cpu}")
        mod, weight = module((5, 96), 21, bits, 32, dtype=dtype)
        library = selfbyoc.build(mod, target)
    except TargetError as err:
        pytest.skip(str(err))
    assert library.report.counts == {"dense_few_bits": 1}
    if host.runs(target):
        x = np.random.default_rng(3).standard_normal((5, 96)).astype(F32)
        close(library(x)[0], rounded(x, 32) @ weight.T)


@pytest.mark.parametrize(
    ("cpu", "bits", "wanted"),
    [
        ("haswell", 4, ("vpmaddubsw", "vpaddw")), ("haswell", 8, ("vpmaddwd",)),
        ("nehalem", 2, ("pmaddubsw", "paddw")), ("x86-64", 4, ("pmaddwd",)),
        ("cascadelake", 4, ("vpdpbusd",)), ("cascadelake", 8, ("vpdpbusd",)),
    ],
)  # fmt: skip
def test_words_are_multiplied_by_the_instructions_that_there_are(cpu, bits, wanted):
    """Bytes of 8 bits never by vpmaddubsw, which saturates."""
    target = make_target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}")
    mod, _ = module((5, 96), 21, bits, 32, dtype="float16")
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=target))
    _, scheduled = kernel.schedule(target)
    func = finished(scheduled.mod["main"], target).with_attr("global_symbol", "main")
    code = module_source(machine_code(func, "main", target), "asm")
    assert all(re.search(rf"\s{name}\s", code) for name in wanted), wanted
    assert ("pmaddubsw" in code) == ("pmaddubsw" in wanted[0])
    # Scales of float16 are floats where no instruction makes them so.
    assert ("vcvtph2ps" in code) == (cpu not in ("nehalem", "x86-64"))
    assert not re.search(r"call\w*\s+\S*(h2f|extendhf)", code)


@pytest.mark.parametrize(
    ("bits", "group", "levels"),
    [(2, 128, 128), (4, 32, 32), (4, 128, 32), (4, 48, 24), (4, 40, 40), (8, 32, 32)],
)
def test_sums_of_16_bits_are_of_what_fits(bits, group, levels):
    """Of the largest levels of both, and of the least."""
    target = make_target("llvm -mcpu=haswell")
    mod, _ = module((2, 2 * group), 16, bits, group)
    (kernel,) = kernels(selfbyoc.partition_for_tefuse(mod, target=target))
    plan = kernel.schedule(target)[0].plan
    assert plan.levels.at_once == levels
    assert plan.levels.in_halves == (bits < 8 and group != 40)
    if not host.runs(target):
        pytest.skip("no AVX2")
    most = (1 << bits) - 1
    factors = {name: ((16, 2), "float32") for name in ("scale", "zero")}
    mod = selfbyoc.emit(
        dense(bits, group),
        {"x": ((2, 2 * group), "float32"), "levels": ((16, 2 * group), "uint8"), **factors},
        {
            "levels": np.full((16, 2 * group), most, "uint8"),
            "scale": np.ones((16, 2), F32), "zero": np.zeros((16, 2), F32),
        },
    )  # fmt: skip
    x = np.stack([np.full(2 * group, 127, F32), np.full(2 * group, -127, F32)])
    found = selfbyoc.build(mod, target)(x)[0]
    wanted = np.broadcast_to([[127.0], [-127.0]], (2, 16)) * most * 2 * group
    np.testing.assert_array_equal(found, wanted)


def test_rows_that_are_no_numbers_or_nothing():
    mod, weight = module((4, 64), 19, 4, 32)
    x = np.random.default_rng(4).standard_normal((4, 64)).astype(F32)
    x[0], x[1, 5], x[2, 40] = 0, np.nan, np.inf
    found = selfbyoc.build(mod)(x)[0]
    assert np.isnan(found[1:3]).all()
    assert (found[0] == 0).all()
    close(found[3:], rounded(x[3:], 32) @ weight.T)


def test_groups_that_differ_are_told():
    mod, weight = module((3, 64), 40, 4, 32, rows_group=16)
    library = selfbyoc.build(mod)
    told = [r.reason for r in library.report.records if r.composite == "dense_few_bits"]
    assert "rows have groups of 16, weights of 32" in told[0]
    x = np.random.default_rng(5).standard_normal((3, 64)).astype(F32)
    close(library(x)[0], rounded(x, 16) @ weight.T)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("weights", ["int4", "int8"])
def test_on_request(weights, symmetric, tmp_path):
    rng = np.random.default_rng(5)
    model, _ = network(rng)
    mod = selfbyoc.from_onnx(model)
    few = {"weights": weights, "group": 16, "symmetric": symmetric}
    exact = selfbyoc.build(mod, **few)
    library = selfbyoc.build(mod, **few, activations="int8")
    assert library.report.counts == {"dense_few_bits": 2}
    assert "fake_quantize_groups" not in library.report.left
    index = rng.integers(0, 50, 7)
    found, wanted = library(index)[0], exact(index)[0]
    assert 0 < np.abs(found - wanted).max() < 0.02 * np.abs(wanted).max()
    library.export_library(tmp_path / "few.so")
    np.testing.assert_array_equal(selfbyoc.load(tmp_path / "few.so")(index)[0], found)
    onnx.save(model, tmp_path / "net.onnx")
    asked = ["compile", str(tmp_path / "net.onnx"), "--weights", weights, "--group", "16"]
    path = tmp_path / "told.so"
    around = ["--symmetric"] * symmetric
    assert main([*asked, *around, "--activations", "int8", "-o", str(path)]) == 0
    np.testing.assert_array_equal(selfbyoc.load(path)(index)[0], found)


def test_activations_that_are_none():
    mod = selfbyoc.from_onnx(network(np.random.default_rng(7))[0])
    with pytest.raises(InputError, match="activations: expected float32 beside weights of float32"):
        selfbyoc.build(mod, activations="int8")
    with pytest.raises(InputError, match="float32 or int8 beside weights of int4, found 'int4'"):
        selfbyoc.build(mod, weights="int4", activations="int4")
