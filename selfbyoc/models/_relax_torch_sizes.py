"""Symbolic sizes of an exported program by the names that their `torch.export.Dim` has."""

from __future__ import annotations

from typing import Any

from tvm import relax

from .._tvm import tir, tvm

_BOUNDS = ("tir_var_lower_bound", "tir_var_upper_bound")


def with_names_of_sizes(mod: tvm.IRModule, program: Any) -> tvm.IRModule:
    """The module whose sizes are called as the user calls them, `batch` and not `s31`.

    The program alone does not say; the environment that it was traced in does, as long as it is
    there: a program out of a file keeps PyTorch's names.
    """
    main = mod["main"]
    taken = {str(var.name) for var in relax.analysis.defined_symbolic_vars(main)}
    names = {
        old: new
        for old, new in _names(program).items()
        if old in taken and new.isidentifier() and new not in taken
    }
    if not names:
        return mod
    named = main.bind_symbolic_vars({old: tir.Var(new, "int64") for old, new in names.items()})
    for key in _BOUNDS:
        if key in (main.attrs or {}):
            bounds = {names.get(str(old), str(old)): most for old, most in main.attrs[key].items()}
            named = named.with_attr(key, bounds)
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), named)
    return done


def _names(program: Any) -> dict[str, str]:
    """Symbol -> the name of its Dim. PyTorch (2.13) keeps both by where a size is from, for
    its messages.
    """
    for node in program.graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        env = getattr(mode, "shape_env", None)
        if env is not None:
            named = getattr(env, "source_name_to_debug_name", {})
            symbols = getattr(env, "source_to_var", {})
            return {str(symbols[at]): str(name) for at, name in named.items() if at in symbols}
    return {}
