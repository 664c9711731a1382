"""Decomposing a program whose views PyTorch's own decompositions make impossible.

They leave some results with other strides than the op that they replace: attention on a CPU returns
`[batch, rows, heads, width]` in memory, decomposed `[rows, batch, heads, width]`, of which `view`
cannot make one axis of batch and rows (PyTorch 2.13). A TVM tensor has no strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....common.optional import extra
from ....errors import InputError

if TYPE_CHECKING:
    import torch


def decomposed(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """An exported program in ATen's core ops; where a view fails, with views that may copy. Raises
    InputError where PyTorch makes an open size a constant meanwhile.
    """
    given = _extents(program)
    done = _decomposed(program)
    for name, after in _extents(done).items():
        before = given.get(name, after)
        lost = [s for s, n in zip(before, after, strict=True) if n.isdigit() and not s.isdigit()]
        if lost:
            raise InputError(
                f"from_torch: PyTorch makes {lost[0]} of {name} a constant where it decomposes the "
                f"program, as its max_pool1d does: {', '.join(before)} is {', '.join(after)}; "
                "expected ops that leave it open"
            )
    return done


def _extents(program: torch.export.ExportedProgram) -> dict[str, list[str]]:
    """The shapes of a program's tensors by name, as texts: PyTorch replaces symbols in place."""
    made = [n for n in program.graph.nodes if n.op == "placeholder"]
    return {n.name: [str(e) for e in getattr(n.meta.get("val"), "shape", ())] for n in made}


def _decomposed(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    try:
        return program.run_decompositions()
    except ValueError as err:
        if "Cannot view a tensor" not in str(err):
            raise
    torch = extra("torch")
    table = torch.export.default_decompositions()
    table[torch.ops.aten.view.default] = _view
    return program.run_decompositions(table)


def _view(x: torch.Tensor, shape: Sequence[int | torch.SymInt]) -> torch.Tensor:
    """A view of the copy in order; of what is in order PyTorch writes the view itself."""
    if x.is_contiguous():
        return NotImplemented
    torch = extra("torch")
    return x.clone(memory_format=torch.contiguous_format).view(shape)
