"""The kernel family of recurrent layers."""

from ....language.kernel import Kernel
from .compute import compute, compute_levels
from .pack import pack, pack_levels
from .plan import plan
from .schedule import schedule


def recurrent(kind: str) -> Kernel:
    """The kernel of one kind of layer: lstm, peephole_lstm, gru or rnn."""
    return Kernel(plan, {kind: compute}, schedule, pack={"weight": pack}, targets=("llvm",))


LSTM_LEVELS = Kernel(
    plan,
    compute_levels,
    lambda sch, stages, plan: schedule(sch, {"lstm": stages}, plan),
    pack={"weight": pack_levels},
    targets=("llvm",),
)
