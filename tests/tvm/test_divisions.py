"""Integers divided by zero, and the least one by -1: a value, where x86 ends the process."""

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest

from selfbyoc.ops.elementwise import quotient
from selfbyoc.tvm import GENERATION, te, tir
from selfbyoc.tvm.divisions import without_traps

DTYPES = ("int8", "int64", "uint8")
OPS = {"Div": ("Div", {}), "Mod": ("Mod", {}), "fmod": ("Mod", {"fmod": 1})}


def operands(dtype):
    least = np.iinfo(dtype).min
    b = [0, 0, 3, -3, -1, 0, 1] if least else [0, 0, 3, 2, 1, 0, 1]
    return np.array([7, 0, 7, 7, least, least, 5], dtype), np.array(b, dtype)


def every_op():
    """A quotient and two remainders of each dtype, in one model."""
    make, nodes, given, made = onnx.helper.make_node, [], [], []
    for dtype in DTYPES:
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        names = [f"{dtype}_{side}" for side in "ab"]
        given += [onnx.helper.make_tensor_value_info(name, kind, [7]) for name in names]
        for name, (op, attrs) in OPS.items():
            nodes.append(make(op, names, [f"{dtype}_{name}"], **attrs))
            made.append(onnx.helper.make_tensor_value_info(f"{dtype}_{name}", kind, [7]))
    opset = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "g", given, made), opset_imports=opset, ir_version=9
    )


def of_sizes():
    """n / (m - 1) of the lengths of two inputs: a number, and how long a result is."""
    make, value, kind = onnx.helper.make_node, onnx.helper.make_tensor_value_info, 7
    nodes = [
        make("Shape", ["x"], ["n"]),
        make("Shape", ["y"], ["m"]),
        make("Sub", ["m", "one"], ["less"]),
        make("Div", ["n", "less"], ["number"]),
        make("ConstantOfShape", ["number"], ["zeros"]),
    ]
    given, made = [value("x", 1, ["n"]), value("y", 1, ["m"])], [value("number", kind, [1])]
    one = onnx.numpy_helper.from_array(np.ones(1, "int64"), "one")
    graph = onnx.helper.make_graph(nodes, "g", given, [*made, value("zeros", 1, ["k"])], [one])
    return onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9
    )


# A kernel of its own; the same of constants, which partitioning computes, and by one zero.
PROGRAM = """
import json, sys, warnings
import numpy as np
import onnx
import selfbyoc
from selfbyoc import Composite, emit, op

sys.path.insert(0, {folder!r})
from selfbyoc.tvm import GENERATION
from test_divisions import DTYPES, every_op, of_sizes, operands

warnings.simplefilter("ignore")
a, b = operands("int32")
zero = np.zeros((), "int32")
mine = Composite("mine", lambda a, b: op.divide(a, b))
TYPES = {{"a": ((7,), "int32"), "b": ((7,), "int32")}}

def found(program, types, constants, args, composites):
    mod = emit(program, types, constants)
    library = selfbyoc.build(mod, composites=composites, cache=False)
    assert library.report.counts == {{c.name: 1 for c in composites}}, library.report
    return [y.tolist() for y in library(**args)]

def constants(x, a, b, zero):
    return op.add(op.divide(x, zero), op.divide(a, b)), op.divide(a, x)

done = {{"kernel": found(mine.pattern, TYPES, {{}}, {{"a": a, "b": b}}, [mine])}}
types = {{"x": ((7,), "int32"), **TYPES, "zero": ((), "int32")}}
held = {{"a": a, "b": b, "zero": zero}}
done["constants"] = found(constants, types, held, {{"x": b}}, [])
given = {{f"{{d}}_{{side}}": x for d in DTYPES for side, x in zip("ab", operands(d))}}
outputs = selfbyoc.build(selfbyoc.from_onnx(every_op()), cache=False)(**given)
done |= {{value.name: y.tolist() for value, y in zip(every_op().graph.output, outputs)}}
if GENERATION == "relax":
    library = selfbyoc.build(selfbyoc.from_onnx(of_sizes()), cache=False)
    x = np.zeros(6, "float32")
    done["sizes"] = [[y.tolist() for y in library(x, x[:m])] for m in (3, 1)]
print(json.dumps(done))
"""


@pytest.fixture(scope="module")
def found():
    """What a process of its own computes, if it lives."""
    program = PROGRAM.format(folder=__file__.rpartition("/")[0])
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, (run.returncode, run.stderr[-2000:])
    return json.loads(run.stdout.splitlines()[-1])


def expected(name, dtype):
    a, b = operands(dtype)
    with np.errstate(divide="ignore", over="ignore"):
        return {"Div": quotient, "Mod": np.mod, "fmod": np.fmod}[name](a, b).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_every_op_and_dtype(found, name, dtype):
    assert found[f"{dtype}_{name}"] == expected(name, dtype)


def test_in_a_kernel_and_of_constants(found):
    wanted = expected("Div", "int32")
    assert found["kernel"] == [wanted]
    assert found["constants"] == [wanted, wanted]


def test_quotients_in_numpy():
    """Rounded towards zero, in the integers themselves."""
    a, b = np.array([7, -7, 7, -7, 2**53 + 1, 5]), np.array([2, 2, -2, -2, 1, 0])
    assert quotient(a, b).tolist() == [3, -3, -3, 3, 2**53 + 1, 0]


def primitive(divided, dtype="int32"):
    x = te.placeholder((8,), dtype, name="x")
    y = te.placeholder((8,), dtype, name="y")
    return te.create_prim_func([x, y, te.compute((8,), lambda i: divided(x(i), y(i), i))])


@pytest.mark.parametrize(
    "divided",
    [
        lambda x, y, i: tir.floordiv(x, 3) + tir.truncmod(y, -2),
        lambda x, y, i: tir.truncdiv(x, (tir.Min(i + 2, 5) - i).astype("int32")) + y,
        lambda x, y, i: (x + y).astype("float32") / y.astype("float32"),
    ],
    ids=["by constants", "by how many pixels there are", "floats"],
)
def test_what_cannot_divide_by_zero_stays(divided):
    func = primitive(divided)
    assert without_traps(func).same_as(func)


@pytest.mark.parametrize("divide", [tir.truncdiv, tir.truncmod, tir.floordiv, tir.floormod])
def test_what_may_is_another(divide):
    func = primitive(lambda x, y, i: divide(x, y))
    assert not without_traps(func).same_as(func)


@pytest.mark.skipif(GENERATION == "relay", reason="open sizes are Relax's")
def test_of_sizes(found):
    assert found["sizes"] == [[[3], [0.0] * 3], [[0], []]]


def test_by_a_size():
    """What is added is the size's: it leaves the loop."""
    size = tir.Var("n", "int32")
    func = primitive(lambda x, y, i: tir.floordiv(x, size) + y)
    assert not without_traps(func).same_as(func)
