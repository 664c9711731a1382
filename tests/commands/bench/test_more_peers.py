"""Peers that convert the ONNX file first: MNN, ncnn, tract, IREE, ExecuTorch, LiteRT, zentorch."""

import sys

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
from onnx_models import FLOAT, INT64, model, random, saved, value

from selfbyoc.commands.bench.contenders import CONTENDERS
from selfbyoc.commands.bench.contenders.converting import as_list, ends, in_32_bits, lifted, ran
from selfbyoc.commands.bench.inputs import inputs_of
from selfbyoc.commands.bench.reference import reference
from selfbyoc.commands.bench.run import SLOW_ONES, Selection
from selfbyoc.commands.bench.setting import make_setting
from selfbyoc.commands.bench.suite import NAMED, SWEEP
from selfbyoc.errors import InputError

NAMES = ("zentorch", "iree", "executorch", "litert", "mnn", "ncnn", "tract")
BY_NAME = {c.name: c for c in CONTENDERS}


def small():
    """A convolution, its activation, an average and a dense layer."""
    nodes = [
        ("Conv", ["x", "w", "b"], "a", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        ("Relu", ["a"], "r", {}),
        ("GlobalAveragePool", ["r"], "g", {}),
        ("Flatten", ["g"], "f", {}),
        ("Gemm", ["f", "u", "c"], "y", {}),
    ]
    ends = [value("x", FLOAT, 1, 5, 19, 17)], [value("y", FLOAT, 1, 30)]
    arrays = {"w": random(20, 5, 3, 3), "b": random(20), "u": random(20, 30), "c": random(30)}
    return model(nodes, *ends, **arrays)


def old_softmax():
    """Before opset 13 it is over all axes from the first."""
    ends = [value("x", FLOAT, 1, 30, 1, 1)], [value("y", FLOAT, 1, 30, 1, 1)]
    return model([("Softmax", ["x"], "y", {})], *ends, opset=9)


@pytest.mark.parametrize("name", NAMES)
def test_they_compute_the_same(name, tmp_path):
    contender = BY_NAME[name]
    if contender.missing():
        pytest.skip(contender.missing())
    proto = small()
    inputs = inputs_of(proto)
    built = contender.build(str(saved(tmp_path / "m.onnx", proto)), inputs, make_setting(1))
    for _ in range(2):
        built.run()
    (found,), (wanted,) = built.outputs(), reference(proto, inputs)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_they_are_peers_that_may_be_left_out():
    """Those that take long to build are asked for by name where there are many rows."""
    assert {c.name for c in CONTENDERS if c.is_peer} >= set(NAMES)
    assert set(NAMES) & set(SLOW_ONES) == {"zentorch", "iree", "executorch", "litert"}
    assert set(NAMES) <= set(Selection().names(NAMED))
    assert set(NAMES) & set(Selection().names(SWEEP)) == {"mnn", "ncnn", "tract"}


def test_an_old_model_is_lifted(tmp_path):
    path = str(saved(tmp_path / "old.onnx", old_softmax()))
    found = onnx.load(lifted(path, tmp_path))
    assert found.opset_import[0].version == 17
    given = {"x": random(1, 30, 1, 1)}
    (found,) = reference(found, given)
    assert found.sum() == pytest.approx(1)  # and not 30 ones
    new = str(saved(tmp_path / "new.onnx", small()))
    assert str(lifted(new, tmp_path)) == new


def test_a_converter_that_fails_says_why(tmp_path):
    ran([sys.executable, "-c", "print(1)"], tmp_path)
    code = "import sys; print('no such layer', file=sys.stderr); sys.exit(3)"
    with pytest.raises(InputError, match=r"ended with 3: no such layer"):
        ran([sys.executable, "-c", code], tmp_path)
    with pytest.raises(InputError, match="ended with 1: nothing said"):
        ran([sys.executable, "-c", "raise SystemExit(1)"], tmp_path)


def test_what_they_are_given(tmp_path):
    """Ids in 32 bits, names in the order of the file."""
    nodes = [("Gather", ["t", "ids"], "y", {}), ("Add", ["y", "x"], "z", {})]
    given = [value("ids", INT64, 3), value("x", FLOAT, 3, 4)]
    proto = model(nodes, given, [value("z", FLOAT, 3, 4), value("y", FLOAT, 3, 4)], t=random(9, 4))
    assert ends(str(saved(tmp_path / "m.onnx", proto))) == (["ids", "x"], ["z", "y"])
    kinds = [a.dtype.name for a in in_32_bits(inputs_of(proto)).values()]
    assert kinds == ["int32", "float32"]
    assert (as_list(1), as_list((1, 2)), as_list([3])) == ([1], [1, 2], [3])
