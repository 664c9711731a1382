"""An exported file is whole: another process calls it at once, by selfbyoc or by TVM alone."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from harness import served

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.errors import InputError, TargetError
from selfbyoc.partition.source_names import NAMES, Names, names_of, with_names
from selfbyoc.runtime.library import Library
from selfbyoc.runtime.note import Note, read_note, write_note
from selfbyoc.runtime.system_compiler import does_not_compile
from selfbyoc.tvm import GENERATION, module_with_attr, target_dict

SHAPES = {"x": ((5, 33), "float32"), "y": ((5, 17), "float32"), "w": ((17, 33), "float32")}
RNG = np.random.default_rng(0)
W, X, Y = (RNG.standard_normal(SHAPES[n][0]).astype("float32") for n in ("w", "x", "y"))
INPUTS = (("x", (5, 33), "float32"), ("y", (5, 17), "float32"))
OUTPUTS = (("sum", (5, 17), "float32"), ("top", (5,), "float32"))


def program(x, y, w):
    z = op.add(op.relu(op.dense(x, w)), y)
    return z, op.max(z, axis=(1,))


def expected():
    z = np.maximum(X @ W.T, 0) + Y
    return [z, z.max(1)]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    mod = with_names(emit(program, SHAPES, {"w": W}), Names(outputs=("sum", "top")))
    parted = selfbyoc.partition_for_tefuse(mod)
    assert selfbyoc.report(parted).counts == {"dense": 1}
    library = selfbyoc.build(parted)
    folder = tmp_path_factory.mktemp("exported")
    library.export_library(folder / "model.so")
    np.savez(folder / "inputs.npz", x=X, y=Y)
    return folder / "model.so", library


def elsewhere(text, path, *hidden):
    """What a program prints in a process of its own, in which some packages cannot be imported."""
    hide = "".join(f"import sys; sys.modules[{name!r}] = None\n" for name in hidden)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", hide + text, str(path), str(path.parent)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


LOADED = """
import json, sys
import numpy as np
import selfbyoc

library, given = selfbyoc.load(sys.argv[1]), dict(np.load(sys.argv[2] + "/inputs.npz"))
calls = library(given["x"], given["y"]), library(y=given["y"], x=given["x"]), library(given)
assert all(np.array_equal(a, b) for call in calls for a, b in zip(call, calls[0]))
np.savez(sys.argv[2] + "/outputs.npz", *calls[0])
print(json.dumps([library.inputs, library.outputs, library.versions, library.report.counts]))
"""


def test_another_process_calls_it_at_once(exported):
    path, library = exported
    told = json.loads(elsewhere(LOADED, path))
    assert told == json.loads(
        json.dumps([INPUTS, OUTPUTS, library.versions, {"dense": 1}])
    )  # as JSON has tuples
    with np.load(path.parent / "outputs.npz") as found:
        for wanted, array in zip(expected(), found.values(), strict=True):
            np.testing.assert_allclose(array, wanted, rtol=1e-4, atol=1e-5)


TVM_ALONE = {
    "relax": """
import sys
import numpy as np
import tvm
from tvm import relax

given = np.load(sys.argv[2] + "/inputs.npz")
machine = relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
found = machine["main"](tvm.runtime.tensor(given["x"]), tvm.runtime.tensor(given["y"]))
np.savez(sys.argv[2] + "/alone.npz", *(r.numpy() for r in found))
""",
    "relay": """
import sys
import numpy as np
import tvm
from tvm.contrib.graph_executor import GraphModule

given = np.load(sys.argv[2] + "/inputs.npz")
model = GraphModule(tvm.runtime.load_module(sys.argv[1])["default"](tvm.cpu()))
model.run(x=given["x"], y=given["y"])
np.savez(sys.argv[2] + "/alone.npz", *(model.get_output(i).numpy() for i in range(2)))
""",
}


def test_tvm_alone_runs_it(exported):
    path, _ = exported
    elsewhere(TVM_ALONE[GENERATION], path, "selfbyoc")
    with np.load(path.parent / "alone.npz") as found:
        for wanted, array in zip(expected(), found.values(), strict=True):
            np.testing.assert_allclose(array, wanted, rtol=1e-4, atol=1e-5)


def test_what_is_loaded_is_what_was_built(exported):
    path, library = exported
    again = selfbyoc.load(str(path))
    for name in ("inputs", "outputs", "versions", "report"):
        assert getattr(again, name) == getattr(library, name)
    assert target_dict(again.target) == target_dict(library.target)
    assert (again.inputs, again.outputs) == (INPUTS, OUTPUTS)
    assert again.versions["generation"] == GENERATION
    again.export_library(path.with_name("again.so"))
    np.testing.assert_array_equal(
        selfbyoc.load(path.with_name("again.so"))(X, Y)[0], library(X, Y)[0]
    )


def test_outputs_without_names():
    one = selfbyoc.build(emit(lambda x: op.relu(x), {"x": SHAPES["x"]}))
    assert one.outputs == (("output", (5, 33), "float32"),)
    two = selfbyoc.build(emit(lambda x: (op.relu(x), op.exp(x)), {"x": SHAPES["x"]}))
    assert [name for name, _, _ in two.outputs] == ["output_0", "output_1"]


def test_names_travel_with_the_module():
    mod = with_names(emit(lambda x: op.softmax(x), {"x": SHAPES["x"]}), Names(outputs=("p",)))
    for found in (mod, selfbyoc.partition_for_tefuse(mod), selfbyoc.optimize_layouts(mod)):
        assert names_of(found) == Names(outputs=("p",))
        assert selfbyoc.build(found).outputs == (("p", (5, 33), "float32"),)
    with pytest.raises(InputError, match=r"tefuse.names is damaged: outputs: found 'x'"):
        names_of(module_with_attr(mod, NAMES, '{"outputs": "x"}'))


def test_names_of_an_onnx_model():
    pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    make = helper.make_tensor_value_info
    nodes = [helper.make_node("Relu", ["in.1"], ["last/hidden"]),
             helper.make_node("Exp", ["in.1"], ["1"])]  # fmt: skip
    inputs = [make("in.1", TensorProto.FLOAT, (3, 5))]
    outputs = [make(name, TensorProto.FLOAT, (3, 5)) for name in ("last/hidden", "1")]
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs), opset_imports=opset, ir_version=8
    )
    library = selfbyoc.build(selfbyoc.from_onnx(model))
    assert [name for name, _, _ in library.inputs] == ["in.1"]
    assert [name for name, _, _ in library.outputs] == ["last/hidden", "1"]
    x = np.ones((3, 5), "float32")
    np.testing.assert_allclose(library({"in.1": -x})[1], np.exp(-x), rtol=1e-6)


def test_another_file_in_its_place(tmp_path):
    """By a name that it knows, the system's loader hands out what it loaded before."""
    x, loaded = np.ones((3, 5), "float32"), []
    for number in (1.0, 2.0, 3.0):
        plus = {"c": np.full((1,), number, "float32")}
        shapes = {"x": (x.shape, "float32"), "c": ((1,), "float32")}
        built = selfbyoc.build(emit(lambda x, c: op.add(op.softmax(x), c), shapes, plus))
        built.export_library(tmp_path / "model.so")
        loaded.append(selfbyoc.load(tmp_path / "model.so"))
    for number, library in enumerate(loaded, 1):
        np.testing.assert_allclose(library(x)[0], number + 0.2, rtol=1e-5)


# ---- what cannot be loaded


def test_no_file_and_no_library(tmp_path):
    with pytest.raises(InputError, match=r"none\.so cannot be read: No such file"):
        selfbyoc.load(tmp_path / "none.so")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        selfbyoc.load(tmp_path)
    for content in (b"text", b"\x7fELF" + bytes(100)):
        (tmp_path / "no.so").write_bytes(content)
        with pytest.raises(InputError, match=r"no\.so cannot be loaded: "):
            selfbyoc.load(tmp_path / "no.so")


def test_a_library_of_the_other_generation(tmp_path):
    other = {"relax": "relay", "relay": "relax"}[GENERATION]
    text = json.dumps({"versions": {"generation": other, "tvm": "0.99"}})
    (tmp_path / "model.so").write_bytes(b"selfbyoc.note=" + text.encode() + b"\0")
    with pytest.raises(TargetError, match=rf"built by TVM 0.99 \({other}\), which TVM .* cannot"):
        selfbyoc.load(tmp_path / "model.so")


def test_a_library_of_another_tool(exported, tmp_path):
    _, library = exported
    library.native.export_library(str(tmp_path / "model.so"))
    again = selfbyoc.load(tmp_path / "model.so")
    with pytest.raises(InputError, match=r"the file does not say .*load\(path, like=library\)"):
        again(X, Y)
    like = selfbyoc.load(tmp_path / "model.so", Library(None, INPUTS))
    np.testing.assert_array_equal(like(X, Y)[0], library(X, Y)[0])


NASTY = ['"', "\\", "??/", "a\nb", "\0", "\x1b[2J", "ä", "\U0001f600", 'selfbyoc.note={"', "%s"]


def test_names_of_any_letters(tmp_path):
    """Through the compiler."""
    inputs = tuple((name, (1, None), "float32") for name in NASTY)
    note = Note(inputs=inputs, is_sealed=True)
    path, compiler = tmp_path / "note.so", os.environ.get("CXX", "g++")
    source = write_note(tmp_path, note)
    served(does_not_compile(compiler))
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", str(path)], check=True)
    selfbyoc.seal(path)
    assert read_note(path) == note
