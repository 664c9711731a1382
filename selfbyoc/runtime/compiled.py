"""What TVM made of a partitioned module, on either generation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ..tvm.types import Executable


class Compiled(NamedTuple):
    """Code, and what is to be said of it.

    native       the Executable of Relax, the executor factory of Relay
    memory       bytes that are planned between kernels; None where sizes without a bound decide
    unscheduled  function -> why it runs as serial loops (Relax)
    serial_sums  those among them that sum anything up: they cost most
    lowered      the module that the virtual machine's code was made of (Relax)
    """

    native: Executable
    memory: int | None
    unscheduled: Mapping[str, str] = MappingProxyType({})
    serial_sums: tuple[str, ...] = ()
    lowered: Any = None
