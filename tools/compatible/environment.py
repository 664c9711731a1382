"""Virtual environments that are kept between runs, with this project's wheel in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from .table import NUMPY, RELAX, Combination

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "compatibility"
# Kept with the sources: no one machine has all of these Pythons.
RESULTS = ROOT / "docs" / "reports" / "compatibility"
# What the tests need; PyTorch, mypy and ruff are left out.
EXTRAS = "onnx,demo,cost-model,rpc"
TESTERS = ("pytest", "hypothesis")
PIP = ("-m", "pip", "--disable-pip-version-check", "-q")
# Bytecode comes with the first import of what is imported, a tenth of what is installed.
INSTALL = (*PIP, "install", "--no-compile")
SHOWN = ("apache-tvm", "apache-tvm-ffi", "numpy", "onnx", "onnxruntime", "pytest")


class Unavailable(Exception):
    """A combination that cannot be set up here; the message says what was tried."""


def ran(command: Sequence[str], **options: object) -> str:
    """What a command printed; Unavailable with its last lines when it failed."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True, text=True, check=False, **{"env": clean(), **options},  # type: ignore[call-overload]
    )  # fmt: skip
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise Unavailable(" ".join(said[-3:]) or f"{command[0]} ended with {done.returncode}")
    return str(done.stdout)


def clean() -> dict[str, str]:
    """This environment without what would bring in another TVM, or another copy of this project."""
    dropped = ("PYTHONPATH", "PYTHONHOME", "TVM_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if name not in dropped}


def interpreter(version: str) -> str:
    """A Python of this version: the one that runs this, on the path, or one of pyenv's."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    # First pyenv's own: its shims on the path only work for the chosen ones.
    for path in sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")):
        return str(path)
    found = shutil.which(f"python{version}")
    if not found:
        raise Unavailable(f"no python{version} on the path or in ~/.pyenv/versions")
    return found


def wheel(folder: Path) -> Path:
    """This project's wheel, built in a folder from a copy of the sources; all files are in it."""
    source, out = folder / "source", folder / "built"
    source.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "selfbyoc", source / "selfbyoc", ignore=skipped)
    ran([sys.executable, "-m", "venv", str(folder / "pip")])
    python = str(folder / "pip" / "bin" / "python")
    ran([python, *PIP, "wheel", "--no-deps", "-w", str(out), str(source)])
    (built,) = out.glob("*.whl")
    wanted = {str(p.relative_to(source)) for p in (source / "selfbyoc").rglob("*") if p.is_file()}
    if missing := wanted - set(zipfile.ZipFile(built).namelist()):
        raise SystemExit(f"{built.name} lacks {', '.join(sorted(missing))}")
    return built


def prepared(combination: Combination, built: Path) -> Path:
    """The Python of the combination's environment, set up unless it is there already."""
    folder = FOLDER / combination.environment
    python = folder / "bin" / "python"
    if not (folder / "complete").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        ran([interpreter(combination.python), "-m", "venv", str(folder)])
        (_relay if combination.is_relay else _relax)(combination, str(python), built)
        (folder / "complete").touch()
    ran([str(python), *INSTALL, "--no-deps", "--force-reinstall", str(built)])
    return python


def _relax(combination: Combination, python: str, built: Path) -> None:
    tvm, numpy = RELAX[combination.tvm], NUMPY[combination.numpy]
    try:
        ran([python, *INSTALL, f"{built}[{EXTRAS}]", *tvm, numpy, *TESTERS])
    except Unavailable as err:
        if "conflicting dependencies" not in str(err) and "ResolutionImpossible" not in str(err):
            raise
        # The project does not allow this TVM. What it says when it is there all the same?
        ran([python, *INSTALL, *tvm, numpy, "rich", *TESTERS])


def _relay(combination: Combination, python: str, _: Path) -> None:
    tools = ROOT / "tools"
    required = str(tools / "relay-requirements.txt")
    ran([python, *INSTALL, "-r", required, NUMPY[combination.numpy]])
    folder = FOLDER / combination.environment / "relay-tvm"
    ran([python, str(tools / "install_relay_tvm.py"), str(folder)])


def versions(python: Path) -> dict[str, str]:
    """What is installed, as pip tells it, and Python's own version."""
    listed = json.loads(ran([str(python), "-m", "pip", "list", "--format=json"]))
    found = {package["name"].lower(): package["version"] for package in listed}
    own = ran([str(python), "-c", "import platform; print(platform.python_version())"])
    return {"python": own.strip()} | {name: found[name] for name in SHOWN if name in found}
