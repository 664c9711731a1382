"""The kernel family of recurrent layers."""

from ....language.kernel import Kernel
from .compute import compute
from .pack import pack
from .plan import plan
from .schedule import schedule


def recurrent(kind: str) -> Kernel:
    """The kernel of one kind of layer: lstm, peephole_lstm, gru or rnn."""
    return Kernel(plan, {kind: compute}, schedule, pack={"weight": pack}, targets=("llvm",))
