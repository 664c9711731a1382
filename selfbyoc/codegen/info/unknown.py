"""UNKNOWN: what op info says where it cannot prove the truth."""

from __future__ import annotations

from typing import NoReturn

from ...errors import UnknownValue


class Unknown:
    """Compare it with `is`; every other use raises, so that it is never taken for a value."""

    _only: Unknown | None = None

    def __new__(cls) -> Unknown:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def _used(self, *_: object) -> NoReturn:
        raise UnknownValue(
            "this value is UNKNOWN: the function's layout was changed in a way that op info cannot "
            "follow; ask with `is UNKNOWN` first"
        )

    __bool__ = __int__ = __index__ = __float__ = __len__ = __iter__ = __getitem__ = _used
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _used
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __str__ = __format__ = _used

    def __eq__(self, other: object) -> bool:
        return True if other is self else self._used()

    def __ne__(self, other: object) -> bool:
        return False if other is self else self._used()

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __reduce__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()
"""Stands in op info for a value that a changed layout made unknown; to use it in
arithmetic or as a condition raises UnknownValue."""
