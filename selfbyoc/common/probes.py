"""Programs and libraries of others, asked before they are trusted: that one is installed says
nothing about whether it works here.

A question is a small task whose answer is known, done in a process of its own: it may crash, and it
may hang. Whoever answers right is not asked again, by this process or by those that it starts.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from ..printable import shown_name
from .ending import ending, waited

SECONDS = 60.0  # for an answer, on a busy machine too; what takes longer hangs
SERVES = "SELFBYOC_SERVES"  # in the environment: digests of what was asked and serves

logger = logging.getLogger(__name__)

_broken: dict[str, str] = {}
_asking = threading.RLock()


def _free() -> None:
    """In a child, which has none of the threads that may hold it."""
    global _asking
    _asking = threading.RLock()


os.register_at_fork(after_in_child=_free)


@dataclass(frozen=True)
class Answer:
    """What came of a question: what was printed, and why it is no right answer ('' where it is)."""

    printed: str
    why_not: str = ""


def ask(
    command: Sequence[str], right: str, *, given: str = "", env: Mapping[str, str] | None = None
) -> Answer:
    """Run a command, which answers with what `right` (a regular expression) finds in its output.

    given   its standard input
    env     variables beside those of this process
    """
    with _files() as files:
        files[0].write(given.encode())
        files[0].seek(0)
        return _answer(_run(command, {**os.environ, **(env or {})}, files), files, right)


def ask_python(
    code: str, right: str, *arguments: str, env: Mapping[str, str] | None = None
) -> Answer:
    """The same of Python code, which imports what this process would."""
    found = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **(env or {})}
    return ask([sys.executable, "-c", code, *arguments], right, env=found)


def ask_beside(call: Callable[[], None], right: str) -> Answer:
    """The same of a function, in a fork of this process: what it loads meets what is loaded."""
    with _files() as files:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # 3.12's, of forks beside threads
            pid = os.fork()
        if pid == 0:
            _call_and_exit(call, files)
        return _answer(ending(partial(waited, pid), pid, SECONDS), files, right)


def once(name: str, files: Sequence[str | Path], asking: Callable[[], str]) -> str:
    """`name: why not`, or '' where it serves; asked once, as long as these files stay as they are.

    name     of whom is asked, for people
    files    what it is made of: a program, the file that a package begins with
    asking   -> why it does not serve, or ''
    """
    key = _digest(name, files)
    with _asking:
        serves = os.environ.get(SERVES, "").split(",")
        if key in serves:
            return ""
        if key not in _broken:
            why = asking()
            if not why:
                os.environ[SERVES] = ",".join(filter(None, (*serves, key)))
                return ""
            _broken[key] = f"{name}: {why}"
        return _broken[key]


def ahead(question: Callable[[], object]) -> None:
    """Ask `once` while this thread does something else; whoever asks the same waits for the answer.
    An error is told then.
    """

    def asked() -> None:
        try:
            question()
        except Exception as err:  # of any kind: whoever asks next meets it
            logger.debug("asked ahead: %s", err)

    threading.Thread(target=asked, name="selfbyoc-probe").start()


def complaints() -> tuple[str, ...]:
    """What `once` found out of those that do not serve."""
    return tuple(_broken.values())


def program(name: str, command: Sequence[str], right: str, *, given: str = "") -> str:
    """Why a program does not serve, by one question, or ''."""
    found = shutil.which(command[0])
    if found is None:
        return f"{command[0]} is not installed"
    return once(name, [found], lambda: ask(command, right, given=given).why_not)


def telling(said: str) -> str:
    """The line that says most of what a program said: the last of a traceback, else the first that
    speaks of an error, else the last one.
    """
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if not lines:
        return ""
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        return lines[-1]
    return next((line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)), lines[-1])


def _run(command: Sequence[str], env: Mapping[str, str], files: Sequence[IO[bytes]]) -> str:
    """How the command ended, in words; '' if well."""
    stdin, stdout, stderr = files
    try:
        child = subprocess.Popen(
            list(command), env=env, stdin=stdin, stdout=stdout, stderr=stderr,
            start_new_session=True,
        )  # fmt: skip
    except OSError as err:
        return f"does not start: {err.strerror or err}"
    return ending(child.wait, child.pid, SECONDS)


def _call_and_exit(call: Callable[[], None], files: Sequence[IO[bytes]]) -> None:
    """In the fork: nothing of the parent's exit handlers may run."""
    status = 1
    try:
        os.setpgid(0, 0)
        for fatal in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT):
            signal.signal(fatal, signal.SIG_DFL)  # TVM 0.27 and faulthandler would dump stacks
        for descriptor, file in enumerate(files):
            os.dup2(file.fileno(), descriptor)
        sys.stdout, sys.stderr = (os.fdopen(n, "w", closefd=False) for n in (1, 2))
        call()
        status = 0
    except SystemExit as err:
        print(err.code, file=sys.stderr)
    except BaseException:  # told as a process of Python tells it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _answer(ending: str, files: Sequence[IO[bytes]], right: str) -> Answer:
    printed, complaint = map(_read, files[1:])
    if ending:
        why_not = _words(ending, telling(complaint or printed))
    else:
        is_right = re.search(right, printed) is not None
        why_not = "" if is_right else f"the answer {printed.strip()!r} is wrong"
    return Answer(printed, shown_name(why_not))


@contextmanager
def _files() -> Iterator[list[IO[bytes]]]:
    """For stdin, stdout and stderr: a pipe would stay open as long as any process has it."""
    with ExitStack() as stack:
        yield [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]


def _words(ending: str, told: str) -> str:
    """A status says nothing beside words."""
    return told if told and ending.startswith("status") else ": ".join(filter(None, (ending, told)))


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _digest(name: str, files: Sequence[str | Path]) -> str:
    parts = [name, sys.executable]
    for path in files:
        with suppress(OSError):
            found = os.stat(path)
            parts += [os.path.realpath(path), str(found.st_mtime_ns), str(found.st_size)]
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]
