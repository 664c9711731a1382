"""The sdist and the wheel of a release: built, looked through, installed and tried. `make package`.

    python tools/package.py --output dist             into an environment made from the index
    python tools/package.py --output dist --offline   beside this environment's TVM and NumPy

The wheel is built from what is in the sdist. It is installed in an environment of its own, away
from the sources; there a model goes from ONNX to a file, and from the file to numbers.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PIP = ("-m", "pip", "--disable-pip-version-check", "install", "-q")
# What a release is besides the package: see MANIFEST.in.
WANTED = (
    "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "docs/README.md",
    "tests/support/harness.py",
)  # fmt: skip
TRY = Path(__file__).parent / "package_smoke.py"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="where the two files go")
    parser.add_argument("--offline", action="store_true", help="with this environment's packages")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="package-") as folder:
        sdist, wheel = built(Path(folder), asked.output.absolute())
        check(sdist, wheel)
        python = installed(Path(folder) / "environment", wheel, offline=asked.offline)
        print(run([str(python), str(TRY)], Path(folder)), end="")
    print(f"{sdist.name} and {wheel.name} are whole, and run")


def run(command: Sequence[str], where: Path) -> str:
    """What a command printed, without this process' paths in its environment."""
    kept = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "PYTHONHOME")}
    path = f"{Path(command[0]).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=where, env={**kept, "PATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def built(folder: Path, output: Path) -> tuple[Path, Path]:
    """The sdist of what git tracks, and the wheel of what is in the sdist."""
    source = folder / "source"
    for name in run(["git", "ls-files", "-co", "--exclude-standard"], ROOT).splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    sdist = made("build_sdist", source, output)
    with tarfile.open(sdist) as packed:
        # As `filter="data"`, which Python 3.10.11, 3.11.3 (Debian 12 has 3.11.2) and before lack.
        packed.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        packed.extractall(folder / "unpacked")
    (unpacked,) = (folder / "unpacked").iterdir()
    return sdist, made("build_wheel", unpacked, output)


def made(what: str, source: Path, output: Path) -> Path:
    """One of the two, by setuptools' own functions, as every frontend calls them."""
    output.mkdir(parents=True, exist_ok=True)
    call = f"import sys; from setuptools import build_meta as b; print(b.{what}(sys.argv[1]))"
    *_, name = run([sys.executable, "-c", call, str(output)], source).splitlines()
    return output / name


def check(sdist: Path, wheel: Path) -> None:
    """Nothing of the package is missing in either: data files, types, the page."""
    files = {
        f"selfbyoc/{p.relative_to(ROOT / 'selfbyoc')}"
        for p in (ROOT / "selfbyoc").rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    with zipfile.ZipFile(wheel) as packed:
        refuse(wheel, files - set(packed.namelist()))
        strange = {name.partition("/")[0] for name in packed.namelist()} - {"selfbyoc"}
        assert all(name.endswith(".dist-info") for name in strange), f"{wheel.name}: {strange}"
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        refuse(sdist, {*files, *WANTED} - names)


def refuse(archive: Path, missing: set[str]) -> None:
    """An error that names what is missing."""
    if missing:
        raise SystemExit(f"{archive.name} lacks {', '.join(sorted(missing))}")


def installed(folder: Path, wheel: Path, *, offline: bool) -> Path:
    """The Python of a new environment with the wheel in it."""
    run([sys.executable, "-m", "venv", str(folder)], folder.parent)
    python = folder / "bin" / "python"
    if offline:
        run([str(python), *PIP, "--no-deps", "--no-index", str(wheel)], folder)
        (site,) = folder.glob("lib/python*/site-packages")
        # A folder in a .pth gives its packages, and follows no .pth in it: no editable install.
        (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    else:
        run([str(python), *PIP, f"{wheel}[onnx]"], folder)
    return python


if __name__ == "__main__":
    main()
