"""Where a command writes: over nothing that it reads, in the place of no device, pipe or folder."""

import os
import socket
from pathlib import Path

import numpy as np
import pytest

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.__main__ import main
from selfbyoc.common.files import check_output, write_text, written
from selfbyoc.errors import InputError

onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

WEIGHT = np.ones((8, 16), "float32")


def model():
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "net",
        [info("x", TensorProto.FLOAT, (2, 8))], [info("y", TensorProto.FLOAT, (2, 16))],
        [numpy_helper.from_array(WEIGHT, "w")],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model, one with its weights beside it, other names of the first, and what is no file."""
    monkeypatch.chdir(tmp_path)
    onnx.save(model(), "net.onnx")
    onnx.save(
        model(), "large.onnx", save_as_external_data=True, location="large.bin", size_threshold=0
    )
    os.link("net.onnx", "hard.onnx")
    os.symlink("net.onnx", "link.onnx")
    os.mkfifo("pipe.so")
    os.symlink("pipe.so", "to_pipe.so")
    os.symlink("/dev/null", "to_device.so")
    os.mkdir("folder.so")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.so")
        yield tmp_path


def state(folder):
    """Of each file what it is, and which bytes it has."""
    found = {}
    for path in sorted(folder.iterdir()):
        about = path.lstat()
        held = path.read_bytes() if path.is_file() else os.path.islink(path) and os.readlink(path)
        found[path.name] = (about.st_ino, about.st_mode, held)
    return found


THINGS = {
    "pipe.so": "found a pipe", "to_pipe.so": "found a pipe", "/dev/null": "found a device",
    "to_device.so": "found a device", "folder.so": "found a directory",
    "socket.so": "found a socket", "net.onnx": "is read for it", "hard.onnx": "is read for it",
    "link.onnx": "is read for it", "net.onnx/x.so": "Not a directory",
}  # fmt: skip


@pytest.mark.parametrize("output", THINGS)
@pytest.mark.parametrize("command", ["compile net.onnx", "quantize net.onnx --random 1 --no-build"])
def test_no_file_of_a_command_takes_their_place(folder, command, output, capsys):
    before = state(folder)
    assert main([*command.split(), "-o", output]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {output} cannot be written: ")
    assert THINGS[output] in error
    assert state(folder) == before


@pytest.mark.parametrize(
    "arguments",
    [
        "compile large.onnx -o large.bin", "verify net.onnx --json hard.onnx",
        "verify large.onnx --json large.bin", "explain net.onnx --html link.onnx",
        "melting net.onnx --json net.onnx", "tune net.onnx --json net.onnx",
        "bounds net.onnx --json net.onnx", "bench net.onnx --roofline net.onnx",
        "bench net.onnx --json folder.so", "verify net.onnx --json folder.so",
        "fuzz --like net.onnx --json net.onnx", "op-info --json folder.so",
    ],
)  # fmt: skip
def test_nor_any_report(folder, arguments, capsys):
    before = state(folder)
    assert main(arguments.split()) == 1
    assert f"{arguments.split()[-1]} cannot be written: " in capsys.readouterr().err
    assert state(folder) == before


def test_nor_the_results_of_a_run(folder, capsys):
    """A result is named as the input is."""
    np.save("out0.npy", np.ones((3, 4), "float32"))
    library = selfbyoc.build(emit(lambda x: op.tanh(x), {"x": (3, 4)}))
    library.export_library("tanh.so")
    name = library.outputs[0][0]
    os.rename("out0.npy", f"{name}.npy")
    before = state(folder)
    assert main(["run", "tanh.so", "--input", f"x={name}.npy", "--output", "."]) == 1
    assert f"{name}.npy, which is read for it" in capsys.readouterr().err
    assert state(folder) == before


@pytest.mark.parametrize("place", [name for name in THINGS if "onnx" not in name])
def test_nor_the_file_of_a_function(folder, place):
    library = selfbyoc.build(emit(lambda x: op.tanh(x), {"x": (3, 4)}))
    before = state(folder)
    with pytest.raises(InputError, match=THINGS[place]):
        library.export_library(place)
    with pytest.raises(InputError, match=THINGS[place]), written(folder / place):
        pass
    assert state(folder) == before


def test_a_text_goes_to_a_stream():
    """As to /dev/stdout; no block device takes one."""
    write_text(Path("/dev/null"), "all")
    block = next((f"/dev/{n}" for n in os.listdir("/dev") if _is_block(f"/dev/{n}")), None)
    if block is not None:
        with pytest.raises(InputError, match="found a device"):
            check_output(Path(block), takes_text=True)


def _is_block(path):
    return os.path.exists(path) and (os.stat(path).st_mode & 0o170000) == 0o060000
