"""Which TVMs this library runs on, looked at before anything of theirs is used.

Another one fails somewhere inside, as an AttributeError or with the process: 0.25 cannot load its
own library beside a newer apache-tvm-ffi, and apache-tvm-ffi 0.1.15 crashes when TIR is saved.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib import metadata
from pathlib import Path

from ..errors import UnsupportedTVM

# From the first to before the second; pyproject.toml says the same of the two packages.
RELAX = ((0, 26), (0, 28))
FFI = ((0, 1, 14), (0, 1, 15))
RELAY = ((0, 16), (0, 20))
REMEDY = "pip install 'apache-tvm>=0.26,<0.28' 'apache-tvm-ffi==0.1.14.post1'"
HAVE = "selfbyoc runs on apache-tvm 0.26 and 0.27 (Relax), and on TVM 0.16 to 0.19 (Relay)"

Range = tuple[tuple[int, ...], tuple[int, ...]]


def check_installed() -> None:
    """Raise UnsupportedTVM where the TVM that `import tvm` would find is none of these; nothing of
    it is run. One that was not installed by pip tells its version only when it is there.
    """
    spec = importlib.util.find_spec("tvm")
    if spec is None:
        raise UnsupportedTVM(f"TVM is not installed; {HAVE}: {REMEDY}")
    if spec.origin and (Path(spec.origin).parent / "relay").is_dir():
        # 0.17 checks arguments of schedules by what typing.Union was before: a TypeError in each.
        if sys.version_info >= (3, 14):
            raise UnsupportedTVM("found TVM with Relay on Python 3.14; it needs 3.10 to 3.13")
        return
    for package, wanted in (("apache-tvm", RELAX), ("apache-tvm-ffi", FFI)):
        try:
            found = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
        if not is_within(found, wanted):
            raise UnsupportedTVM(f"found {package} {found}; {HAVE}: {REMEDY}")


def check_imported(version: str, generation: str) -> None:
    """Raise UnsupportedTVM where an imported TVM, by its `__version__`, is none of these."""
    if not is_within(version, RELAY if generation == "relay" else RELAX):
        raise UnsupportedTVM(f"found TVM {version} with {generation.capitalize()}; {HAVE}")


def is_within(version: str, wanted: Range) -> bool:
    """Whether a version such as "0.27.0.post1" is in a range."""
    first = re.match(r"\d+(\.\d+)*", version)
    numbers = tuple(map(int, first[0].split("."))) if first else ()
    return wanted[0] <= numbers < wanted[1]
