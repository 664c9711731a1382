"""Edges of op info: which output of which op each input reads, also parameters and numbers."""

import json

import pytest
from layouts import module, stacked

import selfbyoc
from selfbyoc import Composite, OpInfo, Source, emit, op, op_info, partition_for_tefuse
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen.info.op_info import recorded_of
from selfbyoc.codegen.info.op_record import OP_INFO, info_from
from selfbyoc.errors import OpInfoError
from selfbyoc.tvm import Schedule, get_block

SHAPES = {"x": (2, 6, 5, 4), "w": (6, 6, 1, 1)}


def program(x, w):
    a, b = op.split(op.conv2d(x, w), indices_or_sections=2, axis=1)[0], op.relu(x)
    return op.multiply(op.add(a, a), 0.5), b


def edges(func):
    return {info.name: info.sources for info in op_info(func)}


def test_outputs_parameters_and_numbers():
    func = stacked(program, **SHAPES).func
    split = Source("op", 0, "split")
    assert edges(func) == {
        "conv2d": (Source("param", 0), Source("param", 1)),
        "split": (Source("op", 0, "conv2d"),),
        "add": (split, split),
        "multiply": (Source("op", 0, "add"), Source("constant", value=0.5)),
        "relu": (Source("param", 0),),
    }
    assert recorded_of(func).results == (Source("op", 0, "multiply"), Source("op", 0, "relu"))


def test_another_output_than_the_first():
    func = stacked(
        lambda x: op.relu(op.split(op.tanh(x), indices_or_sections=3, axis=1)[2]), x=(2, 6)
    ).func
    assert edges(func)["relu"] == (Source("op", 2, "split"),)
    assert repr(edges(func)["relu"]) == "(split[2],)"


def test_they_are_printed_and_plain():
    infos = op_info(stacked(program, **SHAPES).func)
    said = {info.name: info.to_dict()["sources"] for info in infos}
    assert said["conv2d"] == [{"param": 0}, {"param": 1}]
    assert said["add"] == [{"op": "split", "output": 0}] * 2
    assert said["multiply"] == [{"op": "add", "output": 0}, {"constant": 0.5}]
    assert [repr(s) for info in infos for s in info.sources][:3] == ["param 0", "param 1", "conv2d"]
    for info in infos:
        assert info_from(json.loads(json.dumps(info.to_dict()))).sources == info.sources


def test_what_was_inlined_keeps_them():
    held = module(stacked(lambda x, w: op.tanh(op.relu(op.conv2d(x, w))), **SHAPES).func)
    sch = Schedule(held)
    before = edges(sch)
    sch.compute_inline(get_block(sch, "relu"))
    assert edges(sch) == before
    assert [info.within for info in op_info(sch)] == ["", "tanh", ""]


def test_ops_that_joined_a_kernel():
    """Before an argument, after the result, and in a composite's own compute."""

    def network(x, w, b, r):
        y = op.bias_add(op.conv2d(op.relu(op.add(x, 1.0)), w, padding=1), b)
        return op.multiply(op.sigmoid(op.add(y, r)), 2.0)

    shapes = {"x": (1, 8, 6, 5), "w": (8, 8, 3, 3), "b": (8,), "r": (1, 8, 6, 5)}
    (kernel,) = kernels(partition_for_tefuse(emit(network, shapes)))
    for func in (kernel.schedule(selfbyoc.host_target())[0].func,
                 kernel.schedule(selfbyoc.host_target())[1].mod["main"]):  # fmt: skip
        found = {name: tuple(map(repr, sources)) for name, sources in edges(func).items()}
        assert found["relu"] == ("add",)
        assert found["conv2d"][0] == "relu"
        assert found["bias_add"][0] == "conv2d"
        assert found["add_1"][0] == "bias_add"
        assert found["sigmoid"] == ("add_1",)
        assert found["multiply"] == ("sigmoid", "2.0")


def test_an_argument_that_an_op_reads_twice():
    func = stacked(lambda x: op.multiply(x, x), x=(3, 4)).func
    assert edges(func)["multiply"] == (Source("param", 0), Source("param", 0))


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d["ops"][1]["sources"].append(None),
        lambda d: d["ops"][1].update(sources=[{"op": "no_op", "output": 0}]),
        lambda d: d["ops"][1].update(sources=[{"op": "conv2d", "output": 1}]),
        lambda d: d["ops"][0].update(sources=[{"param": 9}, {"param": 1}]),
        lambda d: d["ops"][0].update(sources=[{"buffer": 0}, {"param": 1}]),
        lambda d: d.update(results=[{"op": "gone", "output": 0}]),
        lambda d: d.update(results=[7]),
    ],
)
def test_damaged_edges(damage):
    func = stacked(program, **SHAPES).func
    data = json.loads(str(func.attrs[OP_INFO]))
    damage(data)
    with pytest.raises(OpInfoError, match=r"the attribute tefuse\.op_info is damaged"):
        op_info(func.with_attr(OP_INFO, json.dumps(data)))


def test_ops_in_a_circle():
    """No function computes so."""
    func = stacked(lambda x: op.tanh(op.relu(x)), x=(3, 4)).func
    data = json.loads(str(func.attrs[OP_INFO]))
    data["ops"][0]["sources"] = [{"op": "tanh", "output": 0}]
    with pytest.raises(OpInfoError, match=r"op info: (relu|tanh) reads what is computed of it"):
        selfbyoc.raise_ops(func.with_attr(OP_INFO, json.dumps(data)))


def test_of_a_user_who_makes_op_info_himself():
    """Fields that are new have a default."""
    assert OpInfo("relu", "relu", {}, (), ()).sources == ()
    assert Composite("mine", lambda x: op.relu(x)).name == "mine"
