"""What everybody is built for: so many threads, and for TVM's builds a target."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from ...codegen.target import decisive, host_target
from ...common.threads import core_count, count
from ...errors import InputError, TargetError
from ...machine import host
from ...partition import check_target
from ...tvm import make_target, target_dict
from ...tvm.types import Target


@dataclass(frozen=True)
class Setting:
    """It goes to each contender's process; peers pick their own instructions and take `threads`."""

    threads: int
    target: str  # JSON, with num-cores
    composites: tuple[str, ...] = ()  # as `--composites`: ours tries these first
    requantize: str = "stepwise"  # by ours

    def tvm_target(self) -> Target:
        """As TVM's builds take it."""
        return make_target(self.target)

    def with_threads(self, threads: int) -> Setting:
        """The same machine, on so many threads."""
        same = _setting(threads, json.loads(self.target))
        return replace(self, threads=threads, target=same.target)

    def __str__(self) -> str:
        """`llvm -mcpu=znver3 -num-cores=2`."""
        data = json.loads(self.target)
        machine = {**decisive(data), "num-cores": data["num-cores"]}
        machine.pop("kind")
        values = {n: ",".join(v) if isinstance(v, list) else v for n, v in machine.items()}
        words = [data["kind"], *(f"-{name}={value}" for name, value in values.items())]
        more = [f"({self.requantize})"] if self.requantize != "stepwise" else []
        return " ".join([*words, *more])


def make_setting(threads: int | None = None, target: str | None = None) -> Setting:
    """The asked number of threads and target, or all that this process may use and this CPU.

    Kernels are built for the number of threads that run, and for no more than this machine can do:
    of znver3 on a machine of Intel's the setting says -mattr=-sse4a.
    """
    threads = _threads(threads)
    made = host_target() if target is None else host.fitted(check_target(target))
    data = target_dict(made)
    if data["kind"] != "llvm":
        raise TargetError(f"target: what is timed runs on this CPU, kind llvm, not {data['kind']}")
    host.check_runs(made, "bench")
    told = data.get("num-cores")
    if target is not None and told not in (None, threads):
        raise TargetError(
            f"target: num-cores is {told}, but {threads} threads run: leave it out, or ask for as "
            "many threads"
        )
    return _setting(threads, data)


def _setting(threads: int, target: dict[str, object]) -> Setting:
    return Setting(threads, json.dumps(target | {"num-cores": threads}, sort_keys=True))


def _threads(asked: int | None) -> int:
    if asked is None:
        return count()
    if not 1 <= asked <= core_count():
        expected = f"expected 1 to {core_count()}, this process's cores"
        raise InputError(f"threads: {expected}, not {asked}")
    return asked
