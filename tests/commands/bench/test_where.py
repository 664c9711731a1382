"""`bench MODEL.onnx --where`: steps placed on a model's nodes, groups, limits, and the whole."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx_models import FLOAT, dense, model, random, saved, value

import selfbyoc.commands.bench.run as running
from selfbyoc.__main__ import main
from selfbyoc.commands.bench.contenders import CONTENDERS
from selfbyoc.commands.bench.records import OURS, Result
from selfbyoc.commands.bench.roof import Roof
from selfbyoc.commands.bench.where import peers
from selfbyoc.commands.bench.where.limits import kernels_of, limit_of
from selfbyoc.commands.bench.where.model import Model, Node, Values, named, read, values_of
from selfbyoc.commands.bench.where.placing import grouped, placed
from selfbyoc.commands.bench.where.records import Network, Profile, Step, read_places
from selfbyoc.commands.bench.where.sums import OF_LEVELS, alike, sums_of
from selfbyoc.commands.bench.where.tables import counted, sheets, what
from selfbyoc.commands.bench.where.timing import fastest
from selfbyoc.errors import InputError

ROOF = Roof(1, 100.0, {"L2": 50.0, "memory": 10.0}, 2.0, {"L2": 1000}, 200.0)


# ---- values


def test_layouts_and_padding_change_no_sums():
    """As blocked channels have them."""
    x, others = random(1, 24, 5, 7), {"y": sums_of(random(1, 24, 5, 8)), "z": sums_of(-random(9))}
    blocked = np.zeros((2, 5, 7, 16), "float32")
    blocked.reshape(2, 5, 7, 16)[0] = x[0, :16].transpose(1, 2, 0)
    blocked[1, :, :, :8] = x[0, 16:].transpose(1, 2, 0)
    known = {"x": sums_of(x), "row": sums_of(x.ravel())} | others
    assert alike(sums_of(blocked), known) == ["x", "row"]
    assert alike(sums_of(x * 1.00001), known) == ["x", "row"]
    assert alike(sums_of(x * 1.1), known) == []
    assert alike(sums_of(x * np.nan), known) == []
    assert alike(sums_of(np.zeros(3)), {"none": sums_of(np.zeros(2))} | known) == ["none"]
    assert alike(sums_of(x[:, :1]), {"x": known["x"]}, tolerance=9.0) == []  # too few elements


def test_levels_may_differ_by_a_step():
    x = np.random.default_rng(0).integers(0, 200, (1, 24, 5, 7)).astype("uint8")
    known = {"x": sums_of(x), "floats": sums_of(x.astype("float32"))}
    other = x + (np.arange(x.size).reshape(x.shape) % 100 == 0).astype("uint8")
    assert alike(sums_of(other), known, OF_LEVELS) == ["x"]
    assert alike(sums_of(x + np.uint8(10)), known, OF_LEVELS) == []


# ---- nodes


def chain():
    """Two convolutions, a ReLU and a transpose, beside shapes that are computed."""
    nodes = [
        ("Conv", ["x", "w"], "a", {"name": "first"}),
        ("Relu", ["a"], "b", {}),
        ("Shape", ["x"], "shape", {}),
        ("Reshape", ["b", "shape"], "c", {}),
        ("Conv", ["c", "v"], "d", {}),
        ("Transpose", ["d"], "e", {"perm": [0, 2, 3, 1]}),
        ("Add", ["e", "e"], "f", {}),
    ]
    ends = [value("x", FLOAT, 1, 4, 6, 6)], [value("f", FLOAT, 1, 6, 6, 4)]
    return model(nodes, *ends, w=random(4, 4, 1, 1), v=2 * random(4, 4, 1, 1))


@pytest.fixture
def known(tmp_path):
    """The chain read, with its values."""
    pytest.importorskip("onnxruntime")
    path = saved(tmp_path / "m.onnx", named(chain()))
    values = values_of(str(path), {"x": random(1, 4, 6, 6)})
    return read(chain(), values), values


def step(name, *values, reads=(), nodes=(), ms=1.0, of=None):
    return Step(name, "op", ms, nodes, tuple(of.sums[v] for v in values), reads)


def test_a_model_is_read(known):
    """What depends on no input's values is no node of it; only products count."""
    found, _ = known
    assert [(n.name, n.label, n.op) for n in found.nodes] == [
        ("n0", "first", "Conv"), ("n1", "b", "Relu"), ("n3", "c", "Reshape"), ("n4", "d", "Conv"),
        ("n5", "e", "Transpose"), ("n6", "f", "Add"),
    ]  # fmt: skip
    assert [n.flops for n in found.nodes] == [2 * 4 * 4 * 36, 0, 0, 2 * 4 * 4 * 36, 0, 0]
    assert found.nodes[-1].shape == (1, 6, 6, 4)


def test_steps_have_the_nodes_between_their_values(known):
    found, values = known
    steps = [step("one", "b", of=values), step("two", "f", of=values)]
    assert placed(found, steps) == [("n0", "n1", "n3"), ("n4", "n5", "n6")]
    # Both sides of a transpose hold the same: the first that writes it computes, the second moves.
    steps = [step(n, v, of=values) for n, v in (("a", "b"), ("b", "d"), ("c", "d"), ("d", "f"))]
    assert placed(found, steps)[1:] == [("n4",), ("n5",), ("n6",)]
    # A runtime that tells its nodes is believed; each node has one step.
    told = [step("one", nodes=("n0", "n1", "what", ""), of=values), step("x", nodes=("n1", "n4"))]
    assert placed(found, told) == [("n0", "n1"), ("n4",)]


def test_groups_are_the_smallest_that_all_agree_on(known):
    found, values = known
    ours = [step("one", "a", of=values), step("two", "f", of=values, ms=4.0)]
    peer = [
        step("reorder", ms=0.5),  # no value of the model: it goes with who reads it
        step("conv", nodes=("n0",), reads=(0,)),
        step("relu", nodes=("n1", "n3"), reads=(1,)),
        step("rest", nodes=("n4", "n5", "n6"), reads=(2,)),
        step("back", reads=(3,), ms=0.25),  # whom nobody reads, with whom it reads
    ]
    groups, numbers = grouped(found, {OURS: Profile(tuple(ours), 1), "p": Profile(tuple(peer), 1)})
    assert numbers == [0, 1]
    assert [g.milliseconds for g in groups] == [{OURS: 1, "p": 1.5}, {OURS: 4, "p": 2.25}]
    assert [g.steps["p"] for g in groups] == [("reorder", "conv"), ("relu", "rest", "back")]
    assert groups[0].nodes == ("first",)
    assert groups[1].ops == ("Relu", "Reshape", "Conv", "Transpose", "Add")
    assert [(g.best, g.loss) for g in groups] == [("p", -0.5), ("p", 1.75)]
    alone, _ = grouped(found, {OURS: Profile(tuple(ours), 1)})
    assert [(g.best, g.loss) for g in alone] == [("", 1.0), ("", 4.0)]


def test_only_known_values_are_placed():
    """A model whose values nobody could tell."""
    found = read(chain(), Values({}, {}))
    assert placed(found, [Step("k", "op", 1.0, values=(sums_of(random(3)),))]) == [()]
    assert {node.flops for node in found.nodes} == {0}


# ---- times and limits


def test_the_fastest_quarter_of_each_column():
    assert fastest([[1.0, 9.0], [5.0, 2.0], [4.0, 3.0], [6.0, 4.0]]) == [1.0, 2.0]
    assert fastest([[1.0], [2.0], [3.0], [4.0], [9.0]]) == [1.5]


def test_limits_of_a_kernel():
    given = Step("k", "conv2d", 1.0, moved=800)
    assert limit_of(given, 10**6, 0, ROOF) == ("FMA", pytest.approx(0.01))
    assert limit_of(replace(given, levels=True), 10**6, 0, ROOF)[1] == pytest.approx(0.005)
    assert limit_of(given, 0, 0, ROOF) == ("launch", 0.002)
    wide = replace(given, moved=500_000)
    assert limit_of(wide, 0, 0, ROOF) == ("memory", pytest.approx(0.05))
    # What others of the model push out of the cache comes from behind it.
    heavy = replace(given, moved=100, weights=100_000)
    assert limit_of(heavy, 0, 100_000, ROOF) == ("memory", pytest.approx(0.010002))
    light = replace(given, moved=100, weights=800)
    assert limit_of(light, 0, 800, replace(ROOF, launch=1e-9))[0] == "L2"


def test_of_a_table_the_rows_count():
    """A kernel's nodes are told here by their names."""
    rows = Node("n0", "words", "Gather", ("t", "ids"), ("y",), (128, 384))
    found = Model((rows,), {})
    picked = Step("take", "TVM", 1.0, ("n0",), weights=10**9, moved=1000)
    kernel, *_ = kernels_of(found, Profile((picked,), 1), [0], ROOF)
    assert (kernel.bytes, kernel.limit, kernel.shape) == (2000, "launch", (128, 384))
    assert kernel.share == pytest.approx(0.002)


def test_events_of_onnx_runtime():
    """The first call loads; a node within a loop runs several times."""

    def node(name, ts, dur):
        return {"cat": "Node", "name": f"{name}_kernel_time", "ts": ts, "dur": dur,
                "args": {"op_name": "Conv"}}  # fmt: skip

    calls = [{"cat": "Session", "name": "model_run", "ts": n} for n in (0, 100, 200)]
    events = [node("a", 1, 99), node("a", 101, 1), node("a", 102, 2), node("b", 103, 5)]
    rows, kinds = peers._runs([*calls, *events, node("a", 203, 7)])
    assert kinds == {"a": "Conv", "b": "Conv"}
    assert rows == [pytest.approx([0.003, 0.005]), pytest.approx([0.007, 0.0])]


# ---- the whole


def block():
    """A residual block, its average and a dense layer: nothing is a multiple of 16."""
    pads = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        ("Conv", ["x", "w"], "a", pads | {"name": "conv a, of the block"}),
        ("Relu", ["a"], "b", {}),
        ("Conv", ["b", "v"], "c", pads),
        ("Add", ["c", "x"], "d", {}),
        ("HardSwish", ["d"], "e", {}),
        ("GlobalAveragePool", ["e"], "f", {}),
        ("Flatten", ["f"], "g", {}),
        ("Gemm", ["g", "u"], "y", {}),
    ]
    ends = [value("x", FLOAT, 1, 20, 19, 19)], [value("y", FLOAT, 1, 30)]
    return model(nodes, *ends, w=random(20, 20, 3, 3), v=random(20, 20, 3, 3), u=random(20, 30))


def test_a_model_is_taken_apart(tmp_path, monkeypatch, capsys):
    """Each node has its kernel, rows add up to the whole, and whoever tells takes part."""
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(running, "_roofs", lambda setting, method: (ROOF,))
    path, told = saved(tmp_path / "m.onnx", block()), tmp_path / "m.json"
    assert main(["bench", str(path), "--where", "--quick", "--json", str(told)]) == 0
    (network,) = read_places(told).networks
    there = {c.name for c in CONTENDERS if c.missing() is None}
    assert set(network.profiled) == {OURS, "onnxruntime", "openvino"} & there
    labels = [label for kernel in network.kernels for label in kernel.nodes]
    assert sorted(labels) == sorted(["conv a, of the block", *"bcdefgy"])
    assert {kernel.composite for kernel in network.kernels} != {"TVM"}
    assert sum(kernel.flops for kernel in network.kernels) == 2 * 20 * (2 * 180 * 361 + 30)
    whole = network.calls[OURS].milliseconds
    steps = sum(kernel.milliseconds for kernel in network.kernels)
    assert steps + network.rest(OURS) == pytest.approx(whole)
    for group in network.groups:
        assert OURS in group.milliseconds
        assert "onnxruntime" in group.milliseconds
    capsys.readouterr()
    assert main(["bench", "--markdown", str(told)]) == 0
    assert "| whole call |" in capsys.readouterr().out


def test_what_does_not_go_with_it(tmp_path, capsys):
    path = str(saved(tmp_path / "m.onnx", dense()))
    for given, said in (
        ([], "--where takes a MODEL.onnx apart"),
        ([path, "--resume"], "--resume: not beside --where"),
        ([path, "--builds", "2"], "--builds: not beside --where"),
        ([path, "--only", "x"], "--only: of the suite"),
    ):
        assert main(["bench", *given, "--where"]) == 1
        assert said in capsys.readouterr().err
    library = tmp_path / "m.so"
    library.write_bytes(b"")
    assert main(["bench", str(library), "--where"]) == 1
    assert "--where: of ONNX models" in capsys.readouterr().err


def test_peers_are_those_that_tell(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(running, "_roofs", lambda setting, method: (ROOF,))
    path = str(saved(tmp_path / "m.onnx", dense()))
    assert main(["bench", path, "--where", "--peers", "torch"]) == 1
    assert "found 'torch'; expected some of onnxruntime, openvino" in capsys.readouterr().err


def test_reports_are_checked(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"where": True, "facts": 1}))
    with pytest.raises(InputError, match="is no report of `bench --where`: facts"):
        read_places(path)


def test_texts():
    assert counted(["Conv", "Relu", "Conv"]) == "Conv x2, Relu"
    assert what(("mul", "conv"), ("Mul", "Conv")) == "conv: Mul, Conv"
    assert what((), ()) == "no node of the model"
    empty = Network("m", {OURS: Result(1.0)}, {OURS: 0.25}, (), ())
    kernels, losses = sheets(empty)
    assert [row[:1] + row[3:5] for row in kernels.rows] == [
        ["rest of the call", "0.750", "75%"], ["whole call", "1.000", "100%"],
    ]  # fmt: skip
    assert losses.rows == []
