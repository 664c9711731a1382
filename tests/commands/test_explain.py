"""`python -m selfbyoc explain`: short, in full, as data, as a page; and one line for what is
broken.
"""

import json
import os
import re
import subprocess
import sys

import pytest

import selfbyoc
from selfbyoc.__main__ import main

onnx = pytest.importorskip("onnx")

from models import onnx_model  # noqa: E402 (needs onnx)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("models") / "network.onnx"
    onnx.save(onnx_model(), found)
    return found


def printed(capsys, *args):
    assert main(["explain", *map(str, args)]) == 0
    return capsys.readouterr().out


def test_short(path, capsys):
    text = printed(capsys, path)
    for part in ("Kernels for llvm", "conv2d_batch_norm_relu", "own schedule", "Left to TVM"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_same_text_twice(path, capsys):
    assert printed(capsys, path, "--all") == printed(capsys, path, "--all")


def test_every_record(path, capsys):
    text = printed(capsys, path, "--all")
    for status in ("matched", "missed", "taken", "part"):
        assert status in text
    assert "Read as (part of) another op" in text


def test_one_root(path, capsys):
    text = printed(capsys, path, "--root", "relu_1")
    assert "relu_1 is in one kernel with the ops of conv2d_batch_norm_relu at relu_1." in text
    assert "stays in the kernel" in text
    assert "missed" in text


def test_one_root_by_the_name_that_was_written(path, capsys):
    assert "erf was read as gelu" in printed(capsys, path, "--root", "erf")


def test_one_composite(path, capsys):
    text = printed(capsys, path, "--composite", "max_pool2d")
    assert "max_pool2d" in text
    assert "dense" not in text
    text = printed(capsys, path, "--composite", "softmax", "--all")
    assert text == "No op of this model can be the root of composite softmax.\n"


def test_a_target(path, capsys):
    assert "Kernels for c:" in printed(capsys, path, "--target", "c")


def test_data(path, tmp_path, capsys):
    out = tmp_path / "new" / "out.json"
    printed(capsys, path, "--json", out)
    text = out.read_text(encoding="utf-8")
    found = selfbyoc.Explanation.from_json(text)
    assert len(found.records) == len(json.loads(text)["records"]) > 50


def test_page(path, tmp_path, capsys):
    pytest.importorskip("pygraphviz")
    out = tmp_path / "out.html"
    printed(capsys, path, "--html", out)
    assert "<svg" in out.read_text(encoding="utf-8")


def truncated():
    data = onnx_model().SerializeToString()
    return data[: len(data) // 2]


def wrong_rank():
    """A model that ONNX accepts without shape inference, and TVM does not."""
    model = onnx_model()
    tensor = next(t for t in model.graph.initializer if t.name == "w1")
    del tensor.dims[:]
    tensor.dims.extend([6 * 8 * 9])
    return model.SerializeToString()


@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 100, b"PK\x03\x04 zip", "<html>".encode("utf-16"), truncated,
                wrong_rank],
)  # fmt: skip
def test_broken_files(tmp_path, capsys, content):
    path = tmp_path / "broken.onnx"
    path.write_bytes(content() if callable(content) else content)
    fails(capsys, "broken.onnx", path)


def test_a_folder_and_nothing(tmp_path, capsys):
    fails(capsys, str(tmp_path), tmp_path)
    fails(capsys, "nothing.onnx", tmp_path / "nothing.onnx")


def fails(capsys, about, *args):
    assert main(["explain", *map(str, args)]) == 1
    found = capsys.readouterr()
    assert found.err.startswith("error: ")
    assert about in found.err
    assert found.err.count("\n") == 1


def test_wrong_names(path, tmp_path, capsys):
    fails(capsys, "composite 'nosuch' was not asked", path, "--composite", "nosuch")
    fails(capsys, "'relu_99' is no op of this model", path, "--root", "relu_99")
    fails(capsys, "target: 'nosuch' is not a target", path, "--target", "nosuch")
    (tmp_path / "file").write_text("")
    fails(capsys, "cannot be written", path, "--json", tmp_path / "file" / "out.json")


def test_no_traceback_from_a_process_of_its_own(tmp_path):
    path = tmp_path / "broken.onnx"
    path.write_bytes(truncated())
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "selfbyoc", "explain", str(path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr + done.stdout
    assert done.stderr.splitlines()[-1].startswith("error: ")


def test_times_are_for_the_page(path, capsys):
    assert main(["explain", str(path), "--time"]) == 1
    assert "--time: times are on the page; give --html FILE too" in capsys.readouterr().err


def test_a_page_with_times(path, tmp_path, capsys):
    pytest.importorskip("pygraphviz")
    page = tmp_path / "page.html"
    printed(capsys, path, "--html", page, "--time")
    html = page.read_text(encoding="utf-8")
    assert "each measured alone" in html
    assert re.search(r"<b>[\d.]+ ms</b>, \S+ of the model's time", html)
