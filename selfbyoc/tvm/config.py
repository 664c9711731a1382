"""Options of the PassContext that kernels are lowered with, by each generation's names."""

from __future__ import annotations

from . import GENERATION, tvm


def kernel_config(target: tvm.target.Target, is_checked: bool = True) -> dict[str, bool]:
    """PassContext options to lower a kernel with. `is_checked`: what calls it has looked at the
    shapes and dtypes of the arguments.
    """
    prefix = "tir" if GENERATION == "relay" else "tirx"
    # LLVM and C compilers find common expressions themselves, and better: without TVM's pass
    # GoogLeNet builds in 13 s, not 22, and runs 4% faster (0.17); 0.27 builds 10% faster.
    config = {f"{prefix}.disable_cse_tir": True}
    if GENERATION == "relay" and is_checked:
        # Relay's AOT executor hands external functions a DLTensor with ndim 0 (LegalizePackedCalls,
        # 0.17): the argument checks in the kernel would fail there. The Relay VM hands them
        # whatever it was called with: there they are all that checks.
        config["tir.disable_assert"] = True
    if str(target.kind) == "c":
        config[f"{prefix}.disable_vectorize"] = (
            True  # the C backends print float16, float3, ... which no C has
        )
    return config


def run_once_config() -> dict[str, bool]:
    """PassContext options for a kernel that runs once: what costs least to lower."""
    prefix = "tir" if GENERATION == "relay" else "tirx"
    return {f"{prefix}.disable_cse_tir": True, f"{prefix}.disable_assert": True}
