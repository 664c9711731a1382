"""Relax's ways to run, by TVM's own functions alone: nothing of this package is imported here.

`python relax.py MODE FOLDER` loads what was written there, and runs it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax

EXECUTORS = ("bytecode", "compiled")


def build(
    executor: str, mod: Any, target: Any, level: int, context: Mapping[str, Any], **options: Any
) -> Any:
    """What TVM builds of a module."""
    if "pipeline" in options:
        options["relax_pipeline"] = relax.get_pipeline(options.pop("pipeline"))
    with tvm.transform.PassContext(opt_level=level, **context):
        coded = relax.transform.RunCodegen()(mod)
        return relax.build(coded, target, exec_mode=executor, **options)


def write(executor: str, built: Any, folder: Path) -> None:
    """Export what was built."""
    built.export_library(str(folder / "model.so"))


def load(executor: str, folder: Path) -> Any:
    """What was exported."""
    return tvm.runtime.load_module(str(folder / "model.so"))


def session(executor: str, built: Any) -> Any:
    """A virtual machine on the CPU."""
    return relax.VirtualMachine(built, tvm.cpu())


def run(executor: str, machine: Any, args: Mapping[str, Any]) -> list[np.ndarray]:
    """Call it; -> the outputs."""
    given = {name: tvm.runtime.tensor(np.asarray(a)) for name, a in args.items()}
    return run_as_they_lie(executor, machine, given)


def run_as_they_lie(executor: str, machine: Any, args: Mapping[str, Any]) -> list[np.ndarray]:
    """The same with NumPy arrays as they lie in memory, which 0.27 takes as they are."""
    return [part.numpy() for part in _flat(machine["main"](*args.values()))]


def _flat(found: Any) -> list[Any]:
    return [found] if hasattr(found, "numpy") else [part for f in found for part in _flat(f)]


def with_open_extents(mod: Any, names: tuple[str, ...]) -> Any:
    """The module, the first extent of these inputs unknown: one and the same in all of them."""
    main, batch = mod["main"], tvm.tirx.Var("batch", "int64")
    opened = [_opened(p, batch) if p.name in names else p for p in main.params]
    new: dict[Any, Any] = dict(zip(main.params, opened, strict=True))
    builder = relax.BlockBuilder()
    with builder.function("main", opened):
        with builder.dataflow():
            for bound in (b for block in main.body.blocks for b in block.bindings):
                new[bound.var] = builder.emit(_renamed(bound.value, new))
            root = builder.emit_output(new[main.body.body])
        builder.emit_func_output(root)
    return builder.get()


def _renamed(value: Any, new: Mapping[Any, Any]) -> Any:
    """An expression over the new variables; its type is inferred anew."""
    if isinstance(value, relax.Call):
        return relax.Call(value.op, [_renamed(a, new) for a in value.args], value.attrs)
    if isinstance(value, relax.Tuple):
        return relax.Tuple([_renamed(f, new) for f in value.fields])
    return new.get(value, value)


def _opened(param: Any, batch: Any) -> Any:
    shape = list(param.ty.shape)
    return relax.Var(param.name, relax.TensorType([batch, *shape[1:]], param.ty.dtype))


def main(executor: str, folder: Path) -> None:
    """Load, run, and write what came out."""
    assert "selfbyoc" not in sys.modules
    with np.load(folder / "in.npz") as file:
        args = dict(file)
    found = run(executor, session(executor, load(executor, folder)), args)
    np.savez(folder / "out.npz", *found)
    assert "selfbyoc" not in sys.modules


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
