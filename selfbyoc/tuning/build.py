"""Candidates to machine code, each in a process of its own that it may crash."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..codegen.cache.assembly import llvm_ir, text_of
from ..tir.lowering import finished, machine_code
from ..tvm import make_target, module_source
from ..tvm.types import PrimFunc, Target
from .process import Failed, Pool, Process

SECONDS = 60.0  # to lower and compile one candidate
# TVM's own builder starts new processes for each batch, as old ones grow: 3 s on 0.27.
_USES = 64


def compiled(func: PrimFunc, target: Target | str, path: Path) -> None:
    """Lower a scheduled function and write its LLVM IR; its symbol is the file's name."""
    target, symbol = make_target(target), path.stem
    ready = finished(func, target).with_attr("global_symbol", symbol)
    module = machine_code(ready, symbol, target)
    text = text_of(module, symbol)
    whole = module_source(module, "ll") if text is None else llvm_ir(text, symbol)
    part = path.with_suffix(".part")
    part.write_text(whole, encoding="utf-8")
    part.replace(path)


class Builders:
    """As many processes as there are cores, which compile side by side."""

    def __init__(self, count: int, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._pool = Pool([Process() for _ in range(count)])

    def start(self) -> None:
        """Begin with loading TVM, in all of them."""
        self._pool.start(Process.start)

    def __call__(self, jobs: Sequence[tuple[PrimFunc, Target, Path]]) -> list[str]:
        """Compile functions, each for a target (as data) into a file; -> of each the error, or
        ''.
        """
        return self._pool.map(self._compiled, [(bare(func), *rest) for func, *rest in jobs])

    def _compiled(self, process: Process, job: tuple[PrimFunc, Target, Path]) -> str:
        try:
            process.call(compiled, *job, seconds=self.seconds)
        except Failed as err:
            return f"not built: {err}"
        finally:
            if process.calls >= _USES:
                process.end()
        return ""

    def end(self) -> None:
        """End the processes."""
        self._pool.end()
        for process in self._pool.workers:
            process.end()


def bare(func: PrimFunc) -> PrimFunc:
    """Without what we noted on the function: no code comes of it, and it takes time to send."""
    for name in [str(n) for n in func.attrs.keys()]:  # noqa: SIM118 (no Python dict)
        if name.startswith("tefuse."):
            func = func.without_attr(name)
    return func
