"""Instructions of the user's, which a schedule puts in place of loops: `sch.tensorize(loop, name)`.

`T` is TVMScript, as TVM calls it, with one spelling for both generations.
"""

from __future__ import annotations

from ..errors import InputError, RegistryError, ScheduleError, one_line
from ..tvm import param_buffers, scope_of, structural_equal
from ..tvm.script import T, is_prim_func, known_intrinsic, register_intrinsic
from ..tvm.types import Buffer, PrimFunc

__all__ = ["T", "intrinsic"]


def intrinsic(name: str, description: PrimFunc | None, implementation: PrimFunc | None) -> str:
    """Make a tensor intrinsic known to TVM -> its name, for `sch.tensorize(loop, name)`.

    `description` is a PrimFunc of the loops that it stands for, `implementation` one with the same
    parameters that does the work: both are one block around their body, with its regions
    (`T.reads`, `T.writes`). The same functions may be given again. Raises InputError, RegistryError
    for a name that others have, and ScheduleError for what TVM does not take.
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"intrinsic: name: expected a text, found {name!r}")
    for label, func in (("description", description), ("implementation", implementation)):
        if not is_prim_func(func):
            raise InputError(
                f"intrinsic {name}: {label}: expected a PrimFunc, found {type(func).__name__}"
            )
    wanted, found = _parameters(description), _parameters(implementation)
    if wanted != found:
        raise InputError(
            f"intrinsic {name}: implementation: expected the parameters of the description, "
            f"{wanted}, found {found}"
        )
    known = known_intrinsic(name)
    if known is not None:
        pairs = ((known.desc, description), (known.impl, implementation))
        if all(structural_equal(old, new) for old, new in pairs):
            return name
        raise RegistryError(f"intrinsic {name}: taken already, by other functions")
    try:
        register_intrinsic(name, description, implementation)
    except Exception as err:  # TVM raises plain errors of many types
        raise ScheduleError(f"intrinsic {name}: {one_line(err)}") from err
    return name


def _parameters(func: PrimFunc) -> str:
    """Each buffer's type and memory; a parameter that is no buffer by its name."""
    return ", ".join(map(_parameter, param_buffers(func)))


def _parameter(buffer: Buffer) -> str:
    if not hasattr(buffer, "shape"):
        return str(buffer)
    extents = ", ".join(map(str, buffer.shape))
    return f"{buffer.dtype}[{extents}] in {scope_of(buffer)}"
