"""The process of one contender that is taken apart.

`python -m selfbyoc.commands.bench.where.worker NAME FD`, as worker.py.
"""

from __future__ import annotations

import sys

from ..contenders.contender import Inputs
from ..records import OURS
from ..setting import Setting
from ..worker import Answers, main
from . import ours, peers
from .model import Values, values_of
from .records import Profile

PROFILERS = {
    OURS: ours.profiled, "onnxruntime": peers.onnxruntime, "openvino": peers.openvino_,
}  # fmt: skip
PROCESS = ("-m", "selfbyoc.commands.bench.where.worker")


class _Answers(Answers):
    """Those of the benchmark, and one more."""

    def profiled(self, path: str, inputs: Inputs, setting: Setting, seconds: float) -> Profile:
        """Build it once more, to be looked into, and call it for so many seconds."""
        return PROFILERS[self.name](path, inputs, setting, seconds)

    def values(self, path: str, inputs: Inputs) -> Values:
        """Everything that the model computes in between."""
        return values_of(path, inputs)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), answers=_Answers)
