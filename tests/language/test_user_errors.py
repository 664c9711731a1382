"""What a user does wrong, or might: the reason first, his own line, and what to write instead."""

import operator
import re
import traceback
import warnings

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Case, Composite, each_op, melt, op
from selfbyoc.errors import (
    CompositeError,
    ComputeError,
    InputError,
    MatchWarning,
    RegistryError,
    ScheduleError,
    one_line,
)
from selfbyoc.ir.emit import emit
from selfbyoc.language.nodes import Either
from selfbyoc.language.registry import Registry
from selfbyoc.tvm import GENERATION, te

SHAPES = {"x": (3, 5), "w": (4, 5)}
IR = '"tefuse.op_info": "{'  # the JSON that nobody wants to see


def pattern(x, w):
    return op.relu(op.dense(x, w))


def model():
    return emit(pattern, SHAPES)


def build_with(schedule=None, **options):
    return selfbyoc.build(
        model(), "llvm", composites=[Composite("mine", pattern, schedule, **options)]
    )


def line_of(function, after):
    return function.__code__.co_firstlineno + after


# ---- schedules


def moves_the_output(sch, ops, target):
    sch.compute_at(ops.relu.block, sch.get_loops(ops.dense.block)[0])


def fuses_what_lies_apart(sch, ops, target):
    i, _, k = sch.get_loops(ops.dense.block)
    sch.fuse(i, k)


def _split(sch, loop):
    sch.split(loop, [3, None, None])


def by_a_helper(sch, ops, target):
    _split(sch, sch.get_loops(ops.dense.block)[0])


WRONG = {
    moves_the_output: (1, 'compute_at: The block "relu" is an output block'),
    fuses_what_lies_apart: (
        2,
        "fuse: The loops can't be fused because the outer loop `for i0 in range(3)` is not the "
        "parent of the inner loop `for k in range(5)`",
    ),
}


@pytest.mark.parametrize("schedule", WRONG, ids=lambda f: f.__name__)
def test_a_primitive_that_raises(schedule):
    """The reason, the line, the loops: and nothing of the 60 lines before."""
    line, reason = WRONG[schedule]
    with pytest.raises(ScheduleError) as raised:
        build_with(schedule)
    first, second, third, *loops = str(raised.value).splitlines()
    assert first == f"composite mine: its schedule raised ScheduleError: {reason}"
    where = f"  at {__file__}:{line_of(schedule, line)} in {schedule.__name__}: sch."
    assert second.startswith(where)
    assert third == "The loops then:"
    assert loops[0] == "@I.ir_module"
    assert any("for k in range(5)" in text for text in loops)
    shown = "".join(traceback.format_exception(raised.value))
    assert IR not in shown
    assert shown.count("@I.ir_module") == 1


def test_lines_of_a_helper_too():
    with pytest.raises(ScheduleError) as raised:
        build_with(by_a_helper)
    _, inner, outer, loops, *_ = str(raised.value).splitlines()
    assert inner.startswith(f"  at {__file__}:{line_of(_split, 1)} in _split: sch.split(loop")
    assert outer.startswith(f"  at {__file__}:{line_of(by_a_helper, 1)} in by_a_helper: _split(")
    assert loops == "The loops then:"


def test_an_error_of_ones_own():
    def schedule(sch, ops, target):
        raise KeyError("tile")

    with pytest.raises(ScheduleError) as raised:
        build_with(schedule)
    assert str(raised.value).splitlines() == [
        "composite mine: its schedule raised KeyError: 'tile'",
        f'  at {__file__}:{line_of(schedule, 1)} in schedule: raise KeyError("tile")',
    ]


def test_the_schedule_of_one_op():
    def schedule(sch, op, target):
        sch.split(sch.get_loops(op.block)[0], [3, None, None])

    with pytest.raises(ScheduleError) as raised:
        build_with(each_op({"relu": schedule}))
    first, second, *_ = str(raised.value).splitlines()
    assert first.startswith("composite mine: each_op: the schedule of 'relu', at relu, raised ")
    assert first.endswith(" split: Only one factor can be specified as -1 or none")
    assert second.startswith(f"  at {__file__}:{line_of(schedule, 1)} in schedule: sch.split(")
    assert IR not in str(raised.value)


def test_melt_says_where_it_was_called():
    def schedule(sch, ops, target):
        melt(sch, ops.relu, into=ops.dense)

    with pytest.raises(ScheduleError) as raised:
        build_with(schedule)
    assert f"\n  at {__file__}:{line_of(schedule, 1)} in schedule: melt(" in str(raised.value)


def test_a_primitive_on_one_line():
    """As reports and the tuner tell it."""
    text = "ScheduleError: An error occurred in the schedule primitive 'split'.\n\nThe IR with ..."
    assert one_line(ValueError(f"{text}\nError message: not\n  that")) == "ValueError: not that"


def test_an_op_that_is_not_there():
    def schedule(sch, ops, target):
        ops.rellu.block  # noqa: B018 (the access is the test)

    with pytest.raises(ScheduleError, match=r"no op 'rellu' .*; did you mean 'relu'\?"):
        build_with(schedule)


def test_computes_and_packs_say_where_they_raised():
    def compute(ins, call):
        return ins[2]

    def pack(weight):
        return weight.tile

    with pytest.raises(ComputeError, match=rf"IndexError: .*\n  at {__file__}:\d+ in compute: "):
        build_with(compute={"dense": compute})
    mod = emit(pattern, {"x": (3, 5)}, {"w": np.ones((4, 5), "float32")})
    composite = Composite("mine", pattern, pack={"w": pack}, compute={"dense": lambda i, c: i[0]})
    with pytest.raises(ComputeError, match=rf"AttributeError: .*\n  at {__file__}:\d+ in pack: "):
        selfbyoc.partition_for_tefuse(mod, composites=[composite])


# ---- show


def test_show_in_a_schedule(capsys):
    def schedule(sch, ops, target):
        selfbyoc.show(sch)

    build_with(schedule)
    shown = capsys.readouterr().out
    assert shown.startswith("@I.ir_module\nclass Module:")
    assert '"tefuse.op_info": "..."' in shown
    assert IR not in shown
    assert "for i0, i1, k in T.grid(3, 4, 5):" in shown


def test_show_of_modules_and_functions(capsys):
    parted = selfbyoc.partition_for_tefuse(model(), composites=[Composite("mine", pattern)])
    selfbyoc.show(parted)
    shown = capsys.readouterr().out
    assert "tefuse.mine" in shown
    assert '"records"' not in shown  # of the report, in an attribute of Relax's module
    a = te.placeholder((4,), name="a")
    selfbyoc.show(te.create_prim_func([a, te.compute((4,), lambda i: a[i], name="b")]))
    assert "with T." in capsys.readouterr().out
    with pytest.raises(InputError, match=r"^show: expected a schedule, .* found int"):
        selfbyoc.show(3)


# ---- patterns


def same(one, other):
    """Two patterns that are written alike."""
    return str(Composite("c", one).outputs) == str(Composite("c", other).outputs)


OPERATORS = {
    "x + y": (lambda x, y: x + y, lambda x, y: op.add(x, y)),
    "1 + x": (lambda x: 1 + x, lambda x: op.add(1, x)),
    "x - y": (lambda x, y: x - y, lambda x, y: op.subtract(x, y)),
    "1 - x": (lambda x: 1 - x, lambda x: op.subtract(1, x)),
    "x * y": (lambda x, y: x * y, lambda x, y: op.multiply(x, y)),
    "2.5 * x": (lambda x: 2.5 * x, lambda x: op.multiply(2.5, x)),
    "x / y": (lambda x, y: x / y, lambda x, y: op.divide(x, y)),
    "1 / x": (lambda x: 1 / x, lambda x: op.divide(1, x)),
    "x ** 2": (lambda x: x**2, lambda x: op.power(x, 2)),
    "2 ** x": (lambda x: 2**x, lambda x: op.power(2, x)),
    "x << 1": (lambda x: x << 1, lambda x: op.left_shift(x, 1)),
    "x >> 1": (lambda x: x >> 1, lambda x: op.right_shift(x, 1)),
    "-x": (lambda x: -x, lambda x: op.negative(x)),
    "abs(x)": (abs, lambda x: op.abs(x)),
    "np.exp(x)": (lambda x: np.exp(x), lambda x: op.exp(x)),
    "np.abs(x)": (lambda x: np.abs(x), lambda x: op.abs(x)),
    "np.maximum(x, y)": (lambda x, y: np.maximum(x, y), lambda x, y: op.maximum(x, y)),
    "np.float32(2) * x": (lambda x: np.float32(2) * x, lambda x: op.multiply(2.0, x)),
    "x * np.int64(2)": (lambda x: x * np.int64(2), lambda x: op.multiply(x, 2)),
    "of an item": (
        lambda x, g: 1 + op.batch_norm(x, g, g, g, g)[0],
        lambda x, g: op.add(1, op.batch_norm(x, g, g, g, g)[0]),
    ),
    "of an option": (
        lambda x: -selfbyoc.either(op.relu(x), op.tanh(x)),
        lambda x: op.negative(selfbyoc.either(op.relu(x), op.tanh(x))),
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_is_an_op(name):
    assert same(*OPERATORS[name])


def test_operators_match_and_compute():
    """In the pattern and in the program: one kernel, and right."""
    composite = Composite("mine", lambda x, y: np.exp((2 * x - y) / 4) + 1)
    mod = emit(lambda x, y: np.exp((2 * x - y) / 4) + 1, {"x": (3, 7), "y": (3, 7)})
    library = selfbyoc.build(mod, "llvm", composites=[composite])
    assert library.report.counts == {"mine": 1}
    x, y = np.random.default_rng(0).standard_normal((2, 3, 7), np.float32)
    np.testing.assert_allclose(library(x, y)[0], np.exp((2 * x - y) / 4) + 1, rtol=1e-5)


PRODUCTS, COMPARES = r"write op\.dense\(x, weight\) for x @ weight\.T", "a pattern compares nothing"
NO_OPS = {
    "x @ w": (lambda x, w: x @ w, PRODUCTS),
    "array @ x": (lambda x: np.ones((3, 3)) @ x, PRODUCTS),
    "np.matmul": (lambda x, w: np.matmul(x, w), PRODUCTS),
    "x.dot": (lambda x, w: x.dot(w), PRODUCTS),
    "x == 0": (lambda x: op.relu(x) == 0, "write op.equal"),
    "if x": (lambda x: op.relu(x) if x else x, r"neither true nor false; write either\(a, b\)"),
    "x or y": (lambda x, y: x or y, r"neither true nor false; write either\(a, b\)"),
    "float(x)": (lambda x: op.add(x, float(x)), "a pattern runs once, without data"),
    "x | y": (lambda x, y: op.relu(x) | op.tanh(x), r"write either\(x, y\)"),
    "x // 2": (lambda x: x // 2, r"selfbyoc\.declare adds one"),
    "x % 2": (lambda x: x % 2, r"selfbyoc\.declare adds one"),
    "np.sin": (lambda x: np.sin(x), r"`np\.sin` .*selfbyoc\.declare adds one"),
    "np.mean": (lambda x: np.mean(x), r"`np\.mean` .*write op\.mean\(\.\.\.\)"),
    "np.sum": (lambda x: np.sum(x, axis=1), r"write op\.sum\(\.\.\.\)"),
    "np.add.reduce": (lambda x: np.add.reduce(x), r"write op\.sum\(\.\.\.\)"),
    "np.clip": (lambda x: np.clip(x, 0, 6), r"write op\.clip\(\.\.\.\)"),
    "np.concatenate": (lambda x, y: np.concatenate([x, y]), r"write op\.concatenate\(\.\.\.\)"),
    "x.T": (lambda x, w: op.dense(x, w.T), r"`x\.T` .*write op\.transpose\(\.\.\.\)"),
    "x.mean": (lambda x: op.relu(x).mean(), r"`x\.mean` .*write op\.mean\(\.\.\.\)"),
    "x.astype": (lambda x: x.astype("int8"), r"write op\.cast\(\.\.\.\)"),
    "an array": (lambda x: x * np.ones(3), r"an array of shape \(3,\); make it an argument"),
    "its item": (lambda x: op.relu(x)[0][1], "only an op has outputs"),
    "unpacked": (lambda x: op.add(*op.split(x)), "its pattern raised TypeError: .*by index"),
    "its own error": (lambda x: {}["w"], r"its pattern raised KeyError: 'w'\n  at .*:\d+ in "),
    "stride": (lambda x, w: op.conv2d(x, w, stride=2), "did you mean 'strides'?"),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_OPS)
def test_what_is_no_op(name):
    function, message = NO_OPS[name]
    with pytest.raises(CompositeError, match=f"^composite mine: .*{message}"):
        Composite("mine", function)


@pytest.mark.parametrize("kind", ["greater", "greater_equal", "less", "less_equal"])
def test_comparisons_are_ops_where_the_vocabulary_has_them(kind):
    sign = {"greater": operator.gt, "greater_equal": operator.ge, "less": operator.lt}
    compare = sign.get(kind, operator.le)
    if kind in dir(op):
        assert same(lambda x: compare(op.relu(x), 0), lambda x: getattr(op, kind)(op.relu(x), 0))
        return
    with pytest.raises(CompositeError, match=COMPARES):
        Composite("mine", lambda x: compare(op.relu(x), 0))


def test_values_are_the_same_or_not():
    """`==` and hashes stay those of Python: nodes are keys of dicts and members of lists."""
    (output,) = Composite("mine", lambda x, y: op.add(x, x)).outputs
    x, again = output.inputs
    assert x == again
    assert output != x
    assert {x: 1}[again] == 1
    assert (x == None) is False  # noqa: E711 (not `is`)
    assert isinstance(Either((x, output)), Either)
    with pytest.raises(AttributeError, match="'Arg' object has no attribute 'nothing'"):
        x.nothing  # noqa: B018 (the access is the test)


def test_a_dataflow_pattern_inside_a_function():
    if GENERATION == "relay":
        from tvm.relay.dataflow_pattern import is_op, wildcard
    else:
        from tvm.relax.dpl import is_op, wildcard
    relu = is_op("nn.relu" if GENERATION == "relay" else "relax.nn.relu")
    with pytest.raises(CompositeError, match="hand the whole dataflow pattern to Composite in"):
        Composite("mine", lambda x: op.tanh(relu(wildcard())))
    with pytest.raises(CompositeError, match=r"^composite mine: its pattern raised \w+Error: "):
        Composite("mine", lambda x: relu(x))
    assert len(Composite("mine", relu(wildcard())).outputs) == 1


# ---- composites


def test_names_of_composites():
    with pytest.raises(RegistryError, match=r"known: .*; did you mean 'mine'\?"):
        Registry([Composite("mine", pattern)])["mime"]


def test_pack_with_the_nearest_name():
    with pytest.raises(CompositeError, match=r"pack names \['wieght'\].*; did you mean 'weight'"):
        Composite("c", lambda x, weight: op.dense(x, weight), pack={"wieght": lambda w: w})
    assert Case(x=(3, 5)).args == {"x": ((3, 5), "float32")}


# ---- nothing matched


def warned(function, *args, **options):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function(*args, **options)
    return [w for w in found if w.category is MatchWarning]


def other():
    shapes = {**SHAPES, "b": (4,)}
    return emit(lambda x, w, b: op.relu(op.bias_add(op.dense(x, w), b)), shapes)


@pytest.mark.parametrize("function", [selfbyoc.partition_for_tefuse, selfbyoc.build])
def test_nothing_matched(function):
    (found,) = warned(function, other(), composites=[Composite("mine", pattern)])
    assert found.filename == __file__
    assert str(found.message) == (
        "nothing matched: none of 1 composite (mine) in a model of dense, bias_add, relu; "
        "nearest: mine missed at bias_add: wanted op dense, found op bias_add; "
        "print(selfbyoc.explain(mod, composites=...)) says why of each op"
    )


def test_nothing_matched_of_what_was_verified():
    (found,) = warned(selfbyoc.build, other(), composites=[Composite("mine", pattern)], verify=True)
    assert found.filename == __file__


def test_a_refusal_is_nearest():
    def check(match):
        selfbyoc.require(match.x.shape[0] > 9, "too few rows")

    one, two = (
        Composite("one", lambda x: op.tanh(op.exp(x))),
        Composite("two", pattern, check=check),
    )
    (found,) = warned(selfbyoc.partition_for_tefuse, model(), composites=[one, two])
    assert "none of 2 composites (one, two)" in str(found.message)
    assert re.search("nearest: two refused .*too few rows", str(found.message))
    (found,) = warned(selfbyoc.partition_for_tefuse, model(), composites=[one])
    assert "(one) in a model of dense, relu, which no pattern ends in; " in str(found.message)


def test_nothing_was_asked():
    for composites in ([], [Composite("mine", pattern)], None):
        assert warned(selfbyoc.partition_for_tefuse, model(), composites=composites) == []
    guard = lambda decided: {}  # noqa: E731 (it refuses nothing)
    assert warned(selfbyoc.partition_for_tefuse, model(), guard=guard) == []
