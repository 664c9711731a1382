"""A pass that targets one op kind: it vectorises the pools of stride 2, wherever TVM fused them.

No composite takes part. Relax: two passes stand in for TVM's LegalizeOps and FuseTIR and keep the
ops' attributes on the fused functions. Relay: `lower` does so for its primitive functions.
"""

import numpy as np
import tvm

from selfbyoc import emit, op, op_info
from selfbyoc.codegen.target import host_target
from selfbyoc.tvm import GENERATION, Schedule, empty, get_block, get_func, tensor
from selfbyoc.tvm.build import build_module

SHAPES = {"x": (1, 8, 14, 14), "w": (16, 8, 3, 3)}


def network(x, w):
    """Three kernels, of which one holds a pool of stride 2."""
    y = op.relu(op.conv2d(x, w, padding=1))
    y = op.tanh(op.max_pool2d(y, pool_size=2, strides=2))
    return op.max_pool2d(y, pool_size=3, strides=1, padding=1)


def fused_functions(mod):
    """The model's PrimFuncs after TVM's own fusion, with op info."""
    if GENERATION == "relax":
        from tvm import relax

        from selfbyoc.transform import AttachOpInfo, FuseTIR

        passes = [AttachOpInfo(), relax.transform.FuseOps(), FuseTIR()]
        mod = tvm.transform.Sequential(passes)(mod)
        return {v.name_hint: f for v, f in mod.functions.items() if v.name_hint != "main"}
    from tvm import relay

    from selfbyoc.transform import lower

    found = []
    relay.analysis.post_order_visit(
        relay.transform.FuseOps(2)(mod)["main"],
        lambda e: found.append(e) if isinstance(e, relay.Function) else None,
    )
    return {f"kernel{i}": lower(f, "llvm") for i, f in enumerate(found[:-1])}


@tvm.transform.module_pass(opt_level=0)
class VectorizePools:
    """Vectorise what follows a max_pool2d of stride 2, and leave other functions alone."""

    def transform_module(self, mod, _):
        """The pass."""
        for var, func in list(mod.functions.items()):
            pools = [info for info in op_info(func) if info.kind == "max_pool2d"]
            if any(pool.attrs["strides"] == (2, 2) for pool in pools):
                mod.update_func(var, self.vectorized(func))
        return mod

    def vectorized(self, func):
        """Only the blocks of ops on elements: op info knows which blocks are whose."""
        sch = Schedule(func)
        for info in op_info(func):
            for name in info.blocks if info.pattern == "elemwise" else ():
                sch.vectorize(sch.get_loops(get_block(sch, name))[-1])
        return sch.mod["main"]


def main():
    """Run the pass and say what became of each function."""
    before = fused_functions(emit(network, {n: (s, "float32") for n, s in SHAPES.items()}))
    named = {n: f.with_attr("global_symbol", n) for n, f in before.items()}
    after = VectorizePools()(tvm.IRModule(named))
    for name, func in sorted(named.items(), key=lambda item: kinds(item[1])):
        changed = "T.vectorized" in after[name].script()
        print(f"{kinds(func)}: {'vectorised' if changed else 'as it was'}")
        if changed:
            pool = op_info(after[name])[0]
            print("  still known:", pool.kind, pool.attrs["strides"], pool.inputs[0].layout)
            print("  agrees with NumPy:", agrees(after[name], name))


def kinds(func):
    """What a function is made of."""
    return " + ".join(info.kind for info in op_info(func))


def agrees(func, name):
    """tanh of the largest of each 2 x 2."""
    x = np.random.default_rng(0).standard_normal((1, 16, 14, 14)).astype("float32")
    out = empty((1, 16, 7, 7), "float32")
    get_func(build_module(tvm.IRModule({name: func}), host_target()), name)(tensor(x), out)
    wanted = np.tanh(x.reshape(1, 16, 7, 2, 7, 2).max((3, 5)))
    return np.allclose(out.numpy(), wanted, 1e-5, 1e-5)


if __name__ == "__main__":
    main()
