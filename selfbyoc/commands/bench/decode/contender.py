"""Who decodes. Each has a module of this room: `write(job)` in its own format, `imports()`, and
`load(job)`, of which `feed(ids)` puts tokens behind those that are there and gives the logits
behind the last, and `reset()` forgets all.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ....common.optional import does_not_serve, is_installed
from ..records import OURS

GROUP = 32  # weights that share a scale
BEHIND = 128  # tokens, where nobody says how many
LEAST_BOUND, FURTHER = 1024, 256  # tokens that caches hold; of these, behind those of before
# Bytes of a weight; of levels with a scale of two bytes for each group, as GGUF has them: the least
# that anybody reads, and taken for everybody, so that GB/s of one are those of the other.
BYTES = {
    "float32": 4.0, "float16": 2.0, "bfloat16": 2.0, "int8": 1 + 2 / GROUP, "int4": 0.5 + 2 / GROUP,
}  # fmt: skip
_KNOWN = {  # module, packages
    OURS: ("ours", []), "llama.cpp": ("llama", ["llama_cpp", "gguf"]),
    "onnxruntime-genai": ("genai", ["onnxruntime_genai"]), "openvino": ("openvino", ["openvino"]),
}  # fmt: skip
CONTENDERS = MappingProxyType(_KNOWN)


@dataclass(frozen=True)
class Job:
    """What a contender is told: where the model of transformers is and where its own files are, the
    weights, threads, the target of our build, and behind how many tokens one is timed.
    """

    model: Path
    files: Path
    weights: str
    threads: int
    target: str
    behind: int = BEHIND

    @property
    def bound(self) -> int:
        """How many tokens caches hold."""
        return max(LEAST_BOUND, self.behind + FURTHER)


def missing(name: str) -> str:
    """Why somebody cannot take part, or ''."""
    packages = CONTENDERS[name][1]
    lacking = [each for each in packages if not is_installed(each)]
    if lacking:
        return f"{', '.join(lacking)} not installed"
    return next(filter(None, map(does_not_serve, packages)), "")


def module_of(name: str) -> Any:
    """Somebody's, imported only now."""
    return import_module(f".{CONTENDERS[name][0]}", __package__)
