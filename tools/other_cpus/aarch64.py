"""Kernels for AArch64 on this machine: linked with `aarch64.c` and run by qemu-user."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from selfbyoc.analysis.guards import POISON
from selfbyoc.codegen.external import External
from selfbyoc.codegen.lower import lower
from selfbyoc.common.probes import ask, once
from selfbyoc.errors import ToolError
from selfbyoc.tvm import GENERATION, packed_symbol

GCC, QEMU, ROOT = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
PACKAGES = "qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # DLPack's
_SECONDS = 600


def check_tools() -> None:
    """Raise ToolError where AArch64 code cannot be linked or run."""
    if why := cannot_run():
        raise ToolError(why)


def cannot_run() -> str:
    """Why no AArch64 code runs here, or ''."""
    places = {name: shutil.which(name) for name in (GCC, QEMU)}
    missing = [name for name, place in places.items() if place is None]
    if missing:
        return f"{' and '.join(missing)} not installed: apt-get install {PACKAGES}"
    return once("AArch64", [place for place in places.values() if place], _answers)


def _answers() -> str:
    """Why a small program is not compiled and run, or ''."""
    with TemporaryDirectory() as folder:
        source, program = Path(folder, "answer.c"), str(Path(folder, "answer"))
        source.write_text('#include <stdio.h>\nint main(void) { return puts("42") < 0; }\n')
        made = ask([GCC, "-o", program, str(source)], "")
        if made.why_not:
            return f"{GCC}: {made.why_not}"
        found = ask([QEMU, "-L", ROOT, program], "^42\n")
        return found.why_not and f"{QEMU}: {found.why_not}"


class Emulated:
    """A kernel for AArch64; called as `selfbyoc.analysis.verify.run.Runner` is."""

    def __init__(self, source: External, target: Any, folder: Path) -> None:
        check_tools()
        self.source, self.folder = source, folder
        module = lower(source, target)
        self.object = folder / "kernel.o"
        (module.write_to_file if GENERATION == "relax" else module.save)(str(self.object), "o")

    def __call__(self, inputs: Sequence[np.ndarray], poison: int = POISON) -> list[np.ndarray]:
        """Run once; the outputs as the kernel left them."""
        outputs = self.source.graph.outputs
        results = [np.empty(tuple(map(int, v.shape)), v.dtype) for v in outputs]
        arrays = [*inputs, *results]
        lines = [_line(n, array, n >= len(inputs)) for n, array in enumerate(arrays)]
        (self.folder / "arrays").write_text("\n".join([*lines, ""]), encoding="utf-8")
        for n, array in enumerate(inputs):
            np.ascontiguousarray(array).tofile(self.folder / f"a{n}")
        command = [QEMU, "-L", ROOT, str(self._program(poison)), str(self.folder / "arrays")]
        _run([*command, str(self.folder)])
        for n, array in enumerate(results, len(inputs)):
            array[...] = np.fromfile(self.folder / f"a{n}", array.dtype).reshape(array.shape)
        return results

    def _program(self, poison: int) -> Path:
        program = self.folder / f"program{poison}"
        if not program.exists():
            defined = [f"-DENTRY={packed_symbol(self.source.symbol)}", f"-DPOISON={poison}"]
            defined += ["-DRELAX"] if GENERATION == "relax" else []
            main = str(Path(__file__).with_name("aarch64.c"))
            _run([GCC, "-O1", *defined, main, str(self.object), "-lm", "-o", str(program)])
        return program


def _line(number: int, array: np.ndarray, is_output: bool) -> str:
    code, bits = _CODES[array.dtype.kind], 8 * array.dtype.itemsize
    extents = " ".join(map(str, array.shape))
    return f"a{number} {int(is_output)} {code} {bits} {array.ndim} {extents}"


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: status {done.returncode}: {done.stderr.strip()[-300:]}")
