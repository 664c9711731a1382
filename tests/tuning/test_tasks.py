"""Tuning tasks: which there are, under which keys, how often each counts, and that nothing is
compiled to find them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from vocabulary import MISSING
from vocabulary import model as model_of_op

import selfbyoc
from selfbyoc import Composite, emit, extract_tasks, op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.codegen import progress
from selfbyoc.codegen.records.workload import with_tuned, workload_key
from selfbyoc.codegen.tuning_record import Tuned
from selfbyoc.errors import InputError, TargetError
from selfbyoc.ops.vocabulary import KINDS, written
from selfbyoc.tvm import GENERATION, make_target, structural_hash, tvm

ROOT = Path(__file__).parents[2]
RFC = {"x": (1, 3, 224, 224), "w1": (32, 3, 3, 3), "w2": (32, 32, 3, 3)}  # C2


def rfc(x, w1, w2):
    y = op.relu(op.conv2d(x, w1, padding=(1, 1)))
    return op.relu(op.conv2d(y, w2, padding=(1, 1)))


def norm_dense(x, g, b, w):
    return op.dense(op.layer_norm(x, g, b), w)


def attention(q, k, v):
    return op.batch_matmul(op.softmax(op.batch_matmul(q, k, transpose_b=True)), v)


def inception(x, a, b, c):
    wide = op.relu(op.conv2d(op.relu(op.conv2d(x, b)), c, padding=1))
    pool = op.max_pool2d(x, pool_size=3, strides=1, padding=1)
    return op.concatenate([op.relu(op.conv2d(x, a)), wide, pool], axis=1)


PROGRAMS = {
    "rfc": (rfc, RFC),
    "norm_dense": (norm_dense, {"x": (7, 33), "g": (33,), "b": (33,), "w": (9, 33)}),
    "attention": (attention, {"q": (2, 7, 8), "k": (2, 9, 8), "v": (2, 9, 5)}),
    "inception": (
        inception, {"x": (1, 8, 9, 11), "a": (4, 8, 1, 1), "b": (6, 8, 1, 1), "c": (5, 6, 3, 3)},
    ),
}  # fmt: skip


def partitioned(program, args, composites=None, **options):
    composites = [Composite("one", program)] if composites is None else composites
    rng, constants = np.random.default_rng(0), options.pop("constants", ())
    arrays = {n: rng.standard_normal(args[n]).astype("float32") for n in constants}
    mod = emit(program, args, arrays)
    return selfbyoc.partition_for_tefuse(mod, composites=composites, **options)


def dense_relu(x, w):
    return op.relu(op.dense(x, w))


def rest(x, w):
    return op.transpose(op.tanh(op.dense(x, w)), axes=(1, 0))


DENSE_RELU = Composite("dense_relu", dense_relu)
MOVES = Composite("transpose", lambda x: op.transpose(x, axes=(1, 0)))
TANH = Composite("tanh", lambda x: op.tanh(x))
DENSE = Composite("dense", lambda x, w: op.dense(x, w))


# C1, C4, C5: several heavy ops, which TVM's extraction splits, are one task


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_subgraph_is_one_task(name):
    program, args = PROGRAMS[name]
    (task,) = extract_tasks(partitioned(program, args))
    assert len(task.ops) == {"rfc": 4, "norm_dense": 2, "attention": 3, "inception": 8}[name]
    assert (task.weight, task.composite.name, task.has_space) == (1, "one", False)
    heavy = {"conv2d", "dense", "batch_matmul", "layer_norm", "softmax"}
    assert sum(kind in heavy for kind in task.ops) > 1


def test_the_whole_compute_is_searched():
    """One PrimFunc holds all ops, and every one of them may leave something open (C5)."""

    def schedule(sch, ops, target):
        for info in (ops.relu, ops.relu_1):
            *_, column = sch.get_loops(info.block)
            sch.split(column, [None, selfbyoc.choose(f"{info.name} columns", (1, 2, 4), 2)])

    args = {"x": (1, 3, 8, 12), "w1": (4, 3, 3, 3), "w2": (5, 4, 3, 3)}
    (task,) = extract_tasks(partitioned(rfc, args, [Composite("chain", rfc, schedule)]))
    assert task.has_space
    assert list(task.variant().choices) == ["relu columns", "relu_1 columns"]
    codes = {
        task.variant(Tuned({"relu columns": a, "relu_1 columns": b})).code
        for a in (1, 2, 4)
        for b in (1, 2, 4)
    }
    assert len(codes) == 9
    assert [info.kind for info in selfbyoc.op_info(task.variant().func)] == list(task.ops)


@pytest.mark.skipif(GENERATION == "relax", reason="Relax has no function of one anchor op")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(("name", "whole", "parts"), [("rfc", 1, 2), ("inception", 0, 4)])
def test_what_tvms_own_extraction_finds(name, whole, parts):
    """Beside ours: it splits what it is not told to keep; of an inception block that it is told to
    keep it finds nothing (an error in a thread of its own); what it keeps it does not build (C3).
    """
    from tvm import auto_scheduler, relay

    program, args = PROGRAMS[name]
    main = emit(program, args)["main"]
    params = [relay.Var(p.name_hint, p.checked_type) for p in main.params]
    kept = relay.Function(params, relay.Call(main.with_attr("Primitive", 1), params))
    counts = [len(auto_scheduler.extract_tasks(f, {}, "llvm")[0]) for f in (kept, main)]
    assert counts == [whole, parts]
    mod = tvm.IRModule.from_expr(kept)
    with pytest.raises(tvm.TVMError, match="primitive function with two complicated ops"):
        relay.build(mod, "llvm")
    ours = selfbyoc.partition_for_tefuse(mod, composites=[Composite("one", program)])
    assert [task.weight for task in extract_tasks(ours)] == [1]


# C8, C9, C10, C12, C14, C25: which tasks


def moves_and_sums():
    shapes = {"x": (5, 33), "w": (7, 33)}
    return partitioned(rest, shapes, [MOVES, TANH, DENSE])


def names(tasks):
    return [task.composite.name for task in tasks]


def test_simple_tasks_are_left_out_unless_asked_for():
    mod = moves_and_sums()
    assert names(extract_tasks(mod)) == ["dense"]  # C8, C25
    found = extract_tasks(mod, include_simple_tasks=True)  # C9, C14: all, for the tuner to judge
    assert sorted(names(found)) == ["dense", "tanh", "transpose"]
    assert {t.composite.name: t.is_simple for t in found} == {
        "dense": False, "tanh": True, "transpose": True,
    }  # fmt: skip


def test_min_ops():  # C10, C12
    both = Composite("both", lambda x: op.transpose(op.tanh(x), axes=(1, 0)))
    mod = partitioned(rest, {"x": (5, 33), "w": (7, 33)}, [both, DENSE])
    assert sorted(names(extract_tasks(mod, include_simple_tasks=True))) == ["both", "dense"]
    assert names(extract_tasks(mod, min_ops=2, include_simple_tasks=True)) == ["both"]
    assert names(extract_tasks(mod, min_ops=2)) == []
    assert names(extract_tasks(mod, min_ops=1)) == ["dense"]
    assert extract_tasks(mod, min_ops=3, include_simple_tasks=True) == []


NOT_SIMPLE = {
    "avg_pool2d", "batch_matmul", "batch_norm", "conv1d_transpose", "conv2d", "conv2d_transpose",
    "dense", "embedding", "fake_quantize_groups", "global_avg_pool2d", "gru", "layer_norm", "lrn",
    "lstm", "max", "max_pool2d", "mean", "peephole_lstm", "rms_norm", "rnn", "softmax", "sum",
    "tree_ensemble",
}  # fmt: skip
# Relax has no such op, and one that no convolution or product is before is an addition.
ADDITIONS = {"bias_add"} if GENERATION == "relax" else set()


@pytest.mark.parametrize("kind", sorted(set(written()) - MISSING - ADDITIONS))
def test_what_is_simple(kind):
    """The same on both generations, for every op: neither what sums nor batch_norm."""
    mod = selfbyoc.partition_for_tefuse(model_of_op(kind), composites=[alone(kind)])
    tasks = extract_tasks(mod, include_simple_tasks=True)
    assert [(t.ops, t.is_simple) for t in tasks] == [((kind,), kind not in NOT_SIMPLE)]


def alone(kind):
    """A composite of one op, whatever its attributes."""
    args = [f"a{i}" for i in range(KINDS[kind].inputs or 2)]
    inputs = f"[{', '.join(args)}]" if kind == "concatenate" else ", ".join(args)
    item = "[0]" if kind in ("split", "batch_norm", "lstm", "peephole_lstm") else ""
    pattern = eval(f"lambda {', '.join(args)}: op.{kind}({inputs}){item}", {"op": op})
    return Composite("alone", pattern)


# De-duplication and weights


@pytest.mark.parametrize("constants", [(), ("w0", "w1", "w2")])
def test_equal_kernels_are_one_task(constants):
    """Relax shares one function between equal matches, Relay has one for each."""

    def program(x, w0, w1, w2):
        y = op.relu(op.dense(op.relu(op.dense(x, w0)), w1))
        return op.relu(op.dense(y, w2))

    args = {"x": (5, 33), "w0": (33, 33), "w1": (33, 33), "w2": (7, 33)}
    mod = partitioned(program, args, [DENSE_RELU], constants=constants)
    twice, once = extract_tasks(mod)
    assert (twice.weight, twice.roots) == (2, ("relu", "relu_1"))
    assert (once.weight, once.roots) == (1, ("relu_2",))
    assert twice.key != once.key


@pytest.mark.parametrize(("name", "count", "largest"), [("resnet50", 28, 6), ("squeezenet", 19, 2)])
def test_weights_of_a_network(name, count, largest):
    pytest.importorskip("onnx")
    from selfbyoc.models.onnx_model import import_onnx, light_model

    mod = selfbyoc.partition_for_tefuse(import_onnx(light_model(name)), pack=False)
    report, tasks = selfbyoc.report(mod), extract_tasks(mod, include_simple_tasks=True)
    assert (len(tasks), max(t.weight for t in tasks)) == (count, largest)
    assert sum(t.weight for t in tasks) == len(report.matched)
    by_composite = {name: 0 for name in report.counts}
    for task in tasks:
        by_composite[task.composite.name] += task.weight
    assert by_composite == report.counts
    assert len({t.key for t in tasks}) == len(tasks)
    roots = [root for task in tasks for root in task.roots]
    assert sorted(roots) == sorted(record.root for record in report.matched)
    order = [record.root for record in report.matched]
    firsts = [order.index(task.roots[0]) for task in tasks]
    assert firsts == sorted(firsts)


# C22: a function over the module


def test_in_a_pipeline_of_passes():
    tasks = []

    @tvm.transform.module_pass(opt_level=0, name="Partition")
    def partition(mod, context):
        return selfbyoc.partition_for_tefuse(mod, composites=[DENSE_RELU])

    @tvm.transform.module_pass(opt_level=0, name="ExtractTasks")
    def extract(mod, context):
        tasks.extend(extract_tasks(mod))
        return mod

    mod = emit(dense_relu, {"x": (5, 33), "w": (7, 33)})
    done = tvm.transform.Sequential([partition, extract])(mod)
    assert names(tasks) == ["dense_relu"]
    x, w = (np.random.default_rng(i).standard_normal(s, np.float32) for i, s in
            enumerate([(5, 33), (7, 33)]))  # fmt: skip
    (found,) = selfbyoc.build(done)(x, w)  # the module of the pipeline goes on to the build
    np.testing.assert_allclose(found, np.maximum(x @ w.T, 0), rtol=1e-5, atol=1e-5)


def test_the_module_is_unchanged():
    mod = moves_and_sums()
    before = structural_hash(mod), str(mod)
    (task,) = extract_tasks(mod)
    task.variant()
    assert (structural_hash(mod), str(mod)) == before


# C27: nothing is compiled, or even scheduled


def test_nothing_is_scheduled_or_compiled(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("extraction must not come here")

    def schedule(sch, ops, target):
        refuse()

    weights = Composite("packed", dense_relu, schedule, pack={"w": lambda w: w})
    mods = [
        partitioned(dense_relu, {"x": (5, 33), "w": (7, 33)}, [weights], constants=("w",)),
        partitioned(rfc, RFC),
    ]
    for name in ("build", "compile", "lower"):
        monkeypatch.setattr(tvm, name, refuse, raising=False)
    names = ("lower", "schedule", "pack", "hook", "apply", "stack")
    for name in ("tir.lowering", *(f"codegen.{name}" for name in names)):
        module = sys.modules[f"selfbyoc.{name}"]
        for function in ("build_module", "schedule_external", "apply_schedule", "stack"):
            if hasattr(module, function):
                monkeypatch.setattr(module, function, refuse)
    monkeypatch.setattr(tvm.runtime, "load_module", refuse)
    assert [len(extract_tasks(mod)) for mod in mods] == [1, 1]
    with pytest.raises(AssertionError, match="must not come here"):
        extract_tasks(mods[1])[0].variant()  # what is refused is what scheduling needs


# C23: keys


def key_of(program=dense_relu, x=(5, 33), w=(7, 33), dtype="float32", name="dense_relu"):
    composite = Composite(name, program)
    (task,) = extract_tasks(partitioned(program, {"x": (x, dtype), "w": (w, dtype)}, [composite]))
    return task.key


CHANGED = {
    "shape": {"x": (6, 33)},
    "weight's shape": {"w": (9, 33)},
    "dtype": {"dtype": "float64"},
    "composite": {"name": "other"},
    "op": {"program": lambda x, w: op.tanh(op.dense(x, w))},
    "attribute": {"program": lambda x, w: op.leaky_relu(op.dense(x, w), alpha=0.1)},
    "another attribute": {"program": lambda x, w: op.leaky_relu(op.dense(x, w), alpha=0.2)},
    "more ops": {"program": lambda x, w: op.relu(op.relu(op.dense(x, w)))},
    "operands": {"program": lambda x, w: op.relu(op.add(op.dense(x, w), op.dense(x, w)))},
}


def test_what_changes_a_key():
    keys = {name: key_of(**changed) for name, changed in CHANGED.items()} | {"none": key_of()}
    assert len(set(keys.values())) == len(keys)
    assert key_of() == keys["none"]


def test_one_key_for_equal_kernels_of_two_models():
    """Neither the other ops, nor names, nor the values of weights count."""

    def other(a, weight, v):
        return op.softmax(op.dense(op.relu(op.dense(a, weight)), v))

    args = {"a": (5, 33), "weight": (7, 33), "v": (4, 7)}
    mod = partitioned(other, args, [DENSE_RELU], constants=("weight",))
    assert [t.key for t in extract_tasks(mod)] == [key_of()]


def packing(w):
    """Some columns in a block, as a tuner may decide."""
    columns = selfbyoc.choose("columns", (1, 2, 4), 2)
    blocks = -(-int(w.shape[0]) // columns)
    from selfbyoc.tvm import te, tir

    def packed(block, k, column):
        row = block * columns + column
        return tir.if_then_else(row < w.shape[0], w[row, k], tir.const(0, w.dtype))

    return te.compute((blocks, w.shape[1], columns), packed, name="packed")


def test_the_key_does_not_know_how_weights_are_packed():
    composite = Composite("packed", dense_relu, compute=from_packed, pack={"w": packing})
    args = {"x": (5, 33), "w": (7, 33)}
    (task,) = extract_tasks(partitioned(dense_relu, args, [composite], constants=("w",)))
    told = [with_tuned(task.source, task.target, Tuned({"columns": n})) for n in (1, 2, 4)]
    shapes = [next(iter(t.attrs["tefuse.packed"].values()))["shape"] for t in told]
    assert shapes == [(7, 33, 1), (4, 33, 2), (2, 33, 4)]
    assert {workload_key(t) for t in told} == {task.key}


def from_packed(ops, x, w):
    from selfbyoc.tvm import te

    k = te.reduce_axis((0, x.shape[1]), "k")
    columns = int(w.shape[2])
    product = te.compute(
        ops.dense.outputs[0][0],
        lambda i, j: te.sum(x[i, k] * w[j // columns, k, j % columns], axis=k),
        name="product",
    )
    return te.compute(product.shape, lambda i, j: te.max(product[i, j], 0.0), name="relu")


FRESH = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_tasks as t
print(json.dumps([t.key_of(), *(t.key_of(**c) for c in t.CHANGED.values())]))
"""


def test_a_fresh_process_finds_the_same_keys():
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    env["PYTHONHASHSEED"] = "12345"
    command = [sys.executable, "-c", FRESH, str(Path(__file__).parent)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [key_of(), *(key_of(**c) for c in CHANGED.values())]


def test_the_hook_sees_the_key_that_was_extracted(monkeypatch):
    """TVM issue 19385: tasks were extracted from fused functions and looked up by unfused ones,
    so that nothing ever matched, silently.
    """
    seen = []

    def lower(source, target, _real=progress.lower):
        seen.append(workload_key(source))
        return _real(source, target)

    monkeypatch.setattr(progress, "lower", lower)
    mod = partitioned(
        lambda x, w, v: op.softmax(op.dense(op.relu(op.dense(x, w)), v)),
        {"x": (5, 33), "w": (7, 33), "v": (4, 7)},
        list(selfbyoc.BUILTIN),
        constants=("w", "v"),
    )
    keys = [t.key for t in extract_tasks(mod, include_simple_tasks=True)]
    assert keys == [workload_key(kernel.source) for kernel in kernels(mod)]
    selfbyoc.build(mod)
    assert sorted(seen) == sorted(keys)


def test_decisions_survive_json():
    """Tile sizes are tuples, of which JSON makes lists."""

    def schedule(sch, ops, target):
        row, _ = sch.get_loops(ops.relu.block)
        sch.split(row, sch.sample_perfect_tile(row, 2, 16, decision=[6, 5]))

    composite = Composite("tiled", dense_relu, schedule)
    (task,) = extract_tasks(partitioned(dense_relu, {"x": (30, 7), "w": (12, 7)}, [composite]))
    ((name, choice),) = task.variant().choices.items()
    told = {name: choice.candidates[0]}
    assert told[name] != choice.default
    again = task.variant(Tuned(json.loads(json.dumps(told))))
    assert again.code == task.variant(Tuned(told)).code != task.variant().code


# Places


def test_targets_are_kept_apart():
    args = {"x": (5, 33), "w": (7, 33)}
    told = {
        "kind": "llvm", "mtriple": "riscv64-unknown-linux-gnu", "mcpu": "generic-rv64",
        "num-cores": 7,
    }  # fmt: skip
    (here,) = extract_tasks(partitioned(dense_relu, args))
    (there,) = extract_tasks(partitioned(dense_relu, args, target=make_target(told)))
    assert here.key == there.key
    assert here.place != there.place
    assert (there.place.cores, there.place.generation) == (7, GENERATION)
    assert there.place.target["mtriple"] == told["mtriple"]
    (asked,) = extract_tasks(partitioned(dense_relu, args), make_target(told))
    assert asked.place == there.place
    (again,) = extract_tasks(partitioned(dense_relu, args, target=make_target(told)), "llvm")
    assert again.place == there.place  # what partitioning was told counts more


@pytest.mark.parametrize(
    ("mod", "options", "error", "message"),
    [
        (lambda: emit(rfc, RFC), {}, InputError, "mod: expected a module partitioned by"),
        (lambda: 3, {}, InputError, r"mod: expected a tvm\.IRModule, found int"),
        (moves_and_sums, {"min_ops": 0}, InputError, "min_ops: expected a number from 1 on"),
        (moves_and_sums, {"min_ops": "2"}, InputError, "found '2'"),
        (moves_and_sums, {"target": "nothing"}, TargetError, "target: 'nothing' is not a target"),
    ],
)
def test_wrong_arguments(mod, options, error, message):
    with pytest.raises(error, match=message):
        extract_tasks(mod(), **options)


def test_text():
    (task,) = extract_tasks(partitioned(dense_relu, {"x": (5, 33), "w": (7, 33)}, [DENSE_RELU]))
    name, _, types = str(task).partition(": ")
    assert (name, types.endswith("-> float32[5, 7]")) == ("dense_relu", True)
    assert repr(task) == f"Task({task}, weight 1)"
    assert sorted(a.shape for a in task.inputs()) == [(5, 33), (7, 33)]
    assert all(np.array_equal(a, b) for a, b in zip(task.inputs(3), task.inputs(3), strict=True))
