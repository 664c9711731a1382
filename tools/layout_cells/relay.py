"""Relay's passes that move layouts, as relay.build and users run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
from tvm import relay
from tvm.contrib.graph_executor import GraphModule

_POOLS = ("max_pool2d", "avg_pool2d", "global_avg_pool2d", "global_max_pool2d")
_NHWC = {
    "nn.conv2d": ["NHWC", "default"],
    "qnn.conv2d": ["NHWC", "default"],
    "nn.conv2d_transpose": ["NHWC", "default"],
    **{f"nn.{name}": ["NHWC"] for name in _POOLS},
}


def _altered(cpu: str, *before: Any) -> Callable[[Any], Any]:
    """AlterOpLayout for a CPU: of SSE in blocks of 4 channels, of AVX-512 in blocks of 16."""
    # Batch norms have no blocked layout: TVM's own pass raises where they are still there.
    first = [relay.transform.InferType(), relay.transform.SimplifyInference(), *before]
    passes = [*first, relay.transform.AlterOpLayout()]

    def run(mod: Any) -> Any:
        with tvm.target.Target(cpu), tvm.transform.PassContext(opt_level=4):
            return relay.transform.InferType()(tvm.transform.Sequential(passes)(mod))

    return run


def _converted(layouts: dict[str, list[str]], *before: Any) -> Callable[[Any], Any]:
    passes = [relay.transform.InferType(), *before, relay.transform.ConvertLayout(layouts)]

    def run(mod: Any) -> Any:
        with tvm.transform.PassContext(opt_level=3):
            return relay.transform.InferType()(tvm.transform.Sequential(passes)(mod))

    return run


def _blocks(size: int) -> dict[str, list[str]]:
    weight = f"OIHW{size}i{size}o"
    return {"nn.conv2d": [f"NCHW{size}c", weight], "nn.max_pool2d": [f"NCHW{size}c"]}


_BEFORE = relay.transform.SimplifyInference()
PASSES: dict[str, Callable[[Any], Any]] = {
    "AlterOpLayout, SSE": _altered("llvm -mcpu=nehalem"),
    "CanonicalizeOps, AlterOpLayout, AVX-512": _altered(
        "llvm -mcpu=skylake-avx512", relay.transform.CanonicalizeOps()
    ),
    "ConvertLayout to NHWC": _converted(_NHWC),
    "ConvertLayout to NCHW8c": _converted(_blocks(8), _BEFORE),
    "ConvertLayout to NCHW16c": _converted(_blocks(16), _BEFORE),
}


def alone(mod: Any, args: list[Any]) -> list[Any]:
    """What TVM computes of a module by itself."""
    with tvm.transform.PassContext(opt_level=0):
        module = GraphModule(relay.build(mod, target="llvm")["default"](tvm.cpu()))
    for index, arg in enumerate(args):
        module.set_input(index, arg)
    module.run()
    return [module.get_output(n).numpy() for n in range(module.get_num_outputs())]


ALONE = alone
