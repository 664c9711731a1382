"""Which TVMs this library imports under, and what it says of others and of missing packages."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import selfbyoc
from selfbyoc.common import optional as extra
from selfbyoc.common import supported
from selfbyoc.errors import MissingExtra, UnsupportedTVM
from selfbyoc.tvm import GENERATION, tvm

ROOT = Path(selfbyoc.__file__).parents[1]
PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def planted(folder, version=None, ffi=None, body="raise OSError('undefined symbol')", relay=False):
    """A folder with another TVM in it, as pip would have installed it."""
    tvm_folder = folder / "tvm"
    tvm_folder.mkdir()
    (tvm_folder / "__init__.py").write_text(body)
    if relay:
        (tvm_folder / "relay").mkdir()
        (tvm_folder / "relay" / "__init__.py").write_text("")
    for name, found in (("apache_tvm", version), ("apache_tvm_ffi", ffi)):
        if found:
            info = folder / f"{name}-{found}.dist-info"
            info.mkdir()
            text = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {found}\n"
            (info / "METADATA").write_text(text)
    return folder


def imported(folder, code="import selfbyoc"):
    """What that says with that folder first on the path."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({"version": "0.25.0.post1", "ffi": "0.1.14.post1"}, "found apache-tvm 0.25.0.post1; "),
        ({"version": "0.28.0", "ffi": "0.1.14.post1"}, "found apache-tvm 0.28.0; "),
        ({"version": "0.27.0", "ffi": "0.1.15.post2"}, "found apache-tvm-ffi 0.1.15.post2; "),
        ({"version": "0.26.0", "ffi": "0.1.12"}, "found apache-tvm-ffi 0.1.12; "),
    ],
)
def test_another_version_is_refused_before_it_is_imported(found, told, tmp_path):
    said = imported(planted(tmp_path, **found))
    assert said.startswith(f"selfbyoc.errors.UnsupportedTVM: {told}")
    assert supported.REMEDY in said
    assert supported.HAVE in said


def test_one_that_pip_does_not_know_tells_its_version_itself(tmp_path):
    folder = planted(tmp_path, body="__version__ = '0.15.0'", relay=True)
    said = imported(folder, "from selfbyoc import build")
    assert "UnsupportedTVM: found TVM 0.15.0 with Relay; selfbyoc runs on" in said


def test_relay_ends_before_python_3_14(tmp_path, monkeypatch):
    folder = planted(tmp_path, relay=True)
    spec = supported.importlib.util.spec_from_file_location("tvm", folder / "tvm" / "__init__.py")
    monkeypatch.setattr(supported.importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(supported.sys, "version_info", (3, 14, 0))
    with pytest.raises(UnsupportedTVM, match=r"found TVM with Relay on Python 3\.14; it needs"):
        supported.check_installed()
    monkeypatch.setattr(supported.sys, "version_info", (3, 13, 0))
    supported.check_installed()


def test_no_tvm_at_all(monkeypatch):
    monkeypatch.setattr(supported.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnsupportedTVM, match=r"TVM is not installed; selfbyoc runs on .*: pip ins"):
        supported.check_installed()


def test_the_one_that_is_here_is_supported():
    supported.check_installed()
    supported.check_imported(tvm.__version__, GENERATION)


@pytest.mark.parametrize(
    ("version", "answer"),
    [("0.26", True), ("0.27.0.post1", True), ("0.27.dev0", True), ("0.28", False),
     ("0.25.9", False), ("1.0", False), ("unknown", False)],
)  # fmt: skip
def test_ranges(version, answer):
    assert supported.is_within(version, supported.RELAX) is answer


def test_the_project_asks_for_the_same_versions():
    text = PROJECT.read_text(encoding="utf-8")
    low, high = (".".join(map(str, v)) for v in supported.RELAX)
    assert f'"apache-tvm>={low},<{high}"' in text
    (ffi,) = re.findall(r'"apache-tvm-ffi==([\w.]+)"', text)
    assert supported.is_within(ffi, supported.FFI)
    assert f"'apache-tvm>={low},<{high}' 'apache-tvm-ffi=={ffi}'" in supported.REMEDY


def test_a_package_that_does_not_load_is_not_called_missing(tmp_path, monkeypatch):
    """pygraphviz on a system without libgobject."""
    (tmp_path / "graphs.py").write_text("raise ImportError('libgobject-2.0.so.0: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtra, match=r"^graphs is installed and does not load: libgobject"):
        extra.extra("graphs")
    with pytest.raises(MissingExtra, match=r"^nothere is missing: pip install nothere"):
        extra.extra("nothere")


WITHOUT = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
import numpy as np
import selfbyoc
from selfbyoc import op
from selfbyoc.errors import MissingExtra

shapes = {{"x": ((3, 5), "float32"), "w": ((4, 5), "float32")}}
mod = selfbyoc.emit(lambda x, w: op.relu(op.dense(x, w)), shapes)
parted = selfbyoc.partition_for_tefuse(mod)
library = selfbyoc.build(parted)
x, w = np.ones((3, 5), "float32"), np.ones((4, 5), "float32")
assert (library(x=x, w=w)[0] == 5).all()
print(selfbyoc.report(parted), selfbyoc.explain(mod))
print(selfbyoc.melting(parted), selfbyoc.verify(parted))

def model():
    from selfbyoc.models.onnx_model import light_model
    light_model("inception_v1")

def page():
    from selfbyoc.commands.page.drawing import draw
    from selfbyoc.models.onnx_model import graph_of
    draw(graph_of(mod), selfbyoc.report(parted))

def tune():
    selfbyoc.tune(mod, trials=2, work_dir="records")

for what in (model, page, tune):
    try:
        what()
    except MissingExtra as err:
        print(what.__name__, "->", err)
    else:
        raise SystemExit(f"{{what.__name__}}: nothing was missing")
"""


def test_without_any_of_the_extras(tmp_path):
    """All but what an extra is for works, and that says which package to install."""
    blocked = {"onnx", "onnxruntime", "pygraphviz", "cloudpickle", "tornado", "xgboost", "scipy",
               "openvino", "torch", "hypothesis"}  # fmt: skip
    if GENERATION == "relax":
        blocked.add("psutil")  # TVM 0.17 imports it
    script = tmp_path / "bare.py"
    script.write_text(WITHOUT.format(blocked=blocked))
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        env=env, capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "model -> onnx is missing: pip install onnx" in done.stdout
    assert "page -> pygraphviz is missing: pip install pygraphviz" in done.stdout
    assert "tune -> " in done.stdout
    assert "pip install 'selfbyoc[tune]'" in done.stdout


def test_a_plain_locale_and_a_home_with_spaces_and_umlauts(tmp_path):
    """The cache is kept there, and what is printed is what that terminal can show."""
    home = tmp_path / "Frau Müller's 家"
    home.mkdir()
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "HOME": str(home)}
    env |= {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "selfbyoc", "op-info", "dense"],
        env=env, capture_output=True, cwd=home,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    script = "import selfbyoc; from selfbyoc import op; "
    script += "shapes = {'x': ((3, 5), 'float32'), 'w': ((4, 5), 'float32')}; "
    script += "mod = selfbyoc.emit(lambda x, w: op.relu(op.dense(x, w)), shapes); "
    script += "selfbyoc.build(selfbyoc.partition_for_tefuse(mod)); print(selfbyoc.explain(mod))"
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, cwd=home)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    assert list(home.rglob("*.kernel"))
