"""Mistakes that were silent, or were told in TVM's or Python's words: each a typed error now, which
says what was found and what was expected.
"""

import re

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Case, Composite, declare, either, lint, many, op, repeat
from selfbyoc.errors import (
    CompositeError,
    ComputeError,
    InputError,
    LoweringError,
    OpError,
    RegistryError,
    ScheduleError,
)
from selfbyoc.ir.emit import emit
from selfbyoc.tvm import te

SHAPES = {"x": (3, 5), "w": (4, 5)}


def pattern(x, w):
    return op.relu(op.dense(x, w))


def build_with(schedule=None, **options):
    weight = {"w": np.ones((4, 5), "float32")}
    composite = Composite("mine", pattern, schedule, **options)
    mod = emit(pattern, {"x": (3, 5)}, weight)
    return selfbyoc.build(mod, "llvm", composites=[composite], cache=False)


def line_of(function, after):
    return function.__code__.co_firstlineno + after


# ---- patterns


def yields(x):
    yield op.relu(x)


def any_number(*tensors):
    return op.relu(tensors[0])


def by_name_alone(*, x):
    return op.relu(x)


PATTERNS = [
    (lambda x, y: op.where(x == y, x, y), "found False.* op.equal"),
    (lambda x, y: op.add(x != y, y), "found True.* op.not_equal"),
    (lambda x: op.where(x == 0, x, x), "`x == 0` in a pattern: write op.equal"),
    (lambda x: op.where(x != 0, x, x), "`x != 0` in a pattern: write op.not_equal"),
    (lambda x: None, "found None: is `return` missing"),
    (lambda x: op.relu(None), "found None"),
    (lambda x: [op.relu(x)], r"found list: .*several results are a tuple"),
    (yields, "found generator: .*return, not yield"),
    (lambda x: float(x), "`float.x.` in a pattern: .* without data.* no number"),
    (lambda x: np.linalg.norm(x), "`np.linalg.norm` in a pattern"),
    (lambda x: op.relu(x)[:, 1:], "takes an output of an op by its number, found"),
    (lambda x: op.concatenate(many(x)), "many: expected a function .* found x"),
    (lambda x: repeat(op.relu(x), x), "repeat: expected a function .* found relu"),
    (lambda x: repeat(x, lambda y, arg: op.relu(y)), "repeat: expected a function .* found x"),
    (lambda x: either([op.relu(x), x]), "either needs two options or more, found 1"),
    (lambda: op.relu(1.0), "the pattern has no argument"),
    (any_number, r"pattern: its argument \*tensors stands for any number"),
    (by_name_alone, "pattern: its argument x is given by name alone"),
    (lambda x, axis=1: op.softmax(x, axis=axis), "op.softmax: axis: .* found the value axis"),
    (lambda x: op.softmax(x, axis={1}), "op.softmax: axis: .* found {1}"),
    (lambda x, w: op.conv2d(x, w, strides={1: 2}), "strides: .* found {1: 2}"),
    (lambda x, w: op.conv2d(x, w, strides="2"), "strides: .* found '2'"),
    (lambda x, w: op.conv2d(x, w, strides=(2, 2, 2)), r"strides: .* found \(2, 2, 2\)"),
    (lambda x, w: op.conv2d(x, w, strides=2.0), "strides: .* found 2.0"),
    (lambda x, w: op.conv2d(x, w, padding=(1, 1, 1)), r"padding: .* found \(1, 1, 1\)"),
    (lambda x, w: op.conv2d(x, w, strides=np.array([2, 2])), r"strides: .* found array"),
]


@pytest.mark.parametrize(("wrong", "says"), PATTERNS, ids=[says[:24] for _, says in PATTERNS])
def test_a_pattern(wrong, says):
    with pytest.raises(CompositeError, match=f"^composite mine: .*{says}"):
        Composite("mine", wrong)


# ---- the other functions


@pytest.mark.parametrize(("kind", "says"), [("lvm", "; did you mean 'llvm'?"), ("cpu", "")])
def test_a_schedule_for_no_target(kind, says):
    """The default schedule served, and nobody was told."""
    with pytest.raises(ScheduleError) as raised:
        build_with({kind: lambda sch, ops, target: None})
    text = f"composite mine: its schedule is for {kind!r}, which is no kind of target, and there is"
    assert str(raised.value) == f"{text} none for llvm{says}"


@pytest.mark.parametrize("said", [False, True, "no", (3, 5)])
def test_a_check_that_returns_something(said):
    """`lambda match: match.x.shape[0] == 4` refused nothing."""
    composite = Composite("mine", pattern, check=lambda match: said)
    with pytest.raises(CompositeError) as raised:
        selfbyoc.partition_for_tefuse(emit(pattern, SHAPES), composites=[composite])
    text = f"composite mine: its check returned {said!r}; a check refuses with require("
    assert str(raised.value).startswith(text)


def test_a_check_that_raises_says_where():
    def check(match):
        return match.weight

    with pytest.raises(CompositeError) as raised:
        selfbyoc.partition_for_tefuse(
            emit(pattern, SHAPES), composites=[Composite("mine", pattern, check=check)]
        )
    first, second = str(raised.value).splitlines()
    assert first.startswith("composite mine: its check raised AttributeError: ")
    assert second == f"  at {__file__}:{line_of(check, 1)} in check: return match.weight"


def test_a_predicate_that_raises_says_where():
    def whole(axis):
        return axis.whole

    composite = Composite("mine", lambda x: op.softmax(x, axis=whole))
    with pytest.raises(CompositeError, match=r"in whole: return axis.whole"):
        selfbyoc.partition_for_tefuse(
            emit(lambda x: op.softmax(x), {"x": (3, 5)}), composites=[composite]
        )


@pytest.mark.parametrize(
    ("pack", "says"),
    [
        (lambda w: None, "its pack of 'w' returned NoneType; expected a tensor of te"),
        (lambda w: np.ones((5, 4)), "its pack of 'w' returned ndarray; expected a tensor of te"),
    ],
)
def test_a_pack_that_returns_no_tensor(pack, says):
    with pytest.raises(ComputeError, match=f"^composite mine: {says}"):
        build_with(pack={"w": pack}, compute={"dense": lambda ins, call: ins[0]})


@pytest.mark.parametrize("units", [4, 5])
def test_what_is_packed_and_nobody_reads_so(units):
    """It was packed when building, and the plain op read it as if it were not: wrong numbers."""

    def transposed(w):
        return te.compute((w.shape[1], w.shape[0]), lambda i, j: w[j, i], name="packed")

    composite = Composite("mine", pattern, pack={"w": transposed})
    mod = emit(pattern, {"x": (3, 5)}, {"w": np.ones((units, 5), "float32")})
    with pytest.raises(ComputeError, match=r"argument 'w' is packed, but .* needs a `compute`"):
        selfbyoc.build(mod, "llvm", composites=[composite], cache=False)


def test_a_schedule_that_returns_another():
    def schedule(sch, ops, target):
        return sch.copy()

    with pytest.raises(ScheduleError, match="returned another schedule; what it did to `sch`"):
        build_with(schedule)


def test_a_block_by_its_name():
    """As 0.17 calls it: one file for both."""

    def schedule(sch, ops, target):
        sch.parallel(sch.get_loops(sch.get_block("relu"))[0])

    (found,) = build_with(schedule)(np.ones((3, 5), "float32"))
    assert found.tolist() == [[5] * 4] * 3


def test_what_cannot_be_lowered_has_a_reason_and_no_stack():
    def schedule(sch, ops, target):
        sch.bind(sch.get_loops(ops.relu.block)[0], "threadIdx.x")

    with pytest.raises(LoweringError) as raised:
        build_with(schedule)
    (only,) = str(raised.value).splitlines()
    assert only.startswith("composite mine: TVM could not lower it with its own schedule: ")
    assert "Traceback" not in only


# ---- cases and programs


@pytest.mark.parametrize("dtype", ["flot32", "float33", "int", "f32"])
def test_a_dtype_that_is_none(dtype):
    with pytest.raises(CompositeError, match=f"argument 'x': {dtype!r} is no dtype"):
        Case(x=((3, 5), dtype))


def test_names_that_are_one_text():
    with pytest.raises(
        CompositeError, match=r"constants: expected names, as in .'weight',., found one"
    ):
        Case(x=(3, 5), weight=(4, 5), constants="weight")


PROGRAMS = [
    (pattern, {"x": (3, 5)}, "argument 'w' has no shape"),
    (pattern, {**SHAPES, "q": (3, 5)}, "names .'q'., which are no arguments of the program"),
    (pattern, [(3, 5), (4, 5)], "expected {argument: shape}, found list"),
    (pattern, {"x": (3, 5, 6, 7), "w": (4, 5)}, "op.dense"),
    (pattern, {"x": (3, 5), "w": (4, 6)}, "op.dense"),
    (lambda x, w: op.conv2d(x, w), {"x": (3, 5), "w": (4, 5)}, r"op.conv2d of float32\[3, 5\], "),
    (lambda x, w: op.conv2d(x, w), {"x": (1, 5, 9, 9), "w": (4, 6, 3, 3)}, "TVM: "),
    (lambda x: op.softmax(x, axis=7), {"x": (1, 5, 9, 9)}, "TVM: "),
    (lambda x, y: op.add(x, y), {"x": ((3, 5), "int32"), "y": (3, 5)}, "TVM: "),
    (
        lambda x: op.softmax(x, axis=lambda a: a > 0),
        {"x": (1, 5)},
        "axis: a program needs a value, found a predicate",
    ),
    (lambda x: op.exp(op.relu(x)[0]), {"x": (1, 5)}, "TVM: "),
]


@pytest.mark.parametrize(("program", "args", "says"), PROGRAMS)
def test_a_program(program, args, says, capfd):
    """TVM's own words began with its C++ stack, or with its op registry's entry."""
    with pytest.raises(CompositeError, match=says) as raised:
        emit(program, args)
    assert str(raised.value).startswith("emit: ")
    assert "Traceback" not in str(raised.value)
    assert "ir.Op(" not in str(raised.value)


# ---- arguments of functions


@pytest.mark.parametrize("given", [Composite("mine", pattern), "conv2d", np, pattern, 3])
@pytest.mark.parametrize(
    "function",
    [
        selfbyoc.partition_for_tefuse,
        selfbyoc.build,
        selfbyoc.explain,
        selfbyoc.verify,
        lambda mod, composites: selfbyoc.transform.Partition(composites=composites),
    ],
)
def test_what_is_no_list_of_composites(function, given):
    with pytest.raises(RegistryError, match="expected a list of composites, found"):
        function(emit(pattern, SHAPES), composites=given)


def test_a_builtin_by_its_name():
    with pytest.raises(RegistryError, match=r"found str: 'conv2d'; .*Registry\(BUILTIN\)"):
        selfbyoc.partition_for_tefuse(emit(pattern, SHAPES), composites=["conv2d"])


@pytest.mark.parametrize("given", [pattern, 3, ["mine"]])
def test_what_cannot_be_linted(given):
    with pytest.raises(RegistryError, match=r"expected a Composite|expected a list of composites"):
        lint(given)


def test_a_guard_that_is_none():
    with pytest.raises(InputError, match=r"guard: expected .*MeasuredGuard\(\).* found True"):
        selfbyoc.build(emit(pattern, SHAPES), guard=True)


def test_attributes_that_are_no_mapping():
    with pytest.raises(OpError, match=r"op foo: attrs: expected {name: default}, found"):
        declare("foo", compute=lambda x, bound: x, numpy=lambda x, bound: x, attrs=["bound"])


def test_a_reference_that_raises_is_not_the_kernel():
    composite = Composite("mine", pattern, reference=lambda x, w: x @ w)
    shown = str(selfbyoc.verify(emit(pattern, SHAPES), composites=[composite]))
    assert re.search(r"random wrong: the composite's reference raised ValueError", shown)
    shown = str(
        selfbyoc.verify(
            emit(pattern, SHAPES), composites=[Composite("mine", pattern, reference=lambda x, w: x)]
        )
    )
    assert "the composite's reference gives [(3, 5)], the kernel [(3, 4)]" in shown
