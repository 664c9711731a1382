"""explain: every candidate has a record, the records come from what decides, and they stay."""

import os
import subprocess
import sys

import numpy as np
import pytest
from models import program, weights

import selfbyoc
from selfbyoc import Composite, op, partition_for_tefuse, require
from selfbyoc.analysis.explain import explanation as module
from selfbyoc.analysis.explain.grouping import grouped, left, nearly
from selfbyoc.errors import InputError
from selfbyoc.ir.emit import emit
from selfbyoc.language.declared import declared
from selfbyoc.partition.report import Record

SHAPES = {"x": (1, 4, 8, 8), "w": (4, 4, 3, 3), "v": (4, 4, 3, 3), "b": (4,)}


def same(x, w):
    return op.conv2d(x, w, padding=1)


def model(program, **shapes):
    names = program.__code__.co_varnames[: program.__code__.co_argcount]
    return emit(program, {n: (shapes.get(n) or SHAPES[n], "float32") for n in names})


def network():
    args = {"x": ((2, 3, 17, 15), "float32")}
    args |= {n: (a.shape, str(a.dtype)) for n, a in weights().items()}
    return emit(program, args, weights())


conv_relu = Composite("conv_relu", lambda x, w: op.relu(op.conv2d(x, w)), why="for the test")
chain = Composite("chain", lambda x, w, v: op.relu(op.conv2d(op.relu(op.conv2d(x, w)), v)))


def three(x, w):
    for _ in range(3):
        x = op.relu(same(x, w))
    return x


def _has_levels(kinds):
    return any(kind.startswith("dequantize") for kind in kinds)


def test_every_candidate_root_has_a_record():
    found = selfbyoc.explain(network())
    assert [c.name for c in found.report.composites] == [c.name for c in selfbyoc.BUILTIN]
    outline = {c.name: c for c in map(declared, selfbyoc.BUILTIN)}
    of_levels = [c.name for c in outline.values() if _has_levels(c.kinds)]
    assert of_levels  # in a model that has none they are no news
    assert not any(found.of(name) for name in of_levels)
    for composite in (c for c in outline.values() if c.name not in of_levels):
        roots = [name for name, kind, _ in found.report.ops if kind in composite.roots]
        assert sorted(r.root for r in found.of(composite.name)) == sorted(roots)


def test_the_smaller_form_of_a_match_is_told():
    conv_any = Composite("any", lambda x, w, b: selfbyoc.either(
        op.relu(op.bias_add(op.conv2d(x, w), b)), op.bias_add(op.conv2d(x, w), b)
    ))  # fmt: skip
    found = selfbyoc.explain(
        model(lambda x, w, b: op.relu(op.bias_add(same(x, w), b))), composites=[conv_any]
    )
    smaller, larger = sorted(found.records, key=lambda r: r.root)
    assert (larger.status, larger.root) == ("matched", "relu")
    assert (smaller.status, smaller.owner_root) == ("part", "relu")
    assert smaller.reason == "part of the larger match at relu"


def test_what_was_taken_names_who_took_it():
    found = selfbyoc.explain(model(three), composites=[chain, conv_relu])
    (record,) = [r for r in found.of("chain") if r.status == "taken"]
    wanted = ("conv2d_1", "chain", "relu_1", "overlap")
    assert (record.where, record.owner, record.owner_root, record.cause) == wanted


def test_a_match_says_what_stays_inside_and_what_its_arguments_are():
    def two(x, w, b):
        return op.relu(same(op.abs(x), w))

    found = selfbyoc.explain(model(two), composites=[conv_relu])
    (record,) = found.of("conv_relu")
    assert record.edges == (("conv2d", "relu", "float32[1, 4, 8, 8]"),)
    assert record.args == (
        ("x", "float32[1, 4, 8, 8]", "abs"),
        ("w", "float32[4, 4, 3, 3]", "input"),
    )


def test_levels():
    by_kind = Composite("own", conv_relu.pattern, {"cuda": print})
    found = selfbyoc.explain(model(lambda x, w: op.relu(same(x, w))), composites=[by_kind])
    (record,) = found.of("own")
    assert record.level == "default schedule"
    assert record.level_reason == "composite own has a schedule for cuda, not llvm"
    c = selfbyoc.explain(network(), target="c")
    assert {r.level for r in c.records if r.composite == "conv2d" and r.level} == {"own schedule"}
    assert c.target == "c"


def test_a_partitioned_module_tells_the_same():
    before = selfbyoc.explain(network())
    after = selfbyoc.explain(partition_for_tefuse(network()))
    strip = [module.replace(r, symbol="") for r in after.records]
    assert strip == list(before.records)
    assert all(r.symbol for r in after.report.matched)
    assert str(after) == str(before)


def test_weights_that_become_floats_are_told_as_they_are_matched():
    """One of halves that another op reads too, which no composite reads as halves."""
    weight = np.random.default_rng(0).standard_normal((32, 32)).astype("float16")

    def program(x, gamma, beta, w):
        wide = op.cast(w, dtype="float32")
        return op.dense(op.layer_norm(x, gamma, beta), wide), op.abs(wide)

    types = {"x": (1, 32), "gamma": (32,), "beta": (32,), "w": ((32, 32), "float16")}
    mod = emit(program, types, {"w": weight})
    parted = selfbyoc.partition_for_tefuse(mod)
    assert selfbyoc.report(parted).counts == {"layer_norm_dense": 1}
    found = selfbyoc.explain(mod)
    assert found.report.counts == selfbyoc.explain(parted).report.counts == {"layer_norm_dense": 1}


def test_a_partitioned_module_was_asked_already():
    parted = partition_for_tefuse(network())
    with pytest.raises(InputError, match="composites: this module is partitioned already"):
        selfbyoc.explain(parted, composites=[conv_relu])


def test_json_and_back():
    found = selfbyoc.explain(network())
    assert selfbyoc.Explanation.from_json(found.to_json()) == found


def test_why_two_ops_are_in_one_kernel():
    found = selfbyoc.explain(model(three), composites=[chain, conv_relu])
    answer = found.why("conv2d", "relu_1")
    assert answer.together
    assert answer.reason == "conv2d and relu_1 are in one kernel in chain at relu_1"
    assert "  relu -> conv2d_1: float32[1, 4, 8, 8] stays inside" in str(answer).splitlines()
    assert "  x is float32[1, 4, 8, 8], an input" in str(answer).splitlines()
    assert "for the test" in found.why("conv2d_2", "relu_2").reason


def test_why_two_ops_are_in_two_kernels():
    found = selfbyoc.explain(model(three), composites=[chain, conv_relu])
    answer = found.why("relu_1", "conv2d_2")
    assert not answer.together
    assert [r.reason for r in answer.records] == ["conv2d_1 belongs to chain at relu_1"]
    assert "relu_1 is in chain at relu_1 and conv2d_2 is in conv_relu at relu_2" in str(answer)


def test_why_an_op_is_left():
    def leaking(x, w):
        y = same(x, w)
        return op.add(op.relu(y), op.tanh(y))

    found = selfbyoc.explain(model(leaking), composites=[conv_relu])
    answer = found.why("conv2d", "relu")
    assert [r.reader for r in answer.records] == ["tanh"]
    assert found.why("conv2d", "tanh").reason.endswith("no composite has conv2d before tanh")
    assert found.why_not("relu")[0].cause == "used outside"


def test_ops_too_far_apart():
    found = selfbyoc.explain(model(three), composites=[conv_relu])
    assert found.why("conv2d", "relu_2").reason.endswith("they are too far apart for conv_relu")
    assert found.why("relu", "conv2d_1").reason.endswith("no composite has relu before conv2d")


def test_the_outline_of_a_pattern():
    outline = {c.name: declared(c) for c in selfbyoc.BUILTIN}
    assert outline["dense"].before == (
        ("bias_add", "add"), ("bias_add", "gelu"), ("bias_add", "relu"), ("cast", "add"),
        ("cast", "bias_add"), ("cast", "dense"), ("cast", "gelu"), ("cast", "relu"),
        ("dense", "add"), ("dense", "bias_add"), ("dense", "gelu"), ("dense", "relu"),
        ("gelu", "add"), ("half_weight", "add"), ("half_weight", "bias_add"),
        ("half_weight", "dense"), ("half_weight", "gelu"), ("half_weight", "relu"), ("relu", "add"),
    )  # fmt: skip
    assert (outline["parallel_conv2d"].depth, outline["inception"].depth) == (4, 7)
    assert outline["parallel_conv2d"].roots == ("concatenate",)
    assert outline["softmax"].before == ()


def test_unknown_names():
    found = selfbyoc.explain(model(three), composites=[conv_relu])
    with pytest.raises(InputError, match=r"'conv2d_7' is no op of this model; near it: \['conv2d"):
        found.why_not("conv2d_7")
    with pytest.raises(InputError, match=r"composite 'convrelu' was not asked; known: \['conv_r"):
        found.of("convrelu")


def test_absorbed_ops_are_found_by_the_names_that_were_written():
    def importers(x, w, b):
        return op.relu(op.add(same(x, w), op.reshape(b, shape=(1, 4, 1, 1))))

    biased = Composite("biased", lambda x, w, b: op.relu(op.bias_add(op.conv2d(x, w), b)))
    found = selfbyoc.explain(model(importers), composites=[biased])
    assert ("reshape", "reshape", "bias_add") in found.report.absorbed
    answer = found.why("reshape", "conv2d")
    assert answer.together
    assert answer.notes == ("reshape was read as bias_add, or as part of it",)


def test_a_name_that_means_two_ops_is_told():
    """The second add, as it was written, is the only one left, and is called add now."""

    def program(x, w, b):
        y = op.add(same(x, w), op.reshape(b, shape=(1, 4, 1, 1)))
        return op.relu(op.add(op.relu(y), x))

    found = selfbyoc.explain(model(program), composites=[conv_relu])
    _, note = found.resolve("add")
    assert note == "the model's add, as it was written, was read as bias_add"


def test_a_check_that_raises_is_a_record():
    broken = Composite("broken", conv_relu.pattern, check=lambda match: match.nosuch)
    found = selfbyoc.explain(model(three), composites=[broken, conv_relu])
    assert {r.status for r in found.of("broken")} == {"broken"}
    assert found.of("broken")[0].reason.startswith("its check raised AttributeError: composite bro")
    assert {r.status for r in found.of("conv_relu")} == {"matched"}


def test_errors_in_explaining_are_told_and_stop_nothing(monkeypatch):
    def raising(*_):
        raise KeyError("no such level")

    monkeypatch.setattr("selfbyoc.analysis.explain.level.level_of", raising)
    monkeypatch.setattr("selfbyoc.partition.select.declined", raising)
    found = selfbyoc.explain(model(three), composites=[conv_relu])
    assert len(found.report.matched) == 3
    assert found.report.problems[0].startswith("no hints about importers: KeyError")
    assert "Not explained: level of conv_relu at relu: 'no such level'" in str(found)
    assert len(selfbyoc.report(partition_for_tefuse(model(three))).matched) > 0


def test_equal_reasons_are_one_group():
    picky = Composite("picky", conv_relu.pattern, check=lambda m: require(False, "never"))
    found = selfbyoc.explain(model(three), composites=[picky])
    (group,) = nearly(found.report)
    assert str(group) == "picky at relu and 2 more, refused: never"
    assert [(row.kind, row.count, row.why) for row in left(found.report)] == [
        ("conv2d", 3, "picky: never"), ("relu", 3, "picky: never"),
    ]  # fmt: skip


def test_what_a_predicate_turns_down_is_another_op_and_not_nearly_this_one():
    def pair(first):
        def pattern(x, w, v):
            return op.relu(op.conv2d(op.relu(op.conv2d(x, w, groups=first)), v))

        return Composite("pair", pattern)

    def program(x, w, v):
        return op.relu(same(op.relu(same(x, w)), v))

    for wanted, cause, near in ((lambda groups: groups > 1, "another op", 0), (2, "attribute", 1)):
        found = selfbyoc.explain(model(program), composites=[pair(wanted)])
        record = next(r for r in found.records if r.root == "relu_1")
        assert (record.cause, record.attribute, record.fitted) == (cause, "groups", 3)
        assert len(nearly(found.report)) == near


def test_a_dense_convolution_is_not_nearly_a_depthwise_one():
    args = {"x": ((1, 8, 6, 6), "float32"), "w": ((8, 8, 3, 3), "float32")}
    args |= {"v": ((4, 8, 1, 1), "float32")}

    def program(groups):
        return lambda x, w, v: op.relu(op.conv2d(op.relu(same_of(groups)(x, w)), v))

    def same_of(groups):
        return lambda x, w: op.conv2d(x, w, padding=1, groups=groups)

    near = nearly(selfbyoc.explain(emit(program(1), args)).report)
    assert not [g for g in near if g.composite == "depthwise_pointwise"]
    args["w"] = ((8, 2, 3, 3), "float32")
    near = nearly(selfbyoc.explain(emit(program(4), args)).report)
    assert "must be depthwise: 8 groups, found 4" in str(*near)


def test_other_shapes_are_the_same_reason():
    reasons = ("x is unknown: float32[dynamic, 8]", "x is unknown: float32[dynamic, 10]")
    (group,) = grouped(Record("c", f"relu_{i}", "refused", r) for i, r in enumerate(reasons))
    assert (group.count, group.reason) == (2, reasons[0])


def test_other_numbers_are_the_same_reason():
    records = [Record("c", f"relu_{i}", "missed", f"at add_{i}: wanted op dense") for i in (1, 2)]
    (group,) = grouped(records)
    assert (group.roots, group.reason) == (("relu_1", "relu_2"), "at add_1: wanted op dense")


def test_a_predicate_without_a_name_is_told_by_its_place():
    square = Composite("square", lambda x, w: op.conv2d(x, w, groups=lambda groups: groups == 1))
    shapes = {"x": (1, 4, 5, 7), "w": (4, 2, 3, 3)}
    found = selfbyoc.explain(
        emit(lambda x, w: op.conv2d(x, w, groups=2), shapes), composites=[square]
    )
    (record,) = found.of("square")
    line = square.pattern.__code__.co_firstlineno
    assert record.wanted == f"groups=a predicate (test_explain.py, line {line})"


SCRIPT = """
import sys; sys.path.insert(0, {tests!r})
from test_explain import network
import selfbyoc
print(selfbyoc.explain(network(), target="llvm").to_json())
"""


def test_deterministic_in_fresh_processes():
    tests = os.path.dirname(__file__)
    texts = set()
    for seed in ("0", "1"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        env["PYTHONPATH"] = os.pathsep.join(sys.path)
        command = [sys.executable, "-c", SCRIPT.format(tests=tests)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        texts.add(done.stdout)
    assert len(texts) == 1
    assert texts == {selfbyoc.explain(network(), target="llvm").to_json() + "\n"}


def test_an_op_is_asked_by_its_name_in_the_source_model():
    report = selfbyoc.explain(model(three), composites=[chain]).report
    named = module.replace(report, origins=(("conv2d_1", "block.conv"), ("relu_1", "block.conv")))
    found = selfbyoc.Explanation(named, "llvm")
    assert found.resolve("block.conv") == ("relu_1", "block.conv is relu_1 here")
    assert found.why("conv2d", "block.conv").together
    assert selfbyoc.Explanation.from_json(found.to_json()) == found
    with pytest.raises(InputError, match=r"near it: \['block\.conv'"):
        found.resolve("block.con")
