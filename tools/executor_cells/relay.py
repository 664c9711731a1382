"""Relay's executors, by TVM's own functions alone: nothing of this package is imported here.

`python relay.py EXECUTOR FOLDER` loads what was written there, and runs it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor

EXECUTORS = ("graph", "aot", "vm")
_PACKED = {"interface-api": "packed", "unpacked-api": False}


def build(
    executor: str, mod: Any, target: Any, level: int, context: Mapping[str, Any], **options: Any
) -> Any:
    """What TVM builds of a module."""
    with tvm.transform.PassContext(opt_level=level, **context):
        if executor == "vm":
            return relay.vm.compile(mod, target=target)
        if executor == "aot":
            kind = relay.backend.Executor("aot", options.pop("aot", _PACKED))
        else:
            kind = relay.backend.Executor("graph", options.pop("graph", {}))
        runtime = relay.backend.Runtime(*options.pop("runtime", ("cpp",)))
        return relay.build(mod, target=target, executor=kind, runtime=runtime, **options)


def write(executor: str, built: Any, folder: Path) -> None:
    """Export what was built."""
    if executor != "vm":
        built.export_library(str(folder / "model.so"))
        return
    code, library = built.save()
    (folder / "model.bytes").write_bytes(code)
    library.export_library(str(folder / "model.so"))


def load(executor: str, folder: Path) -> Any:
    """What was exported."""
    library = tvm.runtime.load_module(str(folder / "model.so"))
    if executor != "vm":
        return library
    return tvm.runtime.vm.Executable.load_exec((folder / "model.bytes").read_bytes(), library)


def session(executor: str, built: Any) -> Any:
    """An executor on the CPU."""
    if executor == "vm":
        return tvm.runtime.vm.VirtualMachine(built, tvm.cpu())
    kind = graph_executor.GraphModule if executor == "graph" else tvm.runtime.executor.AotModule
    return kind(built["default"](tvm.cpu()))


def run(executor: str, machine: Any, args: Mapping[str, Any]) -> list[np.ndarray]:
    """Call it; -> the outputs."""
    if executor == "vm":
        return [part.numpy() for part in _flat(machine.run(**args))]
    for name, value in args.items():
        machine.set_input(name, value)
    machine.run()
    return [machine.get_output(i).numpy() for i in range(machine.get_num_outputs())]


run_as_they_lie = run  # TVM 0.17 copies NumPy arrays


def _flat(found: Any) -> list[Any]:
    return [found] if hasattr(found, "numpy") else [part for f in found for part in _flat(f)]


def with_open_extents(mod: Any, names: tuple[str, ...]) -> Any:
    """The module, the first extent of these inputs unknown."""
    main = mod["main"]
    new = {p: _opened(p) if p.name_hint in names else p for p in main.params}
    body = relay.bind(main.body, new)
    return relay.transform.InferType()(
        tvm.IRModule.from_expr(relay.Function(list(new.values()), body))
    )


def _opened(param: Any) -> Any:
    ty = param.type_annotation
    return relay.Var(param.name_hint, relay.TensorType([relay.Any(), *ty.shape[1:]], ty.dtype))


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
