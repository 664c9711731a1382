"""Damage, drawn: one bit above all, and what disks, networks and crashes do to more of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

_HOW = {"bit": 0.7, "bits": 0.1, "bytes": 0.08, "zeros": 0.04, "cut": 0.05, "moved": 0.03}


@dataclass(frozen=True)
class Damage:
    """One file of a specimen as it is afterwards; `text` says what was done."""

    file: str
    data: bytes
    text: str


def drawn(seed: int, number: int, files: Mapping[str, bytes]) -> Damage:
    """The damage of a number: the same for the same seed and the same files."""
    rng = np.random.default_rng([seed, number])
    name = sorted(files)[rng.integers(len(files))]
    how = str(rng.choice(list(_HOW), p=list(_HOW.values())))
    data = bytearray(files[name])
    text = _done(rng, how, data)
    if bytes(data) == files[name]:  # zeros where zeros were
        text = _done(rng, "bit", data)
    return Damage(name, bytes(data), f"number {number}: {name}, {text}")


def cuts(seed: int, files: Mapping[str, bytes], every: int = 1) -> Iterator[Damage]:
    """Every file cut off at each length, or at every so many; in any order, so that the first of
    them are a sample.
    """
    places = [(name, n) for name, data in sorted(files.items()) for n in range(0, len(data), every)]
    for place in np.random.default_rng(seed).permutation(len(places)):
        name, length = places[place]
        yield Damage(name, files[name][:length], f"{name}, cut at {length}")


def _done(rng: np.random.Generator, how: str, data: bytearray) -> str:
    at, size = int(rng.integers(len(data))), len(data)
    if how == "bit":
        bit = int(rng.integers(8))
        data[at] ^= 1 << bit
        return f"bit {bit} of byte {at}"
    if how == "bits":
        places = rng.integers(size, size=rng.integers(2, 9))
        for place in places:
            data[place] ^= 1 << int(rng.integers(8))
        return f"bits of bytes {sorted(map(int, places))}"
    if how == "cut":
        del data[at:]
        return f"cut at {at}"
    count = int(rng.integers(1, 17)) if how == "bytes" else int(2 ** rng.uniform(4, 12))
    stop = min(size, at + count)
    if how == "moved":  # there twice, where something else was
        start = int(rng.integers(max(1, size - count)))
        data[at:stop] = data[start : start + stop - at]
        return f"bytes {at} to {stop} are those from {start} on"
    data[at:stop] = bytes(stop - at) if how == "zeros" else rng.bytes(stop - at)
    return f"bytes {at} to {stop} are {'zero' if how == 'zeros' else 'others'}"
