"""What must hold of a plan, in words where it does not.

A plan's `faults(ops, machine)` says what is wrong with it: nothing, or a schedule would read
outside of its buffers, spill registers or leave elements out. No build asks; the tests and
`tools/plans.py` do, of drawn shapes, attributes and machines.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...machine import Machine
from .tiles import RegisterTile

Faults = Iterator[str]

# What a cache holds by the usual decisions; a tuner may try others.
CACHE = "larger than its cache"


def spilled(tile: RegisterTile, cpu: Machine, held: int | None = None) -> Faults:
    """A register tile that registers do not hold; one vector of sums is the least there is."""
    if tile.sums > 1 and not tile.fits(cpu, held):
        yield f"{tile} of {cpu.vector_registers} registers spill"


def undivided(what: str, extent: int, part: int) -> Faults:
    """Parts that are not equal, or none."""
    if part < 1 or extent % part:
        yield f"{what}: {part} does not divide {extent}"


def unlike(what: str, found: object, expected: object) -> Faults:
    """What the ops or the machine say otherwise."""
    if found != expected:
        yield f"{what}: {found}, expected {expected}"


def outside(what: str, value: int, least: int, most: int) -> Faults:
    """A number that is too small or too large."""
    if not least <= value <= most:
        yield f"{what}: {value}, expected {least} to {most}"


def uncovered(what: str, extent: int, covered: int) -> Faults:
    """What is computed is less than there is."""
    if covered < extent:
        yield f"{what}: {covered} of {extent} are computed"


def too_large(what: str, size: int, held: int) -> Faults:
    """Bytes that a cache was to hold."""
    if size > held:
        yield f"{CACHE}: {what}, {size} bytes of {held}"
