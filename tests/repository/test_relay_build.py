"""`tools/build_relay_tvm.py`, with programs that stand for git, CMake and Ninja."""

import _ctypes
import shutil
import sys
from pathlib import Path

import pytest
from scripts import ROOT, tool

NINJA = """\
build CMakeFiles/tvm_objs.dir/Unity/unity_1_cxx.cxx.o: CXX unity_1_cxx.cxx
build libtvm.so: LINK a/Unity/unity_10_cxx.cxx.o a/Unity/unity_9_cxx.cxx.o a/alone.cc.o \
b/Unity/unity_1_cxx.cxx.o b/Unity/unity_0_cxx.cxx.o a/Unity/unity_0_cxx.cxx.o | dep || order
build libtvm_runtime.so: LINK b/Unity/unity_1_cxx.cxx.o b/Unity/unity_0_cxx.cxx.o
build other.so: LINK b/Unity/unity_1_cxx.cxx.o b/Unity/unity_0_cxx.cxx.o
"""
IN_ORDER = """\
build CMakeFiles/tvm_objs.dir/Unity/unity_1_cxx.cxx.o: CXX unity_1_cxx.cxx
build libtvm.so: LINK a/Unity/unity_0_cxx.cxx.o a/Unity/unity_9_cxx.cxx.o a/alone.cc.o \
a/Unity/unity_10_cxx.cxx.o b/Unity/unity_0_cxx.cxx.o b/Unity/unity_1_cxx.cxx.o | dep || order
build libtvm_runtime.so: LINK b/Unity/unity_0_cxx.cxx.o b/Unity/unity_1_cxx.cxx.o
build other.so: LINK b/Unity/unity_1_cxx.cxx.o b/Unity/unity_0_cxx.cxx.o
"""

# What each notes, and makes in its working folder (git's last argument is the tree, or a path).
GIT = """[ $1 = clone ] && for tree; do :; done &&
for name in python/tvm include 3rdparty/dlpack/include 3rdparty/dmlc-core/include src; do
mkdir -p "$tree/$name"; done"""
CMAKE = f"mkdir -p build && cat > build/build.ninja <<'END'\n{NINJA}END"
MAKES = f"cp {_ctypes.__file__} build/libtvm.so && cp build/libtvm.so build/libtvm_runtime.so"
PROGRAMS = {"git": f"{GIT}; true", "cmake": CMAKE, "ninja": MAKES, "c++": "", "llvm-config": ""}


@pytest.fixture
def build(monkeypatch, tmp_path):
    """The tool, for a Python without TVM; `called` says how its programs were called."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    made = tool("build_relay_tvm")
    monkeypatch.setattr(made, "find_tvm", lambda: None)
    monkeypatch.setattr(sys.modules["install_relay_tvm"], "pth_path", lambda: tmp_path / "tvm.pth")
    bin_, log = tmp_path / "bin", tmp_path / "called"
    bin_.mkdir()
    for name, text in PROGRAMS.items():
        stand_in(bin_, log, name, text)
    for name in ("sh", "mkdir", "cat", "cp"):
        (bin_ / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(bin_))
    made.called_with = lambda: log.read_text().splitlines() if log.exists() else []
    made.replace = lambda name, text: stand_in(bin_, log, name, text)
    return made


def stand_in(folder, log, name, text):
    path = folder / name
    path.write_text(f'#!/bin/sh\necho {name} "$@" >> {log}\n{text}\n')
    path.chmod(0o755)


def run(build, tmp_path, dest="tvm"):
    return build.run(tmp_path / dest, "v0.17.0", "llvm-config", 2, 8)


def test_joined_sources_are_linked_in_the_order_of_their_numbers(build, tmp_path):
    path = tmp_path / "build.ninja"
    path.write_text(NINJA)
    for _ in range(2):
        build.links_in_order(path)
        assert path.read_text() == IN_ORDER


def test_what_is_compiled_alone_is_named_once(build):
    assert list(build.ALONE) == sorted(set(build.ALONE))
    assert all(name.startswith("src/") and name.endswith(".cc") for name in build.ALONE)


def test_from_the_sources_to_an_import_path(build, tmp_path):
    assert run(build, tmp_path) == f"built TVM v0.17.0 with Relay: {tmp_path}/tvm"
    assert sorted(str(p.relative_to(tmp_path)) for p in (tmp_path / "tvm").glob("*/*")) == [
        "tvm/3rdparty/dlpack", "tvm/3rdparty/dmlc-core", "tvm/build/libtvm.so",
        "tvm/build/libtvm_runtime.so", "tvm/python/tvm",
    ]  # fmt: skip
    assert (tmp_path / "tvm/include").is_dir()
    assert (tmp_path / "tvm/3rdparty/dlpack/include").is_dir()
    assert f"{tmp_path}/tvm/python\n" in (tmp_path / "tvm.pth").read_text()
    assert not (tmp_path / "tvm.v0.17.0.build").exists()
    clone, submodules, cmake, ninja = build.called_with()
    assert f"--branch v0.17.0 {build.URL} " in clone
    assert submodules.endswith("3rdparty/dlpack 3rdparty/dmlc-core 3rdparty/rang")
    assert "-DUSE_LLVM=llvm-config" in cmake
    assert "-DCMAKE_UNITY_BUILD=ON" in cmake
    assert ninja.endswith("-j2 -k0 tvm tvm_runtime")


def test_what_failed_goes_on_from_there(build, tmp_path):
    build.replace("ninja", "exit 3")
    with pytest.raises(build.InstallError, match="ninja ended with status 3"):
        run(build, tmp_path)
    assert not (tmp_path / "tvm").exists()
    folder = tmp_path / "tvm.v0.17.0.build"
    assert (folder / "build" / "build.ninja").read_text() == IN_ORDER
    alone = (folder / "alone.cmake").read_text()
    assert all(name in alone for name in build.ALONE)
    assert "SKIP_UNITY_BUILD_INCLUSION ON" in alone
    build.replace("ninja", MAKES)
    run(build, tmp_path)
    assert [line.split()[:2] for line in build.called_with() if line.startswith("git")] == [
        ["git", "clone"], ["git", "submodule"],
    ]  # fmt: skip


def test_a_library_that_does_not_load_is_not_installed(build, tmp_path):
    build.replace(
        "ninja", "echo no library > build/libtvm.so; cp build/libtvm.so build/libtvm_runtime.so"
    )
    with pytest.raises(build.InstallError, match=r"libtvm.so does not load here"):
        run(build, tmp_path)
    assert not (tmp_path / "tvm").exists()
    assert not (tmp_path / "tvm.pth").exists()


def test_half_a_clone_is_no_folder_to_go_on_from(build, tmp_path):
    build.replace("git", f"{GIT}; [ $1 = clone ]")
    with pytest.raises(build.InstallError, match="git ended with status 1"):
        run(build, tmp_path)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("tvm")] == []


def test_refused(build, tmp_path, monkeypatch):
    (tmp_path / "bin" / "cmake").unlink()
    (tmp_path / "bin" / "llvm-config").unlink()
    with pytest.raises(build.InstallError, match="not installed: cmake, llvm-config"):
        run(build, tmp_path)
    (tmp_path / "there").mkdir()
    with pytest.raises(build.InstallError, match="there exists"):
        run(build, tmp_path, "there")
    monkeypatch.setattr(build, "find_tvm", lambda: Path("/somewhere/tvm"))
    with pytest.raises(build.InstallError, match="already has a TVM: /somewhere/tvm; use a new"):
        run(build, tmp_path)
    monkeypatch.setattr(sys, "argv", ["build_relay_tvm.py", str(tmp_path / "tvm")])
    assert build.main() == 1
    assert build.called_with() == []
