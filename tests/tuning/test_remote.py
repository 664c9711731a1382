"""Tuning on other machines: TVM's tracker and two servers on loopback, which come and go."""

import signal
import socket
import struct
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rpc_farm import HOST, KEY, farm, free_port

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.codegen.records.record import CHOSEN, MEASURED, Record, append, read
from selfbyoc.errors import InputError, TargetError, TuningError
from selfbyoc.ir.emit import emit
from selfbyoc.language.decisions import choose
from selfbyoc.machine import host
from selfbyoc.runtime.timing import Window
from selfbyoc.tuning import contest, engine, remote, remote_lane
from selfbyoc.tuning.build import compiled
from selfbyoc.tuning.measure import SEEDS, Job, Kernel, save_arguments
from selfbyoc.tuning.process import Failed
from selfbyoc.tuning.tasks import extract_tasks
from selfbyoc.tuning.tracker import Tracker
from selfbyoc.tvm import GENERATION, make_target, target_dict, te, tir, tvm

pytest.importorskip("tornado", reason="TVM's tracker needs tornado")
pytest.importorskip("cloudpickle", reason="TVM's server needs cloudpickle")

TVMS = "tvm.exec.rpc_server"
ARGS = {"x": ((30, 7), "float32"), "w": ((12, 7), "float32")}
CHUNKS = (1, 2, 3, 5, 6, 10, 15)


def program(x, w):
    return op.relu(op.dense(x, w))


def rows(sch, ops, target):
    """Rows in chunks: seven candidates; of 7 in a row there is a tail."""
    loop, *_ = sch.get_loops(ops.relu.block)
    chunk = choose("chunk", CHUNKS, default=5)
    if chunk > 1:
        sch.split(loop, [None, chunk])


VALUES = {
    "relu.ll": lambda x: te.max(x, tir.const(0.0, "float32")),
    "same.ll": lambda x: tir.const(0.0, "float32") + te.max(x, tir.const(0.0, "float32")),
    "wrong.ll": lambda x: te.max(x, tir.const(0.125, "float32")),
    "crash.ll": lambda x: x + tir.call_pure_extern("float32", "abort"),
}


def elementwise(shape, value):
    a = te.placeholder(shape, name="a")
    return [a, te.compute(shape, lambda *at: value(a(*at)), name="z")]


class InProcess:
    """Builds without processes: they take seconds to start, and are not what is tested here."""

    def __init__(self, count):
        self.count = count

    def start(self):
        pass

    def __call__(self, jobs):
        return [compiled(*job) or "" for job in jobs]

    def end(self):
        pass


def target(**options):
    return {"kind": "llvm", "mcpu": host.cpu(), "num-cores": 1, **options}


def partitioned(asked):
    composite = Composite("dense_relu", program, schedule=rows)
    return selfbyoc.partition_for_tefuse(emit(program, ARGS), target=asked, composites=[composite])


def tune(tracker, folder, asked=None, **options):
    mod = partitioned(asked or target())
    return selfbyoc.tune(mod, asked, 16, folder, tracker=tracker, cost_model="none", **options)


def statuses(folder):
    return [record.status for record in read(folder)]


# ---- a tracker as a value


def test_parse():
    assert Tracker.parse("board.local:9190", "rasp4") == Tracker("board.local", 9190, "rasp4")
    assert str(Tracker("::1", 9190, "rasp4")) == "tracker ::1:9190 (key rasp4)"


@pytest.mark.parametrize("address", ["", "host", "host:", ":9190", "host:no", "host:0", "h:70000"])
def test_an_address_that_is_none(address):
    with pytest.raises(InputError, match="tracker: expected HOST:PORT, found"):
        Tracker.parse(address, "key")


@pytest.mark.parametrize("key", ["", "two words", "a:b"])
def test_a_key_that_the_protocol_cannot_carry(key):
    with pytest.raises(InputError, match="tracker: expected a key without spaces and colons"):
        Tracker.parse("host:9190", key)


def test_nobody_listens(tmp_path):
    port = free_port()
    with pytest.raises(TuningError, match=rf"tracker {HOST}:{port} .* cannot be .* refused"):
        tune(Tracker(HOST, port, KEY), tmp_path)
    assert read(tmp_path) == []


def test_what_listens_is_no_tracker():
    """Something that answers four other bytes."""
    with socket.create_server((HOST, 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.sendall(struct.pack("<i", 17))

        thread = threading.Thread(target=answer)
        thread.start()
        tracker = Tracker(HOST, server.getsockname()[1], KEY)
        with pytest.raises(TuningError, match="what listens there is no RPC tracker"):
            tracker.check()
        thread.join()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("llvm", "target: expected num-cores, the cores of the machines of tracker"),
        ("c", "target: kernels for c are not measured by tracker"),
    ],
)
def test_a_target_that_is_no_machine(tmp_path, given, text):
    with pytest.raises(TargetError, match=text):
        tune(Tracker(HOST, free_port(), KEY), tmp_path, given)


# ---- servers


@pytest.fixture(scope="module")
def loopback(tmp_path_factory):
    """`one` runs our server, `two` that of TVM."""
    with farm(tmp_path_factory.mktemp("farm")) as made:
        made.start_servers("one", two=TVMS)
        yield made


def test_a_key_without_servers(loopback):
    with pytest.raises(TuningError, match=rf"knows no server .* \['{KEY}'\]; did you mean '{KEY}'"):
        Tracker(HOST, loopback.port, f"{KEY}s").check()
    assert len(loopback.tracker.check()) == 2
    assert replace(loopback.tracker, key="other").request(0.2) is None  # none of these two


def test_stopped(loopback):
    servers = remote_lane.Servers(loopback.tracker, 1, stopped=True)
    with pytest.raises(TuningError, match="stopped"):
        servers.next()


def test_servers_come_and_go(loopback, tmp_path, monkeypatch):
    """One is killed: what ran there is measured on the other one. Then that one: the run ends, and
    the same call goes on later. All is on record then, once, and nothing as failed.
    """
    monkeypatch.setattr(remote_lane, "GONE", 1.0)
    monkeypatch.setattr(remote_lane, "ASK", 0.5)
    monkeypatch.setattr(engine, "Builders", InProcess)
    monkeypatch.setattr(contest, "TIMED", 0.05)

    def progress(now):
        if now.trials_done == 2 and "one" in loopback.processes:
            loopback.kill("one")
        if now.trials_done == 5 and "two" in loopback.processes:
            loopback.kill("two")

    with pytest.raises(TuningError, match=rf"{HOST}:{loopback.port} .* all servers are lost"):
        tune(loopback.tracker, tmp_path, progress=progress)
    before = (tmp_path / "records.jsonl").read_bytes()
    assert statuses(tmp_path) == [MEASURED] * 5
    loopback.start_servers("one")
    [outcome] = tune(loopback.tracker, tmp_path).outcomes
    assert (outcome.trials, outcome.failed, outcome.wrong) == (len(CHUNKS), 0, 0)
    assert (tmp_path / "records.jsonl").read_bytes().startswith(before)
    assert statuses(tmp_path) == [MEASURED] * len(CHUNKS) + [CHOSEN]
    found = read(tmp_path)
    assert sorted(r.decisions.get("chunk", 5) for r in found[:-1]) == sorted(CHUNKS)
    assert {(r.place.generation, r.place.cores) for r in found} == {(GENERATION, 1)}
    assert {r.made_by["key"] for r in found} == {KEY}


# ---- one lane


@pytest.fixture(scope="module")
def lane(loopback):
    if "two" not in loopback.processes:
        loopback.start_servers(two=TVMS)
    made = remote_lane.RemoteLane(remote_lane.Servers(loopback.tracker, 1))
    yield made
    made.end()


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """(names) -> a job of these kernels: `relu` is the default one."""
    folder = tmp_path_factory.mktemp("kernels")
    x = np.random.default_rng(0).standard_normal((7, 9)).astype("float32")
    save_arguments(folder / "x.npz", [[x]] * len(SEEDS))
    for name, value in VALUES.items():
        func = te.create_prim_func(elementwise(x.shape, value))
        compiled(func, target_dict(make_target(target())), folder / name)

    def made(*names, seconds=0.05):
        kernels = tuple(Kernel(str(folder / name), str(folder / "x.npz")) for name in names)
        return Job(kernels, (((7, 9), "float32"),), 1, seconds)

    return made


def test_right_and_wrong(lane, job):
    found = lane.measured(job("relu.ll", "same.ll"), 20)
    assert found.wrong == ""
    assert all(0 < seconds < 0.05 for seconds in found.seconds)
    assert lane.measured(job("relu.ll", "wrong.ll"), 20).wrong.startswith("output 0: ")


def test_weights_from_memory(lane, job):
    """TVM empties the caches before each call; copies of weights are not sent."""
    found = lane.measured(replace(job("relu.ll", "same.ll"), copies=3), 20)
    assert all(0 < seconds < 0.05 for seconds in found.seconds)


class Module:
    """Notes how it is timed: a call takes 0.1 ms."""

    def __init__(self):
        self.options = []

    def time_evaluator(self, symbol, device, **options):
        self.options.append(options)
        return lambda *tensors: SimpleNamespace(results=[1e-4] * options["repeat"])


@pytest.mark.parametrize("from_memory", [False, True])
def test_how_calls_are_timed(from_memory):
    made = remote.Remote.__new__(remote.Remote)
    made.from_memory, made._device = from_memory, None
    kernel = remote.RemoteKernel(made, Module(), "kernel")
    assert kernel.window([[]]) == Window(pytest.approx(0.02), 200, 0)
    cold = {"number": 1, "repeat": 200, "f_preproc": "cache_flush_cpu_non_first_arg"}
    assert kernel.module.options[-1] == (cold if from_memory else {"number": 200, "repeat": 1})


def test_a_server_with_other_cores(loopback, lane, job):
    other = replace(lane.servers, cores=3)
    lane.servers, before = other, lane.servers
    with pytest.raises(TuningError, match="start the server with TVM_NUM_THREADS=3"):
        lane.measured(job("relu.ll"), 20)
    lane.servers = before


def test_too_slow(lane, job):
    with pytest.raises(Failed, match="it did not end within 1 s"):
        lane.measured(job("relu.ll", "same.ll", seconds=30), 1)


@pytest.mark.parametrize(
    ("limit", "alive", "expected"),
    [
        (0.0, False, remote.Reply(failed="it did not end within 0 s")),
        (60.0, False, remote.Reply(lost="RuntimeError: Unknown event 40", at_risk=True)),
        (60.0, True, remote.Reply(failed="RuntimeError: Unknown event 40")),
    ],
)
def test_an_error_once_the_time_is_over(monkeypatch, job, limit, alive, expected):
    """The server's process and its parent write at once, and what is read is no error of TVM's."""

    def garbled(*_):
        raise RuntimeError("Unknown event 40")

    session = SimpleNamespace(is_running=True, is_alive=lambda: alive)
    monkeypatch.setattr(remote, "Remote", lambda *_, **__: session)
    monkeypatch.setattr(remote, "measured", garbled)
    assert remote.measured_there(None, 1, limit, job("relu.ll")) == expected


def test_a_server_that_says_nothing_more(loopback, lane, job, monkeypatch):
    """A machine that hangs closes no connection: after its time, another one is asked."""
    monkeypatch.setattr(remote_lane, "SILENT", 0.5)
    loopback.wait_until_free(2)  # the tracker gives out a busy one after our three calls
    loopback.signal("one", signal.SIGSTOP)
    try:
        found = [lane.measured(job("relu.ll", "same.ll"), 2) for _ in range(3)]
    finally:
        loopback.signal("one", signal.SIGCONT)
    assert all(len(measured.seconds) == 2 for measured in found)
    assert len(lane.servers.silent) == 1


def test_a_candidate_that_crashes(loopback, lane, job):
    """It fails when it has taken down two. TVM 0.27's own server serves no more after that, ours
    goes on.
    """
    with pytest.raises(Failed, match=r"the servers \S+ and \S+ went while it ran there"):
        lane.measured(job("relu.ll", "crash.ll"), 20)
    assert lane.measured(job("relu.ll", "same.ll"), 20).wrong == ""
    assert len(loopback.tracker.check()) == (1 if GENERATION == "relax" else 2)


def test_a_client_that_ends_with_its_server(loopback, lane, job, monkeypatch):
    """Seen with TVM 0.17: it aborts instead of telling that the server went."""

    def aborts(*_, **__):
        raise Failed("its process ended by SIGABRT", ended=True)

    monkeypatch.setattr(lane._process, "call", aborts)
    with pytest.raises(Failed, match=r"the servers \S+ and \S+ went while it ran there"):
        lane.measured(job("relu.ll", "same.ll"), 20)


# ---- other machines


AARCH64 = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72", "num-cores": 4}


def test_a_kernel_for_a_board(tmp_path):
    """What is sent to a board is code for it; nothing has to be compiled there."""
    [task], [here] = (extract_tasks(partitioned(asked)) for asked in (AARCH64, target()))
    assert task.key == here.key
    assert task.place != here.place  # by which records are kept apart
    assert task.place.cores == 4
    assert task.place.target["mtriple"] == "aarch64-linux-gnu"
    compiled(task.variant().func, target_dict(task.target), tmp_path / "kernel.ll")
    module = tvm.runtime.load_module(str(tmp_path / "kernel.ll"))
    write = module.save if GENERATION == "relay" else module.write_to_file
    write(str(tmp_path / "kernel.o"))
    machine = int.from_bytes((tmp_path / "kernel.o").read_bytes()[18:20], "little")
    assert machine == 183  # EM_AARCH64 of ELF


def test_one_folder_serves_one_key(loopback, tmp_path):
    """Records say their target, not their machine: what one key measured serves no other one."""
    [task] = extract_tasks(partitioned(target()))
    kept = {"workload": task.key, "place": task.place, "composite": "dense_relu", "about": "a"}
    append(tmp_path, Record(**kept, status=MEASURED, made_by={"key": "other"}))
    with pytest.raises(
        TuningError, match="were measured through the key other; use another folder"
    ):
        tune(loopback.tracker, tmp_path)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], ""),
        (["--host=127.0.0.1"], ""),
        (["--host", "0.0.0.0"], "WARNING"),
        (["--host=::"], "W"),
    ],
)
@pytest.mark.parametrize("start", ["serve", "track"])
def test_it_is_on_loopback_or_says_what_it_means(start, args, said, monkeypatch, capsys):
    from selfbyoc.tvm import rpc as rpc_of_tvm

    found = []
    monkeypatch.setattr(rpc_of_tvm.rpc, "Server", rpc_of_tvm.rpc.Server)  # put back after it
    monkeypatch.setattr(rpc_of_tvm.runpy, "run_module", lambda *_, **__: found.extend(sys.argv[1:]))
    monkeypatch.setattr(sys, "argv", ["server", *args])
    getattr(rpc_of_tvm, start)()
    assert found == (args or ["--host=127.0.0.1"])
    assert capsys.readouterr().err.startswith(said)
    assert bool(said) == ("127.0.0.1" not in " ".join(found))
