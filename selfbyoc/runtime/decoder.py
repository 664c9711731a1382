"""`Decoder`: the library of a language model, its caches and how far they are filled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import InputError
from .executors.generation import executor
from .library import Library, check_library
from .signature import Tensor

PAST = "past"
_MASK, _POSITIONS = "attention_mask", "position_ids"  # of files; what they say follows from `past`


@dataclass
class Cache:
    """Keys and values of the tokens that a decoder was fed; one conversation.

    tensors   a tensor for each cache of the model, (1, bound, heads, depth)
    kinds     the model's names, shapes and dtypes of them
    length    how many tokens they hold
    """

    tensors: Sequence[Any] = field(repr=False)
    kinds: tuple[Tensor, ...] = field(repr=False)
    length: int = 0

    def cut(self, length: int) -> None:
        """Forget all tokens but the first ones. Raises InputError for more than there are."""
        if not 0 <= length <= self.length:
            raise InputError(f"length: expected 0 to {self.length}, found {length!r}")
        self.length = length


class Decoder:
    """Feeds tokens to the library of a decoder (`selfbyoc.decoding`, then `build`).

        decoder = selfbyoc.Decoder(selfbyoc.build(selfbyoc.decoding(model)))
        for token in decoder.tokens([1, 5, 9], 20): ...

    library   of a module of `decoding`, built or loaded. Raises InputError for another one.

    One thread at a time; several decoders of one library share its weights.
    """

    def __init__(self, library: Library) -> None:
        check_library(library, "library")
        names = [name for name, _, _ in library.inputs]
        if PAST not in names or not names[: names.index(PAST)]:
            raise InputError(
                f"library: expected that of a decoder (selfbyoc.decoding), found inputs {names}"
            )
        at = names.index(PAST)
        self.library = library
        self._asked, self._caches = library.inputs[:at], library.inputs[at + 1 :]
        self._ids = self._asked[0]
        unknown = [n for n, _, _ in self._asked[1:] if n not in (_MASK, _POSITIONS)]
        if unknown:
            raise InputError(f"library: a decoder knows no values for its inputs {unknown}")
        self._session = library.session()
        self.cache = self.new_cache()

    @property
    def bound(self) -> int:
        """How many tokens a cache holds."""
        return int(self._caches[0][1][1] or 0)

    @property
    def piece(self) -> int:
        """How many tokens one call takes."""
        most = [most for most, places in self.library.sizes.values() if (0, 1) in places]
        return min((size for size in most if size is not None), default=self.bound)

    def new_cache(self) -> Cache:
        """An empty one."""
        shapes: list[tuple[Any, str]] = [(shape, dtype) for _, shape, dtype in self._caches]
        return Cache([executor.to_tensor(np.zeros(*each)) for each in shapes], self._caches)

    def feed(self, ids: Sequence[int] | np.ndarray, cache: Cache | None = None) -> np.ndarray:
        """Put tokens behind those of a cache, the decoder's own if none is given -> the logits of
        what follows the last of them, of (vocabulary,).

        Raises InputError before any kernel runs: for no tokens, more than the cache has room for,
        ids out of range, and the cache of another model.
        """
        cache = self.cache if cache is None else cache
        self._check_cache(cache)
        tokens = self._checked(ids, cache)
        found = None
        for start in range(0, len(tokens), self.piece):
            found = self._step(tokens[start : start + self.piece], cache)
        assert found is not None
        return found

    def tokens(
        self,
        ids: Sequence[int] | np.ndarray,
        count: int,
        choose: Callable[[np.ndarray], int] = lambda logits: int(np.argmax(logits)),
    ) -> Iterator[int]:
        """Feed a prompt, then what `choose` makes of the logits, so often; the most likely token
        unless told otherwise. Stops before where the cache is full.
        """
        logits = self.feed(ids)
        for number in range(count):
            token = choose(logits)
            yield token
            if number + 1 == count or self.cache.length == self.bound:
                return
            logits = self.feed([token])

    def _step(self, tokens: np.ndarray, cache: Cache) -> np.ndarray:
        ids = tokens.astype(self._ids[2]).reshape(1, -1)
        given = [ids, *(self._value(each, ids.shape[1], cache.length) for each in self._asked[1:])]
        places = np.zeros(cache.length, "int8")
        tensors = [executor.to_tensor(array) for array in (*given, places)]
        logits = self._session(*tensors, *cache.tensors)[0]
        cache.length += ids.shape[1]
        return executor.view_of(logits)[0, -1]  # no copy: each call has memory of its own for them

    @staticmethod
    def _value(asked: Tensor, count: int, length: int) -> np.ndarray:
        """Of an input that follows from how many tokens there are."""
        name, _, dtype = asked
        if name == _MASK:
            return np.ones((1, length + count), dtype)
        return np.arange(length, length + count, dtype=dtype).reshape(1, -1)

    def _checked(self, ids: Sequence[int] | np.ndarray, cache: Cache) -> np.ndarray:
        tokens = np.asarray(ids)
        if tokens.ndim == 2 and tokens.shape[0] == 1:
            tokens = tokens[0]
        if tokens.ndim != 1 or not tokens.size or tokens.dtype.kind not in "iu":
            raise InputError(
                f"ids: expected one or more token ids, found {tokens.dtype} of {tokens.shape}"
            )
        if cache.length + tokens.size > self.bound:
            raise InputError(
                f"ids: expected at most {self.bound - cache.length} tokens, as the cache has "
                f"{cache.length} of {self.bound}, found {tokens.size}"
            )
        low, high = self.library.index_bounds.get(self._ids[0], (None, None))
        if low is not None and (tokens.min() < low or tokens.max() > high):
            wrong = tokens[(tokens < low) | (tokens > high)][0]
            raise InputError(f"ids: expected numbers from {low} to {high}, found {wrong}")
        return tokens

    def _check_cache(self, cache: Cache) -> None:
        if cache.kinds != self._caches:
            told = [f"{len(each)} of {each[0][1:]}" for each in (self._caches, cache.kinds)]
            raise InputError(f"cache: expected {told[0]}, found {told[1]}: of another model")
