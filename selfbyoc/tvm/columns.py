"""Words of neighbouring bytes in TIR: a vector of them is one load and a shuffle.

What reads them passes each byte of a word, so that TVM sees all that is read; if their loads are
vectors of one buffer, a fixed distance apart, the lowering reads 16 bytes for four words instead,
or 64 for 16, and shuffles them. So the buffer must go on for SPARE bytes after the last word, and
its very last byte is an argument, too: TVM keeps a buffer no longer than what is read of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from . import Analyzer, TensorLoad, region_buffer, tir
from .own_ops import has_own, is_own, lanes_of, own_op
from .rewrite import map_calls
from .types import PrimExpr, PrimFunc

COLUMNS = "selfbyoc.columns"
SPARE = 64  # bytes after the last word's first
_LOADED, _SHUFFLED = 16, 4  # bytes of a load, and words that are made of it
_WHOLE = 64  # bytes that vpermb makes others of


def _lowered(whole: int, *args: PrimExpr) -> PrimExpr:
    *levels, _ = args
    found = _places(levels)
    return _written_out(levels) if found is None else _shuffled(whole, levels[0], *found)


def _written_out(levels: Sequence[PrimExpr]) -> PrimExpr:
    lanes = lanes_of(levels[0])
    dtype, bits = ("int32" if lanes == 1 else f"int32x{lanes}"), 32 // len(levels)
    word = levels[0].astype(dtype)
    for i, level in enumerate(levels[1:], 1):
        by = tir.const(bits * i, "int32")
        word = word | (level.astype(dtype) << (by if lanes == 1 else tir.Broadcast(by, lanes)))
    return word


def _places(levels: Sequence[Any]) -> tuple[int, list[int]] | None:
    """How far lanes are apart, and where the bytes of a word lie after its first one; None where
    no load and shuffle has them.
    """
    lanes, ramps = lanes_of(levels[0]), [_ramp(level) for level in levels]
    if lanes % _SHUFFLED or any(ramp is None for ramp in ramps):
        return None
    first, steps = ramps[0], {str(ramp.stride) for ramp in ramps}
    offsets = [_number(Analyzer().simplify(ramp.base - first.base)) for ramp in ramps]
    step = _number(first.stride)
    if len(steps) > 1 or step is None or None in offsets:
        return None
    reach = step * (_SHUFFLED - 1) + max(offsets)
    return (step, offsets) if min(offsets) == 0 and 0 < reach < _LOADED else None


def _ramp(load: Any) -> Any:
    """Where a vector is loaded from; None of what is none."""
    indices: Any = load.indices if isinstance(load, TensorLoad) else ()
    return indices[0] if len(indices) == 1 and isinstance(indices[0], tir.Ramp) else None


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, (int, tir.IntImm)) else None


def _shuffled(whole: int, level: Any, step: int, offsets: Sequence[int]) -> PrimExpr:
    """Of loads of 16 bytes, one for four words, or for eight where they fit; of one load of so many
    bytes as are `whole` to the CPU, if any.

    Of one load twice and no zeros LLVM would make vpermq, which takes Zen 3 two steps and six
    cycles, and not vbroadcasti128; so words without zeros have loads of their own.
    """
    lanes, ramp = lanes_of(level), _ramp(level)
    known = [at not in offsets[:n] for n, at in enumerate(offsets)]
    loaded = whole if whole and step * (lanes - 1) + max(offsets) < whole else _LOADED
    per_load = lanes if loaded > _LOADED else _SHUFFLED
    fits = step * (2 * per_load - 1) + max(offsets) < loaded
    is_shared = fits and (len(offsets) < _SHUFFLED or not all(known))
    pieces, indices = [], []
    for piece in range(lanes // per_load):
        back = piece % 2 if is_shared else 0
        at = ramp.base + step * per_load * (piece - back)
        vector = [tir.Ramp(at, tir.const(1, "int32"), loaded)]
        pieces.append(tir.BufferLoad(region_buffer(level), vector))
        first = loaded * piece + step * per_load * back
        indices += [[first + step * n + at for at in offsets] for n in range(per_load)]
    zero = loaded * len(pieces)
    pieces.append(tir.Broadcast(tir.const(0, "uint8"), loaded))
    apart = [zero] * (_SHUFFLED // len(offsets) - 1)  # of two levels of 16 bits
    taken = [
        tir.const(i, "int32")
        for word in indices
        for at, is_known in zip(word, known, strict=True)
        for i in (at if is_known or loaded > _LOADED else zero, *apart)
    ]
    return tir.reinterpret(f"int32x{lanes}", tir.Shuffle(pieces, taken))


_columns = own_op(COLUMNS, partial(_lowered, 0))
_columns_at_once = own_op(f"{COLUMNS}.at_once", partial(_lowered, _WHOLE))


def columns(levels: Sequence[PrimExpr], last: PrimExpr) -> PrimExpr:
    """A word of int32 of two or four bytes, the first one lowest; `last` is their buffer's last.
    Where a byte is passed again, after itself, the word may hold anything.
    """
    return _columns(*levels, last)


def with_columns_at_once(func: PrimFunc) -> PrimFunc:
    """A function for a CPU that makes a vector of any of 64 bytes in one step (AVX-512 VBMI)."""
    if not has_own(func, COLUMNS):
        return func
    return map_calls(func, lambda c: _columns_at_once(*c.args) if is_own(c, COLUMNS) else c)
