"""The benchmark: workloads are right and their composites used, numbers are kept; nothing times."""

import io
import json
import math
import os
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

pytest.importorskip("onnx")

import onnx

import selfbyoc.commands.bench.run as running
from selfbyoc.__main__ import main
from selfbyoc.commands.bench import blocks, networks
from selfbyoc.commands.bench.contenders import CONTENDERS
from selfbyoc.commands.bench.contenders.contender import Contender
from selfbyoc.commands.bench.inputs import inputs_of
from selfbyoc.commands.bench.limits import limit
from selfbyoc.commands.bench.means import compared, geometric_mean, worst
from selfbyoc.commands.bench.measure import Method, measure, timed
from selfbyoc.commands.bench.network import Network
from selfbyoc.commands.bench.others import Watch, busy_ticks, own_ticks
from selfbyoc.commands.bench.performance import markdown, text_between
from selfbyoc.commands.bench.process import Failed, Process
from selfbyoc.commands.bench.quantised import LEVELS
from selfbyoc.commands.bench.records import (
    OURS,
    Report,
    Result,
    Row,
    from_json,
    read_report,
    write_report,
)
from selfbyoc.commands.bench.reference import reference
from selfbyoc.commands.bench.roof import Measurement, Roof
from selfbyoc.commands.bench.roofline import roofline
from selfbyoc.commands.bench.run import Selection
from selfbyoc.commands.bench.setting import make_setting
from selfbyoc.commands.bench.suite import MODELS, NAMED, SWEEP, suite
from selfbyoc.commands.bench.tables import group_table, row_line, summary_lines
from selfbyoc.commands.bench.workload import Workload, work_of
from selfbyoc.errors import InputError
from selfbyoc.runtime.timing import Window, window
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION

BY_NAME = {c.name: c for c in CONTENDERS}
ROOF = Roof(2, 500.0, {"L2": 400.0, "memory": 50.0}, 2.0, {"L2": 1 << 20})


def network(build, *shape):
    net = Network()
    return net.model(build(net, net.input("x", *shape)))


def attention():
    net = Network()
    return net.model(net.attention(*(net.input(name, 3, 20, 16) for name in "qkv")))


# family -> (model, a composite that must be used)
SMALL = {
    "conv chain": (
        lambda: network(lambda n, x: blocks.conv_chain(n, x, 9, 7, stride=2), 1, 5, 13, 11),
        "conv2d_relu_conv2d_relu",
    ),
    "inverted residual": (
        lambda: network(lambda n, x: blocks.inverted_residual(n, x, 18, 6), 1, 6, 9, 11),
        "inverted_residual",
    ),
    "depthwise-conv1": (
        lambda: network(lambda n, x: blocks.separable(n, x, 10, 2), 2, 6, 9, 11),
        "depthwise_pointwise",
    ),
    "conv3-conv1": (
        lambda: network(lambda n, x: blocks.then_pointwise(n, x, 10, 6), 1, 6, 9, 11),
        "conv2d_relu_conv2d_relu",
    ),
    "inception": (
        lambda: network(lambda n, x: blocks.inception(n, x, 5, (4, 6), (2, 3), 3), 1, 7, 9, 11),
        "inception",
    ),
    "fire": (lambda: network(lambda n, x: blocks.fire(n, x, 4, 6), 1, 7, 9, 11), "parallel_conv2d"),
    "basic block": (
        lambda: network(lambda n, x: blocks.basic_residual(n, x, 9, 2), 1, 6, 9, 11),
        "conv2d_add",
    ),
    "bottleneck": (
        lambda: network(lambda n, x: blocks.bottleneck(n, x, 5, 8), 1, 8, 9, 11),
        "conv2d_add",
    ),
    "attention": (attention, "attention"),
    "mlp": (
        lambda: network(lambda n, x: n.dense(n.dense(x, 40, act="gelu"), 12), 9, 12),
        "dense_gelu_dense",
    ),
    "layer_norm-dense": (
        lambda: network(lambda n, x: n.dense(n.layer_norm(x), 20), 9, 12),
        "layer_norm_dense",
    ),
    "bert layer": (
        lambda: network(lambda n, x: blocks.bert_layer(n, x, 2, 24), 1, 9, 12),
        "dense_gelu_dense",
    ),
}


def built(contender, model, folder):
    path = folder / "model.onnx"
    onnx.save(model, path)
    found = BY_NAME[contender].build(str(path), inputs_of(model), make_setting(1))
    found.run()
    return found


def assert_right(found, model):
    terms = work_of(model).terms
    for array, wanted in zip(found.outputs(), reference(model, inputs_of(model)), strict=True):
        assert first_wrong(array, wanted, "float32", terms) is None


@pytest.mark.parametrize("family", SMALL)
def test_ours_is_right_and_uses_the_composite(family, tmp_path):
    make, composite = SMALL[family]
    model = make()
    found = built(OURS, model, tmp_path)
    assert composite in found.note.replace(",", "").split()
    assert_right(found, model)


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "torch"])
def test_peers_compute_the_same(name, tmp_path):
    if BY_NAME[name].missing():
        pytest.skip(BY_NAME[name].missing())
    for family in ("inverted residual", "inception", "bert layer"):
        model = SMALL[family][0]()
        assert_right(built(name, model, tmp_path), model)


@pytest.mark.parametrize("name", ["stacked", "tvm"])
def test_builds_to_compare_with_are_right(name, tmp_path):
    model = SMALL["conv chain"][0]()
    found = built(name, model, tmp_path)
    assert_right(found, model)
    assert ("conv2d_relu_conv2d_relu" in found.note) == (name == "stacked")


@pytest.mark.parametrize("light", ["squeezenet", "inception_v1"])
def test_pytorch_takes_the_light_models(light):
    torch = pytest.importorskip("torch")
    ort = pytest.importorskip("onnxruntime")
    from selfbyoc.commands.bench.contenders.torch_graph import graph_module

    model = networks.light(light)()
    (name, image), *_ = inputs_of(model).items()
    with torch.inference_mode():
        (found,) = graph_module(model)(torch.from_numpy(image))
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(found.numpy(), session.run(None, {name: image})[0], atol=1e-5)


def test_pytorch_takes_what_its_own_exporter_writes(tmp_path):
    """Opset 18 and later: axes and sizes are inputs, activations ops of their own."""
    torch = pytest.importorskip("torch")
    ort = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    from selfbyoc.commands.bench.contenders.torch_graph import graph_module

    text = """
        <ir_version: 9, opset_import: ["" : 20]>
        g (float[2, 5, 6, 3] x) => (float[2, 1, 2] a, float[2, 6, 3] b)
        <int64[2] sizes = {2, 3}, int64[2] pixels = {2, 3}, int64[1] one = {1},
         int64[2] ends = {0, 4}, int64 second = {1}>
        {
            first, other = Split<axis = 1>(x, sizes)
            low, high = Split<axis = 2, num_outputs = 2>(first)
            whole = Concat<axis = 2>(low, high)
            swish = HardSwish(whole)
            gate = HardSigmoid<alpha = 0.16666667>(swish)
            mean = ReduceMean<keepdims = 0>(gate, pixels)
            a = Unsqueeze(mean, one)
            soft = Gelu(other)
            tanh = Gelu<approximate = "tanh">(soft)
            s = Sigmoid(tanh)
            wide = Unsqueeze(s, ends)
            flat = Squeeze(wide, ends)
            b = Gather<axis = 1>(flat, second)
        }
    """
    model = onnx.parser.parse_model(text)
    x = np.random.default_rng(0).standard_normal((2, 5, 6, 3)).astype("float32")
    with torch.inference_mode():
        found = graph_module(model)(torch.from_numpy(x))
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for array, expected in zip(found, session.run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(array.numpy(), expected, atol=1e-6)


def test_gelu_is_one_call_in_pytorch():
    torch = pytest.importorskip("torch")
    from selfbyoc.commands.bench.contenders.torch_graph import graph_module

    graph = graph_module(SMALL["mlp"][0]()).graph
    called = [n.target.__name__ for n in graph.nodes if n.op == "call_function"]
    assert called == ["linear", "gelu", "linear"]
    assert torch.erf not in [n.target for n in graph.nodes]


def test_the_suite_is_what_it_says():
    names = [w.name for w in suite()]
    assert len(set(names)) == len(names)
    groups = [w.group for w in suite()]
    assert groups.count(NAMED) == 7
    assert groups.count(SWEEP) >= 40
    assert groups.count(MODELS) == 6


def test_every_workload_can_be_made():
    """The wheel's own models are made elsewhere; MiniLM's table of words takes seconds."""
    for workload in suite():
        if workload.group not in (MODELS, LEVELS):
            model = workload.model()
            assert inputs_of(model)
            assert len(model.graph.output) == 1


def test_weights_are_seeded_and_differ():
    first, again = (SMALL["fire"][0]().SerializeToString() for _ in range(2))
    assert first == again
    for tensor in SMALL["fire"][0]().graph.initializer:
        assert onnx.numpy_helper.to_array(tensor).std() > 0


def test_work_is_counted_once():
    model = network(lambda n, x: n.conv(x, 4, 3, bias=False), 1, 3, 8, 8)
    work = work_of(model)
    assert work.flops == 2 * 4 * 8 * 8 * 27
    assert work.bytes == 4 * (3 * 64 + 4 * 27 + 4 * 64)
    assert work.intensity == work.flops / work.bytes


def test_safetensors_are_read(tmp_path):
    array = np.arange(6, dtype="float32").reshape(2, 3)
    header = b'{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"__metadata__":{}}'
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + array.tobytes())
    np.testing.assert_array_equal(networks.read_safetensors(path)["a"], array)
    with pytest.raises(InputError, match="cannot be read"):
        networks.read_safetensors(tmp_path / "none")


def test_weights_of_minilm_come_from_a_file(tmp_path):
    """`--minilm`: what the file has is in the model, PyTorch's matrices turned."""
    rng, shapes = np.random.default_rng(8), {
        "embeddings.position_embeddings.weight": (512, 384),
        "embeddings.token_type_embeddings.weight": (2, 384),
        "encoder.layer.0.intermediate.dense.weight": (1536, 384),
    }  # fmt: skip
    given = {n: rng.standard_normal(s, np.float32) for n, s in shapes.items()}
    header, at = {}, 0
    for name, array in given.items():
        header[name] = {
            "dtype": "F32", "shape": list(array.shape), "data_offsets": [at, at + array.nbytes],
        }  # fmt: skip
        at += array.nbytes
    text, path = json.dumps(header).encode(), tmp_path / "minilm.safetensors"
    data = b"".join(a.tobytes() for a in given.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    workload, *_ = Selection(["minilm-l6"], minilm=path).workloads()
    found = {t.name: onnx.numpy_helper.to_array(t) for t in workload.model().graph.initializer}
    places, kinds, matrix = given.values()
    np.testing.assert_array_equal(found["places"], places[:128] + kinds[0])
    np.testing.assert_array_equal(found["encoder.layer.0.intermediate.dense.weight"], matrix.T)
    assert found["encoder.layer.1.intermediate.dense.weight"].shape == (384, 1536)
    with pytest.raises(InputError, match="cannot be read"):
        Selection(["minilm-l6"], minilm=tmp_path / "no").workloads()[0].model()


# ---- statistics, with a clock that does as it is told


class Clock:
    def __init__(self, step):
        self.now, self.step, self.calls = 0.0, step, 0

    def __call__(self):
        return self.now

    def run(self):
        self.now += self.step
        self.calls += 1


def test_a_window_counts_calls():
    clock = Clock(0.004)
    found = window(clock.run, 0.01, warm=0.01, clock=clock)
    assert (found.calls, clock.calls) == (3, 6)
    assert found.seconds == pytest.approx(0.012)


def test_a_slow_call_is_a_window_by_itself():
    clock = Clock(3.0)
    assert window(clock.run, 0.01, clock=clock).calls == 1
    assert clock.calls == 1


def test_the_faster_half_counts():
    windows = [Window(0.010 * f, 10, 0) for f in (1, 2, 1, 9, 1, 8, 1)]
    found = timed(Result(), windows)
    assert found.milliseconds == pytest.approx(1.0)
    assert found.median == pytest.approx(1.0)
    assert (found.windows, found.steady) == (7, True)
    assert not timed(Result(), [Window(w, 1, 0) for w in (1, 1, 2, 2, 2)]).steady


def row(name="a", group=NAMED, ours=1.0, **peers):
    times = {OURS: ours, **peers}
    results = {n: Result(ms, ms, ms, 9, 1e-6, 1e-7) for n, ms in times.items()}
    return Row(name, group, 10**8, 10**6, results)


def report(*rows):
    method = {"windows": 30, "turns": 3, "seconds": 0.02, "builds": 1}
    return Report({"CPU": "x"}, {"TVM": "0"}, GENERATION, 2, method, (ROOF,), rows)


def test_the_best_peer_is_the_fastest_right_one():
    found = row(ours=2.0, onnxruntime=3.0, openvino=1.0, tvm=0.5, stacked=0.1)
    assert (found.best_peer, found.ratio) == ("openvino", 0.5)
    found.results["openvino"] = replace(found.results["openvino"], wrong=True)
    assert (found.best_peer, found.ratio) == ("onnxruntime", 1.5)
    found.results["onnxruntime"] = Result(skipped="not installed")
    assert (found.best_peer, found.ratio) == (None, None)


def test_tvms_own_build_stands_in_where_no_peer_took_part():
    found = row(ours=2.0, openvino=1.0, tvm=3.0, stacked=0.1)
    found.results["openvino"] = Result(skipped="not installed")
    assert (found.best_peer, found.ratio) == ("tvm", 1.5)
    assert compared([found]) == "TVM default / ours"
    assert "| TVM default / ours |" in markdown(report(found))
    assert compared([found, row(torch=1.0)]) == "best peer / ours"
    assert (row(stacked=3.0).best_peer, compared([row(stacked=3.0)])) == (None, "best peer / ours")


def test_means_and_the_worst():
    rows = [row(str(n), SWEEP, 1.0, torch=float(n)) for n in range(1, 9)]
    assert [r.name for r in worst(rows)] == ["1", "2", "3", "4", "5"]
    assert geometric_mean([2, 8]) == pytest.approx(4)
    assert math.isnan(geometric_mean([]))


def test_limits_by_the_roofs():
    assert limit(row(ours=0.4), report()) == "FMA 50%"
    small = replace(row(ours=0.004), flops=10, bytes=10)
    assert limit(small, report()) == "launch 50%"
    large = replace(row(ours=1.0), flops=10, bytes=25 * 10**6)
    assert limit(large, report()) == "memory 50%"


def test_json_comes_back(tmp_path):
    whole = report(row(torch=2.0)).with_row(row("b", inductor=3.0))
    whole.rows[1].results["openvino"] = Result(skipped="openvino not installed")
    path = tmp_path / "new" / "a.json"
    write_report(path, whole)
    again = read_report(path)
    assert again.to_json() == whole.to_json()
    assert again.rows[1].results["openvino"].skipped
    assert math.isnan(again.rows[1].results["openvino"].milliseconds)
    assert len(again.with_row(row("b")).rows) == 2
    with pytest.raises(InputError, match="no report of the benchmark"):
        from_json("{}")


def test_views():
    rows = (row("won", torch=2.0), row("lost", SWEEP, 3.0, openvino=2.0), row("alone", MODELS))
    rows[2].results["torch"] = Result(skipped="torch not installed")
    found = report(*rows)
    text = markdown(found)
    won = "| won | 100 | 1.000 | 20% | 2.000 | 10% | torch | 2.00 | **2.000** | FMA 20% | 1e-07 "
    assert f"{won}| 1e-07 |" in text
    assert "| alone | 100 | 1.000 | 20% | - | - | - | - | FMA 20% | 1e-07 | - |" in text
    assert "Lost: lost (0.67, openvino)." in text
    assert "- lost: 0.67 (3.000 ms, openvino 2.000 ms)" in text
    assert "No peer took part." in text
    lines = summary_lines(found)
    assert "worst of the sweep: lost 0.67 (openvino)" in lines
    assert "torch: torch not installed" in lines
    console = Console(width=160, record=True, file=io.StringIO())
    for group in (NAMED, SWEEP, MODELS):
        console.print(group_table(found, group))
    assert "0.67" in console.export_text()
    assert row_line(rows[1]).style == "red"
    svg = roofline(found)
    assert svg.count("<circle") == 5
    assert "2 threads: 500 GFLOP/s" in svg
    assert "nothing was measured" in roofline(report())


def test_a_document_between_markers():
    text = "a\n<!-- t -->\nold\n<!-- end t -->\nb\n"
    assert text_between(text, "t", "new") == "a\n<!-- t -->\n\nnew\n<!-- end t -->\nb\n"


def test_others_are_seen(tmp_path):
    """Two cores for one second, of which we had half and somebody else a quarter."""
    cores, me = sorted(os.sched_getaffinity(0)), os.getpid()

    def write(busy, own):
        lines = [f"cpu{core} {busy} 0 0 999 0 0 0 0 0 0" for core in cores]
        (tmp_path / "stat").write_text("\n".join(["cpu 1 2 3", *lines]))
        (tmp_path / str(me)).mkdir(exist_ok=True)
        (tmp_path / str(me) / "stat").write_text(f"{me} (a b) c) {' 0' * 11} {own} 0 0")

    write(100, 10)
    before = busy_ticks(cores, tmp_path), own_ticks([me, 10**9], tmp_path)
    write(175, 10 + 50 * len(cores))
    after = busy_ticks(cores, tmp_path), own_ticks([me], tmp_path)
    assert after[0] - before[0] == 75 * len(cores)
    assert after[1] - before[1] == 50 * len(cores)
    assert busy_ticks(cores, tmp_path / "none") is None
    assert math.isnan(Watch([], tmp_path / "none").share())
    found = replace(row(), others=0.25)
    assert found.disturbed
    assert "a: others took 25% of the cores: measure it again" in summary_lines(report(found))
    assert "somebody else computed too: a." in markdown(report(found))


# ---- processes


def test_selection():
    assert len(Selection().workloads()) == 7
    found = Selection(only=["GoogleNet", "attention 12x5"]).workloads()
    assert [w.name for w in found] == ["attention 12x512x64", "GoogLeNet", "GoogLeNet int8"]
    with pytest.raises(InputError, match="no workload's name begins with 'x'"):
        Selection(only=["x"]).workloads()
    assert "inductor" not in Selection().names(SWEEP)
    assert "inductor" in Selection().names(NAMED)
    assert Selection(contenders=["torch"]).names(SWEEP) == [OURS, "torch"]
    assert len(Selection(contenders=["all"]).names(SWEEP)) == len(CONTENDERS)
    with pytest.raises(InputError, match="unknown"):
        Selection(contenders=["onnx"]).names(SWEEP)


def test_what_is_not_installed_is_skipped():
    absent = Contender("x", lambda *args: None, needs=("no_such_package",))
    assert absent.missing() == "no_such_package not installed"
    assert BY_NAME[OURS].missing() is None


def test_a_process_answers_fails_and_dies(tmp_path):
    process = Process(OURS, 1)
    try:
        with pytest.raises(Failed, match="Error"):
            process.ask("built", str(tmp_path / "none.onnx"), {}, make_setting(1))
        pid = process._child.pid
        process._child.kill()
        with pytest.raises(Failed, match="died with status -9"):
            process.ask("dropped")
        assert process.ask("dropped") is None
        assert process._child.pid != pid
        with pytest.raises(Failed, match="took more than 0 s"):
            process.ask("prepared", make_setting(1), limit=0)
    finally:
        process.close()


def test_measure_a_small_workload():
    """Times are not looked at; the outputs, which come through the pipe, are."""
    workload = Workload("small", NAMED, SMALL["conv chain"][0])
    process = Process(OURS, 1)
    method = Method(turns=2, windows=2, window=0.001, warm=0.001)
    try:
        found = measure(workload, {OURS: process}, make_setting(1), method)
    finally:
        process.close()
    assert found.ours.counts
    assert found.ours.windows == 4
    assert found.ours.relative < 1e-5
    assert found.ours.note == "1 conv2d_relu_conv2d_relu"


def test_a_run_goes_on_where_it_was_killed(tmp_path, monkeypatch):
    """The second run measures only what the first one has not written."""
    asked = []

    def fake(workload, processes, setting, method, says):
        asked.append(workload.name)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return row(workload.name)

    monkeypatch.setattr(running, "measure", fake)
    monkeypatch.setattr(running, "_roofs", lambda setting, method: (ROOF,))
    path, chosen = tmp_path / "a.json", Selection(only=["attention 12x128x", "attention 12x512"])
    with pytest.raises(KeyboardInterrupt):
        running.run(chosen, Method(), path)
    found = running.run(chosen, Method(), path, resume=True)
    assert [r.name for r in found.rows] == [w.name for w in chosen.workloads()]
    assert len(asked) == len(found.rows) + 1
    with pytest.raises(InputError, match="--resume needs --json"):
        running.run(chosen, Method(), None, resume=True)


def test_the_machine_is_measured():
    """Every rate is a positive number; which, nobody can say."""
    found = Measurement(make_setting(1)).roof()
    assert found.gflops > 0
    assert found.launch > 0
    assert all(rate > 0 for rate in found.bandwidth.values())
    assert "memory" in found.bandwidth


def test_command(capsys, tmp_path):
    assert main(["bench", "--list"]) == 0
    assert "GoogLeNet" in capsys.readouterr().out
    path = tmp_path / "a.json"
    write_report(path, report(row(torch=2.0)))
    assert main(["bench", "--markdown", str(path)]) == 0
    assert "best peer / ours" in capsys.readouterr().out
    assert main(["bench", "--only", "nothing"]) == 1
    assert "begins with 'nothing'" in capsys.readouterr().err
