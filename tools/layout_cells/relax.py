"""Relax's passes that move layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm import relax

from selfbyoc.tvm import Schedule


def _converted(data: str, weight: str) -> Callable[[Any], Any]:
    """ConvertLayout; it leaves what nobody reads."""
    layouts = {"relax.nn.conv2d": [data, weight]}
    if data == "NHWC":
        layouts["relax.nn.conv2d_transpose"] = [data, "IHWO"]
    passes = [relax.transform.ConvertLayout(layouts), relax.transform.DeadCodeElimination()]
    return lambda mod: tvm.transform.Sequential(passes)(mod)


_ELEMENTS = ("add", "clip", "divide", "maximum", "multiply", "nn.relu", "sigmoid", "tanh")


BLOCK = 16


def _altered(layout: Callable[..., Any]) -> Callable[[Any], Any]:
    """AlterOpImpl of the ops on elements of an image, lowered before: the same functions in another
    layout. Where there is none the module stays.
    """

    def run(mod: Any) -> Any:
        known = {name.name_hint for name in mod.functions}
        others = [name for name in _ops(mod) if name.removeprefix("relax.") not in _ELEMENTS]
        lowered = relax.transform.LegalizeOps(skip_ops=others)(mod)
        functions, layouts = {}, {}
        for name, func in list(lowered.functions.items()):
            hint = name.name_hint
            if hint in known or not _is_of_images(func):
                continue
            lowered.update_func(name, func.with_attr("operator_name", hint))
            functions[hint] = _in_layout(func.with_attr("global_symbol", f"{hint}_altered"), layout)
            layouts[hint] = [layout] * len(func.params)
        return relax.transform.AlterOpImpl(functions, layouts)(lowered) if functions else mod

    return run


def _ops(mod: Any) -> set[str]:
    found = set()

    def note(expr: Any) -> None:
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op):
            found.add(str(expr.op.name))

    relax.analysis.post_order_visit(mod["main"], note)
    return found


def _is_of_images(func: Any) -> bool:
    """Whether all buffers are images of one shape, of whole blocks of channels."""
    shapes = {tuple(int(getattr(e, "value", 0)) for e in buffer.shape) for buffer in func.params}
    (first, *others) = shapes
    return not others and len(first) == 4 and 0 not in first and first[1] % BLOCK == 0


def _in_layout(func: Any, layout: Callable[..., Any]) -> Any:
    schedule = Schedule(func)
    (block,) = schedule.get_child_blocks(schedule.get_sblock("root"))
    for number in range(len(func.params) - 1):
        schedule.transform_layout(block, ("read", number), layout)
    schedule.transform_layout(block, ("write", 0), layout)
    schedule.transform_block_layout(block, layout)
    return schedule.mod["main"]


def _blocked(n: Any, c: Any, h: Any, w: Any) -> tuple[Any, ...]:
    return n, c // BLOCK, h, w, c % BLOCK


def _channels_last(n: Any, c: Any, h: Any, w: Any) -> tuple[Any, ...]:
    return n, h, w, c


PASSES: dict[str, Callable[[Any], Any]] = {
    "ConvertLayout to NHWC": _converted("NHWC", "OHWI"),
    "ConvertLayout to NCHW4c": _converted("NCHW4c", "OIHW4o"),
    "ConvertLayout to NCHW8c": _converted("NCHW8c", "OIHW8i8o"),
    "ConvertLayout to NCHW16c": _converted("NCHW16c", "OIHW16i16o"),
    "AlterOpImpl to NCHW16c": _altered(_blocked),
    "AlterOpImpl to NHWC": _altered(_channels_last),
}


def alone(mod: Any, args: list[Any]) -> list[Any]:
    """What TVM computes of a module by itself."""
    machine = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    found = machine["main"](*(tvm.runtime.tensor(arg) for arg in args))
    return [np.asarray(x.numpy()) for x in (found if hasattr(found, "__len__") and not hasattr(
        found, "numpy") else [found])]  # fmt: skip


ALONE = alone
