"""The parameters of a function that is raised: as values of the graph, their layouts proved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import RaiseError
from ...graph import Value
from ...tvm import dtype_of, param_buffers
from ...tvm.types import PrimFunc
from ..info.accesses import Accesses
from ..info.layout_map import LayoutMap
from ..info.layout_proof import Place
from ..info.op_record import OpInfo, Recorded

NOT_PROVED = "its layout cannot be read off how the blocks index it"


class Parameters:
    """Input parameters first, then one for each result."""

    def __init__(
        self,
        func: PrimFunc,
        recorded: Recorded,
        now: Accesses,
        found: Mapping[int, Place] | None,
    ) -> None:
        self.then, self.now, self.found = recorded.accesses, now, found
        if len(now.params) != len(self.then.params):
            text = f"{len(self.then.params)} parameters were recorded, found {len(now.params)}"
            raise RaiseError.of("", "parameters", text)
        buffers = [b for b in param_buffers(func) if hasattr(b, "shape")]
        self.first_result = len(buffers) - len(recorded.results)
        names = _unique([str(b.name) for b in buffers])
        self.inputs = tuple(
            Value(self._shape(p), dtype_of(b), name)
            for p, (b, name) in enumerate(zip(buffers, names, strict=True))
        )[: self.first_result]
        self.names = names

    def _shape(self, param: int) -> tuple[Any, ...]:
        return self.now.shapes[self.now.params[param]]

    def _recorded(self, param: int) -> tuple[tuple[Any, ...], str]:
        buffer = self.then.params[param]
        return self.then.shapes[buffer], self.then.dtypes[buffer]

    def _place(self, param: int) -> Place:
        shape, _ = self._recorded(param)
        if self.found is None:
            return Place(LayoutMap.identity(len(shape)))
        return self.found[self.then.params[param]]

    def named(self, param: int) -> str:
        """`parameter 1 'w'`, for messages."""
        return f"parameter {param} {self.names[param]!r}"

    def why(self, param: int) -> str:
        """Why a parameter's layout is not known."""
        then, now = self._recorded(param)[0], self._shape(param)
        was = f"; recorded as {list(then)}, found {list(now)}" if then != now else ""
        return f"{self.named(param)}: {NOT_PROVED}{was}"

    def read(self, info: OpInfo, index: int, param: int) -> tuple[Value, LayoutMap]:
        """An input of an op that is a parameter, and its present layout."""
        what, tensor = f"input {index}", info.inputs[index]
        place = self._place(param)
        shape, dtype = self._recorded(param)
        if not _same(shape, tensor.shape):
            text = f"{self.named(param)} comes packed as {list(shape)}, which is no layout of "
            raise RaiseError.of(info.name, what, f"{text}{list(tensor.shape)}; stack it unpacked")
        if place.dtype is not None:
            text = f"{self.named(param)} was {dtype} and is another dtype now"
            raise RaiseError.of(info.name, what, text)
        if place.layout is None:
            raise RaiseError.of(info.name, what, self.why(param))
        return self.inputs[param], place.layout

    def returned(self, param: int, what: str) -> tuple[Value, tuple[Any, ...], LayoutMap]:
        """A parameter that the function returns as it came."""
        layout = self._place(param).layout
        if layout is None:
            raise RaiseError.of("", what, self.why(param))
        return self.inputs[param], self._recorded(param)[0], layout

    def result_at(self, position: int) -> int:
        """The parameter of an output."""
        return self.first_result + position

    def result_layout(self, position: int, ndim: int) -> LayoutMap | None:
        """How an output is laid out now; None where nothing shows it."""
        place = self._place(self.result_at(position))
        if place.layout is None or place.dtype is not None:
            return None
        axes = {part.axis for part in place.layout.parts}
        return place.layout if len(axes) == ndim else None


def _same(recorded: tuple[Any, ...], own: tuple[Any, ...]) -> bool:
    """Whether a buffer has the op's own axes; of an extent that is an expression none is known."""
    if len(recorded) != len(own):
        return False
    return all(a is None or b is None or a == b for a, b in zip(recorded, own, strict=True))


def _unique(names: list[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        other, count = name, 1
        while other in found:
            count += 1
            other = f"{name}_{count}"
        found.append(other)
    return found
