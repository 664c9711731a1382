"""Programs and packages that are installed and do not serve, for tests of who trusts them."""

import stat

from selfbyoc.common import probes

SECONDS = 0.3  # that nobody has to wait for what hangs

# What a program does, as a shell script; what it says on its way.
WORDS = "error: this CPU is unknown"
HOW = {"fails": f"echo '{WORDS}' >&2; exit 3", "hangs": "sleep 600"}
TOLD = {"fails": WORDS, "hangs": "no answer within 0.3 s"}

# The same of a package, when it is imported.
IMPORTED = {
    "fails": "raise RuntimeError('no AVX here')",
    "crashes": "import os; os.abort()",
    "hangs": "import time; time.sleep(600)",
}
PACKAGES_TOLD = {
    "fails": "RuntimeError: no AVX here",
    "crashes": "ended by Aborted (signal 6)",
    "hangs": "no answer within 0.3 s",
}


def plant(folder, name, how):
    """A program of this name that fails or hangs; -> its path."""
    return script(folder, name, HOW[how])


def script(folder, name, text):
    """A program that is a shell script."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def package(folder, name, text):
    """A package that is one file."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(text)


def impatient(monkeypatch, how):
    """What hangs has not long to answer."""
    if how == "hangs":
        monkeypatch.setattr(probes, "SECONDS", SECONDS)
