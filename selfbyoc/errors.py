"""Every error that a user can cause, by the stage that raises it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .printable import shown


class SelfbyocError(Exception):
    """Base class of all errors of this library.

    What it says may hold names out of a model: nothing in them steers the terminal.
    """

    def __str__(self) -> str:
        return shown(super().__str__())


class InputError(SelfbyocError, TypeError):
    """An argument is of the wrong type, or IR of the other TVM generation."""


class DamagedFile(InputError):
    """A file is not as it was written: it was cut off, or holds other bytes."""


class CompositeError(SelfbyocError, ValueError):
    """A composite is badly declared: its pattern, its argument names, its cases."""


class ReadingError(CompositeError):
    """An external function's ops are not what its composite selects: another pass changed them, or
    the composite is another one by now.
    """


class OpError(SelfbyocError, ValueError):
    """An op is badly declared: its name, its functions, the op of TVM that it names."""


class RegistryError(SelfbyocError, KeyError):
    """A composite's name is unknown, or taken already."""

    def __str__(self) -> str:
        return shown(str(self.args[0]))


class ComputeError(SelfbyocError, ValueError):
    """A compute's result disagrees with what the compiler inferred for the matched ops."""


class ScheduleError(SelfbyocError, RuntimeError):
    """A composite's own schedule raised."""


class SymbolicError(ScheduleError):
    """Schedules for some sizes do not say what the one for every size is."""


class DecisionError(SelfbyocError, ValueError):
    """A decision that a record, or the tuner, gives a composite does not fit it."""


class TuningError(SelfbyocError, RuntimeError):
    """Tuning cannot go on: where it should write, the machine to measure on, what it should try."""


class TargetError(SelfbyocError, ValueError):
    """The target is unknown, is not the one that the user builds for, or cannot run here."""


class LoweringError(SelfbyocError, RuntimeError):
    """TVM could not lower a stacked function, or the result lacks the promised symbol."""


class VerificationError(SelfbyocError, RuntimeError):
    """Verification found a kernel wrong, and nothing else can compute its ops."""


class SelfbyocWarning(UserWarning):
    """Base class of all warnings of this library; their text is shown as that of errors is."""

    def __str__(self) -> str:
        return shown(super().__str__())


class VerificationWarning(SelfbyocWarning):
    """Verification disabled a schedule or a composite; the build goes on without it."""


class RecordWarning(SelfbyocWarning):
    """A tuning record cannot be read, does not fit, or was not used."""


class ModelWarning(SelfbyocWarning):
    """A model file is not as its format demands, and is read all the same."""


class FallbackWarning(SelfbyocWarning):
    """Something else serves than was asked for: the default schedule where a built-in composite
    raised in a build, serial loops where the default schedule does not fit what no composite took,
    PyTorch where a graph of dynamo's cannot be compiled, no cost model where xgboost does not work.
    """


class MatchWarning(SelfbyocWarning):
    """No composite matched anything in a module."""


class UnsupportedOp(SelfbyocError, NotImplementedError):
    """An op has no compute, no emitter or no NumPy meaning here."""


class OpInfoError(SelfbyocError, ValueError):
    """The op info on a function cannot be read."""


class RaiseError(SelfbyocError, ValueError):
    """A PrimFunc cannot be written as ops of a graph: it has no op info, was changed in a way that
    op info cannot follow, or has an op that has no form in its layout. `op` and `what` say which
    op, and which attribute, input or output; empty where it is the function.
    """

    def __init__(self, message: str, op: str = "", what: str = "") -> None:
        super().__init__(message)
        self.op, self.what = op, what

    @classmethod
    def of(cls, op: str, what: str, reason: str) -> RaiseError:
        """`conv2d: input 0: reason`."""
        return cls(": ".join(part for part in (op, what, reason) if part), op, what)


class UnknownValue(SelfbyocError, ValueError):
    """A value that op info reports as UNKNOWN was used as if it were known."""


class MissingExtra(SelfbyocError, ImportError):
    """A package of an optional extra is not installed."""


class ToolError(SelfbyocError, RuntimeError):
    """A program or a library of others is installed and does not serve here; it says why in its
    own words.
    """


class OutOfMemory(SelfbyocError, MemoryError):
    """A model asks for more memory than there is."""


class UnsupportedTVM(SelfbyocError, ImportError):
    """The TVM that is installed, or apache-tvm-ffi, is not one that this library runs on."""


ALL: tuple[type[SelfbyocError], ...] = (
    InputError,
    DamagedFile,
    CompositeError,
    ReadingError,
    OpError,
    RegistryError,
    ComputeError,
    ScheduleError,
    SymbolicError,
    DecisionError,
    TuningError,
    TargetError,
    LoweringError,
    VerificationError,
    UnsupportedOp,
    OpInfoError,
    RaiseError,
    UnknownValue,
    MissingExtra,
    ToolError,
    OutOfMemory,
    UnsupportedTVM,
)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'weight'?` for a word that is nearly a known one, else nothing."""
    near = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def reason(err: BaseException) -> str:
    """What an error says, without the C++ stack that TVM 0.17 begins with."""
    text = str(err)
    _, traceback, stack = text.partition("Traceback (most recent call last)")
    return stack.strip().splitlines()[-1].strip() if traceback else text


# What TVM writes after an expression that has a constant, in the midst of a sentence.
_FOOTNOTE = "\n# Metadata omitted. Use show_meta=True in script() method to show it."


def one_line(err: BaseException) -> str:
    """`ValueError: what it says`, without TVM's further lines."""
    said = str(err).replace(_FOOTNOTE, "")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    text = lines[0] if lines else ""
    head, traceback, _ = text.partition("Traceback (most recent call last)")
    if traceback:  # TVM 0.17 says at the end what is wrong
        text = head + lines[-1]
    _, primitive, reason = str(err).rpartition("Error message:")
    if primitive:  # of a schedule, which says it after the whole function
        text = " ".join(reason.split())
    return f"{type(err).__name__}: {text}" if text else type(err).__name__
