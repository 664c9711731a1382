"""The kernels that were compiled before: found by what they depend on, kept as assembly."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from ...common.files import expanded
from ...common.interrupt import stopped
from ...errors import one_line
from ...tvm.types import Module
from .assembly import module_of, text_of
from .place import folder
from .store import Store, warn

logger = logging.getLogger(__name__)


@dataclass
class CacheUse:
    """The symbols of the kernels that one build found in the cache, and of those it compiled."""

    hits: list[str] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{len(self.hits)} kernels from the cache, {len(self.misses)} compiled"


@dataclass(frozen=True)
class KernelCache:
    """Machine code by the key of its function, and that key by the key of all its inputs."""

    store: Store
    use: CacheUse = field(default_factory=CacheUse)

    def key_of(self, inputs: str | None) -> str | None:
        """The key of the function that was made of these inputs the last time."""
        return self.store.get(inputs) if inputs else None

    def load(self, key: str | None, symbol: str) -> Module | None:
        """The module under a key, for a function of this symbol."""
        text = self.store.get(key) if key else None
        if text is None:
            return None
        try:
            module = module_of(text, symbol)
        except Exception as err:  # TVM raises plain errors; the kernel is compiled instead
            if stopped(err):
                raise
            logger.warning("a kernel in the compile cache cannot be loaded: %s", err)
            return None
        self.use.hits.append(symbol)
        logger.debug("%s: from the cache, %s", symbol, key)
        return module

    def keep(self, key: str, module: Module, symbol: str, about: Mapping[str, object]) -> Module:
        """Keep a compiled kernel; -> it, assembled from what is kept: its code is made once."""
        self.use.misses.append(symbol)
        text = text_of(module, symbol)
        if text is None:
            return module
        try:
            assembled = module_of(text, symbol)
        except Exception as err:  # TVM raises plain errors; what cannot be loaded is not kept
            if stopped(err):
                raise
            warn(f"kernels cannot be kept in the compile cache: {one_line(err)}")
            return module
        self.store.put(key, text, about)
        return assembled

    def remember(self, inputs: str | None, key: str, about: Mapping[str, object]) -> None:
        """Note which function these inputs led to."""
        if inputs and self.store.get(inputs) != key:
            self.store.put(inputs, key, {**about, "note": True})


_chosen: ContextVar[KernelCache | bool | None] = ContextVar("selfbyoc_cache", default=True)


def current() -> KernelCache | None:
    """The cache of the build that is under way, or the environment's."""
    chosen = _chosen.get()
    if not isinstance(chosen, bool):
        return chosen
    place = folder()
    return KernelCache(Store(place)) if place else None


@contextmanager
def using(cache: bool | str | Path) -> Iterator[CacheUse | None]:
    """Build with the cache in a folder, with the environment's (True), or without one (False)."""
    chosen = current() if cache is True else None
    if cache and cache is not True:
        chosen = KernelCache(Store(expanded(cache)))
    token = _chosen.set(chosen)
    try:
        yield chosen.use if chosen else None
    finally:
        _chosen.reset(token)
