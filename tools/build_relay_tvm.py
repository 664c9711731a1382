"""Build a stock TVM that still has Relay from Apache's sources, for the Python that runs this.

    python tools/build_relay_tvm.py DEST [--version v0.17.0] [--jobs 2] [--joined 8]
        [--llvm-config PROGRAM]

Clones the release and three of its submodules, builds both libraries and adds DEST to this Python's
import path, as install_relay_tvm.py does with a wheel. Needs git, CMake, Ninja, a C++17 compiler
and LLVM with its headers (Debian 12: cmake ninja-build g++ llvm-14-dev libzstd-dev). Where GitHub
is a mirror, git's own `url.<mirror>.insteadOf` says so. What is built lies in DEST.VERSION.build
until it is complete, and the next run goes on from there. No part of CI; docs/makers/tvm-notes.md
has what it takes and what passes.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from install_relay_tvm import InstallError, check_loads, find_tvm, write_pth

URL = "https://github.com/apache/tvm"
SUBMODULES = ("dlpack", "dmlc-core", "rang")  # the others are for accelerators
PROGRAMS = ("git", "cmake", "ninja", "c++")
LIBRARIES = ("libtvm.so", "libtvm_runtime.so")
# What libraries for the target "c" are compiled with, where tvm._ffi.libinfo looks for it.
HEADERS = ("include", "3rdparty/dlpack/include", "3rdparty/dmlc-core/include")

# Eight sources at once, since most of the time is spent on headers: a fifth of the whole. At -O1
# TVM itself is somewhat slower, and what it compiles the same.
OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release", "CMAKE_CXX_FLAGS_RELEASE": "-O1 -DNDEBUG",
    "CMAKE_UNITY_BUILD": "ON",
    "USE_LIBBACKTRACE": "OFF", "USE_MICRO": "OFF", "USE_GTEST": "OFF",
}  # fmt: skip

# Sources that do not compile behind others: of two functions of one name, or `pow` of two numbers,
# which is TVM's there and not C's.
ALONE = (
    "src/meta_schedule/schedule/cuda/winograd.cc",
    "src/relax/analysis/layout_transformation.cc",
    "src/relax/transform/remove_unused_parameters.cc",
    "src/relax/transform/reorder_take_after_matmul.cc",
    "src/relay/collage/mock_cost_estimator.cc",
    "src/te/schedule/schedule_lang.cc",
    "src/tir/transforms/make_unpacked_api.cc",
    "src/tir/usmp/transform/create_io_allocates.cc",
)


def called(command: Sequence[str], folder: Path) -> None:
    """Run a program; what it prints is seen."""
    print("+", *command, flush=True)
    done = subprocess.run(command, cwd=folder, check=False)
    if done.returncode:
        raise InstallError(f"{command[0]} ended with status {done.returncode} (see above)")


def clone(version: str, folder: Path) -> None:
    """The release, with what its CPU build needs of others."""
    with tempfile.TemporaryDirectory(prefix=folder.name + ".partial-", dir=folder.parent) as name:
        tree = Path(name, "tvm")
        told = ["-q", "--depth", "1", "--branch", version]
        called(["git", "clone", *told, URL, str(tree)], folder.parent)
        paths = [f"3rdparty/{name}" for name in SUBMODULES]
        called(["git", "submodule", "-q", "update", "--init", *paths], tree)
        tree.replace(folder)


def build(folder: Path, llvm_config: str, jobs: int, joined: int) -> None:
    """Both libraries, in `build`, so many sources compiled at once."""
    alone = folder / "alone.cmake"
    alone.write_text(
        f"set_source_files_properties({' '.join(ALONE)} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)\n"
    )
    options = {**OPTIONS, "USE_LLVM": llvm_config, "CMAKE_PROJECT_INCLUDE": str(alone)}
    options["CMAKE_UNITY_BUILD_BATCH_SIZE"] = str(joined)
    told = [f"-D{name}={value}" for name, value in options.items()]
    called(["cmake", "-G", "Ninja", "-S", ".", "-B", "build", *told], folder)
    links_in_order(folder / "build" / "build.ninja")
    called(["ninja", "-C", "build", f"-j{jobs}", "-k0", "tvm", "tvm_runtime"], folder)


def links_in_order(ninja: Path) -> None:
    """CMake (3.25) links the joined sources last first. Some look up what others register as they
    are loaded (`static const Op& op = Op::Get(...)`), which goes by that order.
    """

    def in_order(line: re.Match[str]) -> str:
        words = line[0].split(" ")
        joined = [at for at, word in enumerate(words) if "/Unity/unity_" in word]
        by_number = sorted((words[at] for at in joined), key=_kind_and_number)
        for at, word in zip(joined, by_number, strict=True):
            words[at] = word
        return " ".join(words)

    text = ninja.read_text()
    ninja.write_text(re.sub(r"^build \S*libtvm\w*\.so: .*$", in_order, text, flags=re.MULTILINE))


def _kind_and_number(name: str) -> tuple[str, int]:
    folder, _, number = name.rpartition("unity_")
    return folder, int(number.partition("_")[0])


def install(folder: Path, dest: Path) -> None:
    """What a program needs of it, in a folder that is complete once it exists."""
    with tempfile.TemporaryDirectory(prefix=dest.name + ".partial-", dir=dest.parent) as partial:
        tree = Path(partial, "tree")
        for name in ("python", *HEADERS):
            shutil.copytree(folder / name, tree / name)
        (tree / "build").mkdir()
        for name in LIBRARIES:
            shutil.copy2(folder / "build" / name, tree / "build" / name)
        check_loads(tree / "build" / "libtvm.so")
        tree.replace(dest)


def run(dest: Path, version: str, llvm_config: str, jobs: int, joined: int) -> str:
    """Build into `dest`; return what to tell the user."""
    present = find_tvm()
    if present is not None:
        raise InstallError(f"this Python already has a TVM: {present}; use a new environment")
    if dest.exists():
        raise InstallError(f"{dest} exists")
    missing = [name for name in (*PROGRAMS, llvm_config) if shutil.which(name) is None]
    if missing:
        raise InstallError(f"not installed: {', '.join(missing)}")
    dest.parent.mkdir(parents=True, exist_ok=True)
    folder = dest.with_name(f"{dest.name}.{version}.build")
    if not folder.exists():
        clone(version, folder)
    build(folder, llvm_config, jobs, joined)
    install(folder, dest)
    shutil.rmtree(folder)
    write_pth(dest)
    return f"built TVM {version} with Relay: {dest}"


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("dest", type=Path, metavar="DEST", help="folder to install into (100 MB)")
    add("--version", default="v0.17.0", help="a tag of Apache's: v0.16.0 to v0.19.0 have Relay")
    add("--llvm-config", default="llvm-config", metavar="PROGRAM", help="of the LLVM to link")
    add("--jobs", type=int, default=os.cpu_count() or 1)
    add("--joined", type=int, default=8, help="sources compiled at once; 1: each by itself")
    args = parser.parse_args()
    try:
        print(run(args.dest.resolve(), args.version, args.llvm_config, args.jobs, args.joined))
    except (InstallError, OSError) as err:
        print(f"build_relay_tvm: {err}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
