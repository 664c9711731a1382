"""Packages that are installed and do not serve: told in one line by whoever would have used them,
with the package's own words.
"""

import subprocess
import sys

import broken_programs
import numpy as np
import pytest
from harness import served

import selfbyoc
from selfbyoc.__main__ import main
from selfbyoc.analysis.gpu import nvrtc
from selfbyoc.commands.bench.contenders import CONTENDERS
from selfbyoc.common.optional import cannot_use, extra, is_installed
from selfbyoc.errors import FallbackWarning, MissingExtra, ModelWarning, ToolError
from selfbyoc.runtime import system_compiler
from selfbyoc.tuning.cost_model import chosen_model

pytestmark = pytest.mark.usefixtures("asked_afresh")
PACKAGES = ("onnxruntime", "openvino", "pygraphviz", "xgboost")
ADD = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) {y = Add(x, x)}'
# Sessions that add, and are off by one.
WRONG = """
class InferenceSession:
    def __init__(self, model, providers): ...
    def run(self, outputs, inputs): return [2 * inputs["x"] + 1]
"""


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """Call it with a package and its text."""

    def plant(name, text):
        broken_programs.package(tmp_path, name, text)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, name, raising=False)

    return plant


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *((name, "fails") for name in PACKAGES),
        *(("onnxruntime", how) for how in broken_programs.IMPORTED),
    ],
)
def test_a_package(name, how, planted, monkeypatch):
    planted(name, broken_programs.IMPORTED[how])
    broken_programs.impatient(monkeypatch, how)
    with pytest.raises(ToolError) as raised:
        extra(name)
    assert str(raised.value) == f"{name}: {broken_programs.PACKAGES_TOLD[how]}"
    assert cannot_use(name) == str(raised.value)
    for contender in CONTENDERS:
        if name in contender.needs:
            assert contender.missing() == str(raised.value)
    with pytest.raises(pytest.skip.Exception) as skipped:
        pytest.importorskip(name)
    assert str(skipped.value) == str(raised.value)


def test_a_package_that_computes_something_else(planted):
    planted("onnxruntime", WRONG)
    assert cannot_use("onnxruntime") == "onnxruntime: the answer '[ 3. 41.]' is wrong"


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_that_serves(name):
    assert not is_installed(name) or cannot_use(name) == ""


def test_a_model_whose_constants_nobody_folds(planted):
    onnx = pytest.importorskip("onnx")
    planted("onnxruntime", broken_programs.IMPORTED["crashes"])
    told = r"not folded by ONNX Runtime: onnxruntime: ended by Aborted"
    with pytest.warns(ModelWarning, match=told):
        mod = selfbyoc.from_onnx(onnx.parser.parse_model(ADD))
    found = selfbyoc.build(mod, cache=False)(np.array([1, 20], "float32"))
    np.testing.assert_array_equal(found[0], [2, 40])


def test_a_page_that_nobody_draws(planted, tmp_path, capsys):
    onnx = pytest.importorskip("onnx")
    onnx.save(onnx.parser.parse_model(ADD), tmp_path / "model.onnx")
    planted("pygraphviz", broken_programs.IMPORTED["fails"])
    command = ["explain", str(tmp_path / "model.onnx"), "--html", str(tmp_path / "page.html")]
    assert main(command) == 1
    assert capsys.readouterr().err == "error: pygraphviz: RuntimeError: no AVX here\n"


@pytest.mark.parametrize("command", [["demo"], ["fuzz", "--onnx", "--count", "1"]])
def test_commands_that_need_onnx_runtime(command, planted, capsys):
    planted("onnxruntime", broken_programs.IMPORTED["fails"])
    assert main(command) == 1
    assert capsys.readouterr().err == "error: onnxruntime: RuntimeError: no AVX here\n"


def test_a_cost_model(planted):
    planted("xgboost", broken_programs.IMPORTED["fails"])
    told = "xgboost: RuntimeError: no AVX here"
    with pytest.raises(ToolError, match=f"^{told}; or cost_model='none'$"):
        chosen_model(None, "xgb", 0)
    with pytest.warns(FallbackWarning, match=f"^no cost model: {told}$"):
        assert chosen_model(None, "auto", 0) is None


# ---- NVRTC


@pytest.fixture
def planted_nvrtc(tmp_path, monkeypatch):
    """Its folders, with this library."""
    (tmp_path / "lib").mkdir()
    monkeypatch.setattr(nvrtc, "folder_of", lambda package: tmp_path)
    nvrtc._nvrtc.cache_clear()
    yield tmp_path / "lib" / "libnvrtc.so.12"
    nvrtc._nvrtc.cache_clear()


def refused():
    with pytest.raises(ToolError) as raised:
        nvrtc.assembled('extern "C" __global__ void f() {}', "sm_80")
    assert str(raised.value) == nvrtc.cannot_assemble()
    return str(raised.value)


def test_nvrtc_that_does_not_load(planted_nvrtc):
    assert "cannot open shared object file" in refused()
    planted_nvrtc.write_text("no library")
    assert "file too short" in refused()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return 5;", "NVRTC: status 1"),
        ("*(volatile int *)0 = 0; return 0;", "NVRTC: ended by Segmentation fault (signal 11)"),
        ("sleep(600); return 0;", "NVRTC: no answer within 0.3 s"),
        ("return 0;", "NVRTC: the answer '' is wrong"),
    ],
)
def test_nvrtc_that_does_not_compile(body, told, planted_nvrtc, monkeypatch):
    served(system_compiler.does_not_compile("cc"))
    names = ("CreateProgram", "GetProgramLogSize", "GetProgramLog", "DestroyProgram")
    source = "#include <unistd.h>\n" + "".join(f"int nvrtc{n}() {{ return 0; }}\n" for n in names)
    source += f"int nvrtcCompileProgram() {{ {body} }}\n"
    (planted_nvrtc.parent / "it.c").write_text(source)
    command = [
        "cc",
        "-shared",
        "-fPIC",
        "-o",
        str(planted_nvrtc),
        str(planted_nvrtc.parent / "it.c"),
    ]
    subprocess.run(command, check=True)
    if "sleep" in body:
        broken_programs.impatient(monkeypatch, "hangs")
    assert refused() == told


def test_no_nvrtc(monkeypatch):
    monkeypatch.setattr(nvrtc, "folder_of", lambda package: None)
    nvrtc._nvrtc.cache_clear()
    with pytest.raises(
        MissingExtra, match=r"NVRTC is not installed: pip install 'selfbyoc\[cuda\]'"
    ):
        nvrtc.assembled("", "sm_80")
