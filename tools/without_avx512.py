"""`python tools/without_avx512.py FILE.so`: compiles without_avx512.c and asks it whether it hides
AVX-512 here; one line says why not. Not every CPU or kernel can trap CPUID.

Plain Python: `make compatibility` runs it where no TVM is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
SECONDS = 60.0
_PROBE = """
#include <stdio.h>
int main(void) {
  __builtin_cpu_init();
  puts(__builtin_cpu_supports("avx512f") ? "AVX-512" : "none");
  return 0;
}
"""


class DoesNotServe(Exception):
    """The text says of whom, and why."""


def made(library: Path) -> None:
    """Compile it and ask it. Raises DoesNotServe."""
    compiler = os.environ.get("CC", "cc")
    library.parent.mkdir(parents=True, exist_ok=True)
    _ran([compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"])
    with tempfile.TemporaryDirectory() as folder:
        source, probe = Path(folder, "probe.c"), Path(folder, "probe")
        source.write_text(_PROBE, encoding="utf-8")
        _ran([compiler, "-o", str(probe), str(source)])
        found = _ran([str(probe)], LD_PRELOAD=str(library)).strip()
    if found != "none":
        raise DoesNotServe(f"{library.name}: a program that it hides AVX-512 from finds {found!r}")


def _ran(command: list[str], **variables: str) -> str:
    """What a command printed."""
    env, name = {**os.environ, **variables}, Path(command[0]).name
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired as err:
        raise DoesNotServe(f"{name}: no answer within {SECONDS:g} s") from err
    except OSError as err:
        raise DoesNotServe(f"{name} does not start: {err.strerror}") from err
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise DoesNotServe(f"{name}: {said[0] if said else f'status {done.returncode}'}")
    return done.stdout


if __name__ == "__main__":
    try:
        made(Path(sys.argv[1]))
    except DoesNotServe as err:
        sys.exit(str(err))
