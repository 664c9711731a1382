"""One case: a program on a machine, packed and decided so; and what is wrong with its plans."""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from selfbyoc import BUILTIN
from selfbyoc.commands.fuzz.program import Program
from selfbyoc.commands.fuzz.shapes import at_places, valid
from selfbyoc.common import structured
from selfbyoc.language.composite import Composite
from selfbyoc.language.decisions import Choice, deciding, for_every_size_of
from selfbyoc.machine import Machine
from selfbyoc.partition.extents import LARGEST
from selfbyoc.schedules.steps.faults import CACHE

from . import machines
from .asked import Draw, Shapes, taken

BUILT, TUNED, LASTING = "built", "tuned", "lasting"
BATCHES = (0, 1, 2, 3, 5, 8, 17, 64, 131)


@dataclass(frozen=True)
class Case:
    """All that plans are asked for.

    constants  the arguments that are packed ahead of time
    how        BUILT: nobody is asked; TUNED: as `told`, in one context; LASTING: for every size of
               symbols that have these `sizes`
    batch      images or rows at which what was packed is read; 0: as many
    reader     the machine that reads what this one's plan packed; None: the same one
    """

    composite: str
    program: Program
    cpu: str
    machine: Machine
    constants: tuple[str, ...] = ()
    how: str = BUILT
    told: Mapping[str, Any] = field(default_factory=dict)
    sizes: tuple[int, ...] = ()
    batch: int = 0
    reader: Machine | None = None

    def both(self) -> AbstractContextManager[Any]:
        """The context of both plans."""
        return deciding(self.told, fitted=True) if self.how == TUNED else nullcontext()

    def each(self) -> AbstractContextManager[Any]:
        """The context of each."""
        return for_every_size_of(self.sizes if self.how == LASTING else ())

    def to_json(self) -> str:
        """A text that `from_text` reads."""
        fields = {name: value for name, value in vars(self).items() if name != "program"}
        plain = {n: asdict(v) if isinstance(v, Machine) else v for n, v in fields.items()}
        return json.dumps({**plain, "program": json.loads(self.program.to_json())})


def from_text(text: str) -> Case:
    """The case of a text."""
    data = json.loads(text)
    program = structured.checked(Program, data.pop("program"), "")
    nodes = [replace(n, attrs={k: _tuples(v) for k, v in n.attrs.items()}) for n in program.nodes]
    told = {name: _tuples(value) for name, value in data.pop("told").items()}
    reader = data.pop("reader")
    made = structured.checked(Machine, data.pop("machine"), "")
    data = {name: _tuples(value) for name, value in data.items()}
    return Case(
        program=replace(program, nodes=tuple(nodes)),
        told=told,
        machine=made,
        reader=reader and structured.checked(Machine, reader, ""),
        **data,
    )


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


@dataclass
class Outcome:
    """How many plans were made, what is wrong with them, and what they left open."""

    plans: int = 0
    faults: list[str] = field(default_factory=list)
    choices: Mapping[str, Choice] = field(default_factory=dict)


class _Raised(Exception):
    pass


def checked(case: Case, draw: Draw | None = None) -> Outcome:
    """The plans of a case: for packing, and for what was packed. Of a program that its composite
    does not take there are none.
    """
    found = Outcome()
    draw = draw or taken(BUILTIN_BY_NAME[case.composite], case.program)
    if draw is None:
        return found
    try:
        with case.both() as asked:
            _both(case, draw, found)
    except _Raised as err:
        found.faults.append(str(err))
    found.choices = {} if asked is None else asked.made
    if case.told or case.how == LASTING:
        found.faults = [text for text in found.faults if CACHE not in text]
    return found


def _both(case: Case, draw: Draw, found: Outcome) -> None:
    with case.each():
        unpacked = dict.fromkeys(case.constants)
        first = _plan(case.machine, draw, unpacked, found, is_twice=case.how == BUILT)
    if not case.constants:
        return
    shapes = _packed(draw, case.constants, first)
    for name, shape in shapes.items():
        weights = math.prod(draw.match.args[name].shape)
        elements, of_one = math.prod(shape), draw.weights_of_one(name, first)
        if elements > LARGEST or weights > of_one * elements:
            found.faults.append(f"{name}: {weights} weights packed as {shape}")
    with case.each():
        second = _plan(case.reader or case.machine, _of_batch(draw, case.batch), shapes, found)
    if case.reader is None and case.how != LASTING and second != first:
        again = _packed(draw, case.constants, second)
        if again != shapes:
            found.faults.append(f"packed as {shapes}, read as {again}")


def _of_batch(draw: Draw, batch: int) -> Draw:
    """The same of so many images or rows, if it exists: kernels of symbolic sizes are planned at
    many.
    """
    program = draw.program
    weights = {draw.match.args[name] for name in draw.packable}
    values = [v for call in draw.match.ops for v in call.inputs if v not in weights]
    names = {v.name for v in values if v.ndim > 2}
    leaves = [i for n, i in enumerate(program.leaves()) if f"x{n}" in names]
    sizes = {program.nodes[i].shape[0] for i in leaves}
    if not batch or len(sizes) != 1:
        return draw
    other = at_places(program, [(i, 0) for i in leaves], batch, "")
    return (valid(other) and taken(draw.composite, other)) or draw


def _plan(
    cpu: Machine, draw: Draw, packed: Shapes, found: Outcome, *, is_twice: bool = False
) -> Any:
    """The plan; its faults are noted. `is_twice`: it is made again, and must be the same."""
    kernel, ops = draw.composite.kernel, draw.ops(packed)
    assert kernel is not None
    found.plans += 1
    try:
        made = kernel.plan(ops, cpu)
        if is_twice and kernel.plan(ops, cpu) != made:
            found.faults.append("made twice it is another plan")
        if not str(made):
            found.faults.append("it says nothing of itself")
        found.faults += made.faults(ops, cpu)
    except Exception as err:  # the finding, whatever it is
        raise _Raised(_where(err)) from err
    return made


def _packed(draw: Draw, names: Sequence[str], plan: Any) -> dict[str, tuple[int, ...]]:
    try:
        return draw.packed(names, plan)
    except Exception as err:  # as for a plan
        raise _Raised(f"pack: {_where(err)}") from err


def _where(err: Exception) -> str:
    """What was raised, and by which line."""
    last = traceback.extract_tb(err.__traceback__)[-1]
    file = Path(last.filename)
    return f"{type(err).__name__}: {err} ({file.parent.name}/{file.name}, {last.name})"


def tried(draw: Draw, rng: Random) -> Iterator[tuple[Case, Outcome]]:
    """A drawn program on a drawn machine: as it is built; tuned, with the defaults and with others;
    for every size of a symbol; and read on another machine.
    """
    cpu, made = machines.draw(rng)
    constants = tuple(name for name in draw.packable if rng.random() < 0.8)
    case = Case(draw.composite.name, draw.program, cpu, made, constants)
    yield case, checked(case, draw)
    usual = replace(case, how=TUNED)
    outcome = checked(usual, draw)
    yield usual, outcome
    if told := _told(outcome.choices, rng):
        other = replace(usual, told=told)
        yield other, checked(other, draw)
    lasting = replace(case, how=LASTING, sizes=_sizes(draw, rng), batch=rng.choice(BATCHES))
    yield lasting, checked(lasting, draw)
    if constants:
        elsewhere = replace(case, reader=machines.draw(rng)[1])
        yield elsewhere, checked(elsewhere, draw)


def _told(choices: Mapping[str, Choice], rng: Random) -> dict[str, Any]:
    """Some of what was left open, decided otherwise."""
    return {
        name: rng.choice(choice.candidates)
        for name, choice in choices.items()
        if len(choice.candidates) > 1 and rng.random() < 0.6
    }


def _sizes(draw: Draw, rng: Random) -> tuple[int, ...]:
    """The size of a symbol: an extent of what a user passes."""
    (shape, *_) = (v.shape for v in draw.match.args.values() if v.ndim > 1)
    return (rng.choice([shape[0], shape[0], *shape]),)


BUILTIN_BY_NAME: dict[str, Composite] = {composite.name: composite for composite in BUILTIN}
