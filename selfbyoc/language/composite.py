"""The unit of this library: a composite is a pattern with its check, compute, schedule and
reference.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ..errors import CompositeError, did_you_mean
from ..tvm.types import PrimExpr, Schedule, Tensor
from .case import Case
from .dataflow import is_pattern, translated
from .kernel import Kernel
from .names import check_name
from .nodes import Node, Program, reachable
from .outline import kinds
from .reuse import reused_fields
from .roots import roots_of
from .te_schedule import declared_in_te
from .tracing import named_parameters, numbered_names, trace

COMPILER = "tefuse"


class Refused(Exception):
    """A check declined a structural match; its text is the reason that reports show."""


def require(condition: PrimExpr, reason: str) -> None:
    """Refuse the match with `reason` unless `condition` holds. For use in a composite's `check`."""
    if not condition:
        raise Refused(reason)


@dataclass(frozen=True, eq=False)
class Composite:
    """A named group of ops that is compiled as one kernel.

    pattern    an ordinary function of the vocabulary `op`; its argument names hold everywhere. Or
               a dataflow pattern of TVM's, whose wildcards are `x0`, `x1`, ...
    schedule   `schedule(sch, ops, target)`, or one a target kind, or None for the default schedule
    reference  NumPy, independent of TVM; None means: the matched ops one by one in NumPy
    check      `check(match)` may refuse with `require(condition, reason)`
    compute    None, or {op kind: function} to stand in for single ops, or one for the whole
    pack       {argument: function(tensor) or function(tensor, call)}: how a weight is laid out
               ahead of time; `call` is the op that reads it, with its attributes and shapes
    kernel     instead of schedule, compute and pack: all of them over one plan (Kernel)
    epilogue   whether any elementwise ops after the result may join it, as part of what the last
               stage writes; or a check of the larger match
    prologue   arguments before which elementwise ops may join it: a compute of the kernel gets
               such an argument as `Absorbed` (codegen/elementwise.py), the default schedule joins
               such ops to what reads them
    """

    name: str
    pattern: Callable[..., Any]
    schedule: Callable[..., Any] | Mapping[str, Callable[..., Any]] | None = None
    reference: Callable[..., Any] | None = None
    check: Callable[..., None] | None = None
    cases: Sequence[Case] = ()
    compute: Callable[..., Any] | Mapping[str, Callable[..., Any]] | None = None
    pack: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    why: str = ""
    kernel: Kernel | None = None
    epilogue: bool | Callable[..., None] = False
    prologue: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name)
        self._take_kernel()
        self._take_dataflow()
        self._check_types()
        outputs, names = trace(self.name, self.pattern)
        if not all(output.is_op() for output in outputs):
            raise CompositeError(
                f"composite {self.name}: the pattern returns a bare input; expected an op"
            )
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "arg_names", names)
        object.__setattr__(self, "roots", roots_of(self.name, outputs))
        object.__setattr__(self, "kinds", frozenset(kinds(self.roots)))
        nodes = (node for output in outputs for node in reachable(output, branches=True))
        several = len(self.roots) > 1 or any(node.grows for node in nodes)
        object.__setattr__(self, "grows", several)
        self._check_names()
        self._check_schedules()

    outputs: tuple[Node, ...] = field(init=False, repr=False, compare=False)
    arg_names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    roots: tuple[Node, ...] = field(init=False, repr=False, compare=False)  # the last ops
    kinds: frozenset[str] = field(init=False, repr=False, compare=False)  # of all its ops
    # Whether it may fit in several ways at one op: with more ops or fewer, or with others
    grows: bool = field(init=False, repr=False, compare=False)

    def _take_kernel(self) -> None:
        """A kernel stands for the functions that it is made of."""
        if self.kernel is None:
            return
        if not isinstance(cast(Any, self.kernel), Kernel):
            self._refuse("kernel", "a Kernel", self.kernel)
        parts: dict[str, Any] = {
            "schedule": {kind: self.kernel.schedule for kind in self.kernel.targets},
            "compute": self.kernel.compute,
            "pack": self.kernel.pack,
        }
        if self.compute == parts["compute"] and self.schedule != parts["schedule"]:
            self._leave_kernel(parts)
            return
        for label, part in parts.items():
            if getattr(self, label) and getattr(self, label) != part:
                self._refuse(label, "none beside a kernel, which has its own", getattr(self, label))
            object.__setattr__(self, label, part)

    def _take_dataflow(self) -> None:
        """A dataflow pattern of TVM's as a function; its constants are asked for by the check."""
        if not is_pattern(self.pattern):
            return
        pattern, constants = translated(self.name, self.pattern)
        check = self.check

        def checked(match: Any) -> None:
            for name in constants:
                value = match.args.get(name)
                require(value is None or value.is_constant, f"{name} is no constant")
            if check is not None:
                check(match)

        object.__setattr__(self, "pattern", pattern)
        object.__setattr__(self, "check", checked if constants else check)

    def _leave_kernel(self, parts: Mapping[str, object]) -> None:
        """A copy (dataclasses.replace) with another schedule: that knows none of the kernel's
        stages, and takes the plain ops.
        """
        pack = {} if self.pack == parts["pack"] else self.pack
        for label, value in {"kernel": None, "compute": None, "pack": pack}.items():
            object.__setattr__(self, label, value)

    def _check_types(self) -> None:
        """Functions are functions, or in mappings where these are allowed; cases are cases."""
        pack, cases = cast(Any, self.pack), cast(Any, self.cases)
        if not isinstance(pack, Mapping):
            self._refuse("pack", "{argument: function}", pack)
        if not isinstance(cases, (list, tuple)):
            self._refuse("cases", "a list or a tuple of Case", cases)
        functions = {"pattern": self.pattern, **{f"pack for {n!r}": f for n, f in pack.items()}}
        for label in ("schedule", "compute", "reference", "check"):
            given = getattr(self, label)
            if isinstance(given, Mapping):
                functions |= {f"{label} for {key!r}": f for key, f in given.items()}
            elif given is not None:
                functions[label] = given
        for label, function in functions.items():
            if not callable(function):
                self._refuse(label, "a function", function)
        for case in cases:
            if not isinstance(case, Case):
                self._refuse("cases", "a list or a tuple of Case", case)

    def _refuse(self, label: str, expected: str, found: object) -> None:
        raise CompositeError(
            f"composite {self.name}: {label}: expected {expected}, found {found!r}"
        )

    def _check_names(self) -> None:
        """Everything else uses the argument names of the pattern."""
        used = [("pack", list(self.pack))]
        used += [(f"case {c.name}", list(c.args)) for c in self.cases if c.program is None]
        for label, function in (("reference", self.reference), ("compute", self.compute)):
            if callable(function):
                used.append((label, named_parameters(function)))
        for label, keys in used:
            branches = numbered_names(self.outputs) if label == "pack" else set()
            unknown = sorted(set(keys) - set(self.arg_names) - branches - {"ops", "plan"})
            if unknown:
                meant = did_you_mean(unknown[0], [*self.arg_names, *sorted(branches)])
                raise CompositeError(
                    f"composite {self.name}: {label} names {unknown}, which are no arguments of "
                    f"the pattern; expected some of {list(self.arg_names)}{meant}"
                )

    def _check_schedules(self) -> None:
        """Schedules are of TensorIR; one that names kinds of op (schedules/each_op.py) names those
        of the pattern.
        """
        if isinstance(self.compute, Mapping):
            self._check_kinds("compute", self.compute)
        given = self.schedule
        functions = given.values() if isinstance(given, Mapping) else [given] if given else []
        for function in functions:
            if why := declared_in_te(function):
                raise CompositeError(f"composite {self.name}: schedule: {why}")
            self._check_kinds("schedule", getattr(function, "kinds", ()))

    def _check_kinds(self, label: str, named: Iterable[str]) -> None:
        """What is for single ops is for ops of the pattern: else nobody would ever call it."""
        if unknown := sorted(set(named) - self.kinds):
            meant = did_you_mean(unknown[0], self.kinds)
            raise CompositeError(
                f"composite {self.name}: its {label} names {unknown}, which the pattern has "
                f"not; expected some of {sorted(self.kinds)}{meant}"
            )

    def with_pattern(self, name: str, pattern: Program, **changes: Any) -> Composite:
        """This composite's kernel under another pattern, which names its arguments alike; `changes`
        are fields: check, cases, reference, why, ... Raises CompositeError where the compute is of
        the whole pattern.
        """
        return replace(self, **reused_fields((self.name, self.compute), name, pattern, changes))

    @property
    def full_name(self) -> str:
        """The name in the `Composite` attribute: `tefuse.<name>`."""
        return f"{COMPILER}.{self.name}"

    @property
    def absorbs_after(self) -> bool:
        """Whether elementwise ops after its result join it. A schedule of yours knows only
        the pattern's blocks.
        """
        return bool(self.epilogue) and (self.kernel is not None or self.schedule is None)

    @property
    def absorbs_before(self) -> tuple[str, ...]:
        """The arguments before which they do."""
        return self.prologue if self.kernel is not None or self.schedule is None else ()

    def pack_for(self, arg: str) -> Callable[..., Tensor] | None:
        """How an argument is packed; the `weight_1` of a branch of `many` goes by `weight`."""
        base = arg.rstrip("0123456789").removesuffix("_")
        return self.pack.get(arg) or (None if arg in self.arg_names else self.pack.get(base))

    def schedule_for(self, kind: str) -> Callable[..., Schedule | None] | None:
        """The schedule function for a target kind, or None where the default one serves."""
        if isinstance(self.schedule, Mapping):
            return self.schedule.get(kind)
        return self.schedule

    @property
    def source(self) -> str:
        """The file that declares the pattern."""
        return inspect.getsourcefile(self.pattern) or "<unknown>"
