"""Ours: a library of `decoding`, fed by `Decoder`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .contender import GROUP, Job

_LIBRARY = "decoder.so"


def write(job: Job) -> None:
    """Compile it."""
    from ....models.decoding import decoding
    from ....runtime.build import build
    from ....tvm import make_target
    from .configs import read_model

    few: dict[str, Any] = {} if job.weights == "float32" else {"weights": job.weights}
    if job.weights in ("int8", "int4"):
        few |= {"group": GROUP, "activations": "int8", "symmetric": True}  # as GGUF has them
    mod = decoding(read_model(job.model), bound=job.bound)
    build(mod, make_target(job.target), **few).export_library(str(job.files / _LIBRARY))


def imports() -> None:
    """TVM's runtime."""
    from ....runtime import decoder, loading  # noqa: F401


class _Decoder:
    def __init__(self, path: str) -> None:
        from ....runtime.decoder import Decoder
        from ....runtime.loading import load

        self._decoder = Decoder(load(path))

    def feed(self, ids: np.ndarray) -> np.ndarray:
        return self._decoder.feed(ids)

    def reset(self) -> None:
        self._decoder.cache.cut(0)


def load(job: Job) -> _Decoder:
    """From its file."""
    return _Decoder(str(job.files / _LIBRARY))
