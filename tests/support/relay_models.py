"""What the tests of Relay share: a model, run by the graph executor, and how close it must be."""

import numpy as np
from tvm import relay
from tvm.contrib import graph_executor

from selfbyoc.tvm import tvm


def relay_model():
    """conv-bias-relu twice, flatten, dense-relu, and a dense whose value is used twice."""
    x = relay.var("x", shape=(2, 3, 9, 11))
    y = x
    for i, channels in enumerate((5, 7)):
        w, b = relay.var(f"w{i}"), relay.var(f"b{i}")
        y = relay.nn.conv2d(y, w, padding=(1, 1), channels=channels, kernel_size=(3, 3))
        y = relay.nn.relu(relay.nn.bias_add(y, b))
    y = relay.nn.relu(relay.nn.dense(relay.nn.batch_flatten(y), relay.var("w2"), units=17))
    d = relay.nn.dense(y, relay.var("w3"), units=13)
    y = relay.add(relay.nn.relu(d), relay.tanh(d))
    return tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(y), y))


def run_graph(lib, x, **more):
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    for name, value in {"x": x, **more}.items():
        module.set_input(name, value)
    module.run()
    return module.get_output(0).numpy()


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


class _Typed(relay.ExprMutator):
    def visit_call(self, call):
        done = super().visit_call(call)
        name = getattr(call.op, "name", "")
        if name != "fixed_point_multiply" or call.args[0].checked_type.dtype != "int8":
            return done
        wide = relay.cast(done.args[0], "int32")
        factor = call.attrs.multiplier, call.attrs.shift
        return relay.cast(relay.fixed_point_multiply(wide, *factor), "int8")


def typed_fixed_points(mod):
    """The module, its fixed points of int8 as their type says: TVM computes int32 for them, and
    builds none (docs/makers/tvm-notes.md).
    """
    mod = relay.transform.InferType()(mod)
    return tvm.IRModule.from_expr(_Typed().visit(mod["main"]))
