"""How executors call kernels, as C."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Abi:
    """How an executor calls a kernel: what it needs declared, and a stub with the names `{stub}`,
    `{kernel}`, `{given}` (arguments), `{types}` (of each, where they are apart) and `{count}`.
    """

    declared: str
    stub: str
    pack: str  # the same of a `{function}`, as a statement
    weight: str  # an argument that is weight {n}
    given: str  # one that is given, number {n}
    given_type: str = ""  # its type, where types are apart
