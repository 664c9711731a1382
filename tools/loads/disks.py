"""Folders of the cache that are of no use: each costs one warning, and the build goes on.

    python -m loads.disks FOLDER

One line of JSON at the end: what was found of each.
"""

from __future__ import annotations

import json
import logging
import os
import pwd
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from selfbyoc.errors import SelfbyocError

from .models import model, ours

OTHER = 65534  # nobody
BLOCK = 64 << 10  # bytes of the full disk
SECONDS = 30.0  # for a mount


class Skipped(Exception):
    """Nobody but root may mount a disk, or give a folder away."""


class Heard(logging.Handler):
    """What this library warned of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Note it down."""
        self.said.append(record.getMessage())


def built(place: Path | str) -> list[str]:
    """Two builds, each called and checked; -> the warnings."""
    heard = Heard()
    logging.getLogger("selfbyoc").addHandler(heard)
    for number in (0, 1):
        found = model(number)
        arrays = found.arrays(number)
        text = found.wrong(ours(found, cache=str(place) if place else True)(*arrays), arrays)
        assert text is None, text
    return heard.said


def full(folder: Path) -> list[str]:
    """A disk of 64 KB, of which nothing is left."""
    _mounted(folder)
    (folder / "filler").write_bytes(b"x" * (BLOCK - 8192))
    try:
        (folder / "rest").write_bytes(b"x" * BLOCK)
    except OSError:
        os.truncate(folder / "rest", 0)
    said = built(folder)
    left = [p.name for p in folder.iterdir() if p.suffix == ".part"]
    assert not left, left
    return said


def exported(folder: Path) -> list[str]:
    """A library onto a full disk: an error of ours, and nothing is left of it."""
    _mounted(folder)
    library, path = ours(model(0)), folder / "model.so"
    (folder / "filler").write_bytes(b"x" * (BLOCK - 8192))
    try:
        library.export_library(path)
    except SelfbyocError as err:
        assert not path.exists(), f"{path} has {path.stat().st_size} bytes"
        return [f"{type(err).__name__}: {err}"]
    raise AssertionError("it says nothing")


def large(folder: Path) -> list[str]:
    """No file may have more than 1 KB (RLIMIT_FSIZE)."""
    folder.mkdir()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
    said = built(folder)
    assert not list(folder.glob("*.part"))
    return said


def read_only(folder: Path) -> list[str]:
    """A disk that cannot be written."""
    _mounted(folder)
    _mount("-o", "remount,ro", str(folder))
    return built(folder)


def no_rights(folder: Path) -> list[str]:
    """A folder that this user may not write: root may, so another one builds."""
    folder.mkdir()
    folder.chmod(0o555)
    if os.geteuid() == 0:
        os.seteuid(OTHER)
    return built(folder / "cache")


def foreign(folder: Path) -> list[str]:
    """Somebody else's."""
    folder.mkdir()
    if os.geteuid():
        raise Skipped("only root gives a folder away")
    os.chown(folder, OTHER, OTHER)
    return built(folder)


def everybodys(folder: Path) -> list[str]:
    """One that everybody may write to."""
    folder.mkdir()
    folder.chmod(0o777)
    return built(folder)


def a_file(folder: Path) -> list[str]:
    """A file where the folder should be."""
    folder.write_text("no folder", encoding="utf-8")
    return built(folder)


def below_a_file(folder: Path) -> list[str]:
    """A file above it."""
    folder.write_text("no folder", encoding="utf-8")
    return built(folder / "cache")


def no_home(folder: Path) -> list[str]:
    """No HOME, and a user without one."""
    for name in ("HOME", "XDG_CACHE_HOME", "SELFBYOC_CACHE"):
        os.environ.pop(name, None)

    def nobody(uid: int) -> None:
        raise KeyError(uid)

    pwd.getpwuid = nobody  # type: ignore[assignment]
    return built("")


def no_tmp(folder: Path) -> list[str]:
    """TMPDIR leads nowhere, and nothing can be written where Python looks else."""
    import tempfile

    os.environ["TMPDIR"] = str(folder / "nowhere")
    tempfile._get_candidate_names = lambda: iter(())  # type: ignore[attr-defined]
    tempfile._candidate_tempdir_list = lambda: [str(folder / "nowhere")]  # type: ignore[attr-defined]
    return built(folder / "cache")


def _mounted(folder: Path) -> None:
    folder.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={BLOCK},mode=700", "tmpfs", str(folder))


def _mount(*options: str) -> None:
    try:
        done = subprocess.run(
            ["mount", *options], check=False, capture_output=True, text=True, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as err:
        raise Skipped(f"mount: {err}") from err
    if done.returncode:
        raise Skipped(done.stderr.strip())


# How many warnings each costs; None where there is an error instead, as was asked for.
DISKS: dict[str, tuple[Callable[[Path], list[str]], int]] = {
    "a full disk": (full, 1), "files of 1 KB at most": (large, 1),
    "a read-only disk": (read_only, 1), "a folder without rights": (no_rights, 1),
    "another user's folder": (foreign, 1), "a folder that all may write to": (everybodys, 1),
    "a file": (a_file, 1), "a folder below a file": (below_a_file, 1), "no HOME": (no_home, 1),
    "no TMPDIR": (no_tmp, 0), "export_library, a full disk": (exported, 1),
}  # fmt: skip


def tried(name: str, folder: Path) -> dict[str, object]:
    """One of them, in a process of its own, with mounts of its own."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        found: dict[str, object] = {"disk": name}
        try:
            _own_mounts()
            found["said"] = DISKS[name][0](folder)
        except Skipped as err:
            found["skipped"] = str(err)
        except BaseException as err:  # the finding, whatever it is
            found["error"] = f"{type(err).__name__}: {err}"
        os.write(writes, json.dumps(found).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(text or b'{"error": "the process ended"}') | {"disk": name}


def _own_mounts() -> None:
    """What is mounted goes with the process."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x00020000) == 0:  # CLONE_NEWNS
        _mount("--make-rprivate", "/")


def judged(found: dict[str, object], name: str) -> str:
    """What is wrong with it, if anything is."""
    if "skipped" in found:
        return ""
    if "error" in found:
        return str(found["error"])
    said, wanted = found["said"], DISKS[name][1]
    assert isinstance(said, list)
    return "" if len(said) == wanted else f"{len(said)} warnings, expected {wanted}: {said}"


def main(folder: Path) -> None:
    """All of them."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, name in enumerate(DISKS):
        found = tried(name, folder / str(number))
        rows.append(found | {"problem": judged(found, name)})
    print(json.dumps(rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
