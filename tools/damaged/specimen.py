"""What is damaged: files, how they are read, and what is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

F32, HUGE = "float32", 1e30
Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class Specimen:
    """Files by name, each of which is damaged.

    read    what they say, computed; in a process of its own
    judge   what is wrong with that, in a folder of damaged files; '' where it is right
    """

    name: str
    files: Mapping[str, bytes]
    read: Callable[[Path], Any]
    judge: Callable[[Any, Path], str]


def compared(expected: Arrays, tolerance: float = 0.0) -> Callable[[Any, Path], str]:
    """A judge: the same arrays, to the bit where there is no tolerance."""

    def judge(found: Any, folder: Path) -> str:
        return difference(found, expected, tolerance)

    return judge


def difference(found: Arrays, expected: Arrays, tolerance: float = 0.0) -> str:
    """How two results differ; '' where they do not."""
    if len(found) != len(expected):
        return f"{len(found)} arrays; expected {len(expected)}"
    for n, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"array {n}: {ours.dtype}{ours.shape}; expected {theirs.dtype}{theirs.shape}"
        if tolerance == 0 and ours.tobytes() != theirs.tobytes():
            return f"array {n} is another one"
        if tolerance and (off := _off(ours, theirs, tolerance)):
            return f"array {n} is off by {off:.3g}"
    return ""


def _off(ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> float:
    """Beyond the tolerance, or 0. What is so large that it may overflow in one order of a sum and
    not in another is as good as infinite.
    """
    a, b = (np.clip(x.astype("float64"), -HUGE, HUGE) for x in (ours, theirs))
    wrong = ~np.isclose(a, b, tolerance, tolerance, equal_nan=True)
    wrong &= ~(np.isnan(a) & (np.abs(b) == HUGE)) & ~(np.isnan(b) & (np.abs(a) == HUGE))
    return float(np.max(np.nan_to_num(np.abs(a - b)[wrong], nan=np.inf), initial=0.0))


def files_in(folder: Path) -> dict[str, bytes]:
    """All files, by name."""
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.is_file()}
