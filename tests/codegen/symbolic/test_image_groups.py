"""A batch of any size as groups of images: by kernels of one image and of a few, right for all."""

import numpy as np
import pytest
from symbolic_programs import UNKNOWN, N, another, attention, named

import selfbyoc
from selfbyoc import op
from selfbyoc.codegen.symbolic import alike, images, kernel
from selfbyoc.codegen.symbolic.images import Group, Grouped
from selfbyoc.errors import InputError
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.runtime.tolerance import first_wrong, longest_reduction
from selfbyoc.tvm import GENERATION, te, tir, walk

BATCHES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 17)
TARGET = "llvm -mcpu=haswell -num-cores=2"


def _conv(x, weight, bias):
    return op.relu(op.bias_add(op.conv2d(x, weight, padding=1), bias))


def _residual(x, weight, y):
    return op.relu(op.add(op.conv2d(x, weight, padding=1), y))


IMAGE, WEIGHT = (N, 16, 21, 20), (32, 16, 3, 3)
# Name: the composite, a program, its arguments.
CASES = {
    "conv": ("conv2d", _conv, {"x": IMAGE, "weight": WEIGHT, "bias": (32,)}),
    "two images": ("conv2d_add", _residual, {"x": IMAGE, "weight": WEIGHT, "y": (N, 32, 21, 20)}),
    "pointwise": (
        "conv2d", lambda x, weight: op.conv2d(x, weight),
        {"x": (N, 20, 24, 32), "weight": (32, 20, 1, 1)},
    ),
    "pool": ("max_pool2d", lambda x: op.max_pool2d(x, pool_size=2, strides=2), {"x": IMAGE}),
    "mean": ("global_avg_pool2d", lambda x: op.global_avg_pool2d(x), {"x": (N, 6, 64, 64)}),
    "one number": (
        "conv2d", lambda x, weight: op.clip(op.conv2d(x, weight), a_min=0.0, a_max=6.0),
        {"x": (N, 20, 24, 32), "weight": (32, 20, 1, 1)},
    ),
}  # fmt: skip
# What decides how a batch is taken, and the groups of two cores then.
WAYS = {
    "cores": (
        {"LEAST_CYCLES": 0, "LEAST_OF_A_CORE": 0, "NEAR": 9e9, "FAR": 9e9}, [Group(1), Group(2)],
    ),
    "several": (
        {"LEAST_CYCLES": 0, "NEAR": -1, "FAR": 9e9}, [Group(n) for n in (1, 2, 3, 4, 6)]
    ),
    "side by side": (
        {"LEAST_CYCLES": 9e9, "LEAST_OF_A_CORE": 0, "NEAR": 9e9, "FAR": 9e9}, None,
    ),
}  # fmt: skip


@pytest.fixture
def grouped(monkeypatch):
    """What was decided for each kernel; `by` says what decides."""
    found = []

    def noted(maker):
        found.append(images.grouped(maker))
        return found[-1]

    def by(way):
        for name, value in WAYS[way][0].items():
            monkeypatch.setattr(images, name, value)
        monkeypatch.setattr(images, "_are_even", lambda tasks, cpu: all(tasks))
        monkeypatch.setattr(kernel, "grouped", noted)
        monkeypatch.setattr(kernel, "_learnt", {})
        return found

    return by


def _built(program, args, **more):
    rng = np.random.default_rng(0)
    weights = {a: rng.standard_normal(s).astype("float32") for a, s in args.items() if N not in s}
    shapes = {a: tuple(UNKNOWN if e == N else e for e in s) for a, s in args.items()}
    mod = emit(program, {a: s for a, s in shapes.items() if a not in weights}, weights)
    return selfbyoc.build(named(mod, args), TARGET, cache=False, **more), weights


def _check(program, args, library, weights, batch):
    shapes = {a: tuple(batch if e == N else e for e in s) for a, s in args.items()}
    graph = ir.read(emit(program, shapes)["main"])
    rng = np.random.default_rng(batch)
    given = {
        a: rng.standard_normal(s).astype("float32") for a, s in shapes.items() if a not in weights
    }
    (found,) = library(**given)
    (wanted,) = evaluate(graph, [{**given, **weights}[v.name] for v in graph.inputs])
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    longest = longest_reduction(graph) if batch else 1
    assert first_wrong(found, wanted, "float32", longest) is None, batch


SMALL = ("pool", "mean")  # one core does an image
FAST = (
    ("conv", "cores"), ("conv", "several"), ("conv", "side by side"), ("two images", "cores"),
    ("mean", "side by side"), ("one number", "side by side"),
)  # fmt: skip
EACH = [
    (name, way) if (name, way) in FAST else pytest.param(name, way, marks=pytest.mark.slow)
    for name in CASES
    for way in WAYS
    if name not in SMALL or way == "side by side"
]


@pytest.mark.parametrize(("name", "way"), EACH)
def test_right_for_every_batch(name, way, grouped):
    composite, program, args = CASES[name]
    found = grouped(way)
    library, weights = _built(program, args)
    assert library.report.counts == {composite: 1}
    (groups,) = found
    assert groups is not None
    assert WAYS[way][1] is None or list(groups.groups) == WAYS[way][1]
    for batch in BATCHES:
        _check(program, args, library, weights, batch)


def test_each_core_takes_an_image(grouped):
    """Rounds of all cores where one image has tasks for them; of any number where it has none."""
    found = grouped("side by side")
    for name in ("conv", "mean"):
        _built(*CASES[name][1:])
    parallel, serial = found
    assert parallel.groups == (Group(1), Group(1, 2))
    assert serial.groups in ((Group(1), Group(1, 1)), (Group(1), Group(1, 2)))


@pytest.mark.parametrize("way", ["cores", "side by side"])
def test_one_core(way, grouped, monkeypatch):
    """One function, whatever one core is asked to do."""
    monkeypatch.setitem(globals(), "TARGET", "llvm -mcpu=haswell -num-cores=1")
    found = grouped(way)
    _, program, args = CASES["conv"]
    library, weights = _built(program, args)
    assert [groups.groups for groups in found] == [(Group(1),)]
    for batch in (0, 1, 3):
        _check(program, args, library, weights, batch)


# What is no matter of each image alone.
TOGETHER = {
    "over images": lambda x: op.softmax(x, axis=0),
    "mean of images": lambda x: op.subtract(x, op.mean(x, axis=(0,), keepdims=True)),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_what_knows_of_other_images(name, grouped):
    found = grouped("cores")
    program, args = TOGETHER[name], {"x": (N, 40, 33)}
    mine = selfbyoc.Composite("mine", program)
    library, weights = _built(program, args, composites=[mine])
    assert library.report.counts == {"mine": 1}
    assert not any(found)
    for batch in (1, 2, 5, 9):
        _check(program, args, library, weights, batch)


def test_a_batch_beside_a_length(grouped):
    """Families of the length, for one sentence after the other."""
    found = grouped("cores")
    batch = another()
    widths = {"q": 20, "k": 20, "v": 24}
    mod = emit(attention, {a: (batch, UNKNOWN, width) for a, width in widths.items()})
    if GENERATION == "relay":
        mod = selfbyoc.name_sizes(mod, {a: {0: "m", 1: "n"} for a in widths})
    library = selfbyoc.build(mod, TARGET, cache=False)
    assert library.report.counts == {"attention": 1}
    assert [groups.groups for groups in found if groups] == [(Group(1),)]
    rng = np.random.default_rng(0)
    for size in ((0, 3), (1, 1), (2, 7), (3, 33), (5, 64), (9, 100)):
        shapes = {a: (*size, width) for a, width in widths.items()}
        given = {a: rng.standard_normal(s).astype("float32") for a, s in shapes.items()}
        (result,) = library(**given)
        graph = ir.read(emit(attention, shapes)["main"])
        (wanted,) = evaluate(graph, [given[v.name] for v in graph.inputs])
        assert result.shape == np.asarray(wanted).shape
        assert first_wrong(result, np.asarray(wanted), "float32", 100) is None, size


BY_IMAGE = {
    "itself": (True, lambda x, n, j: x[n, j] + 1.0),
    "another element": (True, lambda x, n, j: x[n, 15 - j]),
    "the one before": (False, lambda x, n, j: x[tir.max(n - 1, 0), j]),
    "from the last": (False, lambda x, n, j: x[alike.IMAGES - 1 - n, j]),
    "the first": (False, lambda x, n, j: x[0, j]),
    "its number": (False, lambda x, n, j: x[n, j] + n.astype("float32")),
    "elements by its number": (False, lambda x, n, j: x[n, tir.floormod(j + n, 16)]),
    "even ones": (False, lambda x, n, j: tir.Select(tir.floormod(n, 2) == 0, x[n, j], 0.0)),
    "how many there are": (False, lambda x, n, j: x[n, j] / float(alike.IMAGES)),
    "one over that": (False, lambda x, n, j: x[n, j] * (1.0 / alike.IMAGES)),
}


@pytest.mark.parametrize("name", BY_IMAGE)
def test_what_is_of_one_image(name):
    expected, compute = BY_IMAGE[name]
    x = te.placeholder((alike.IMAGES, 16), "float32", "x")
    y = te.compute((alike.IMAGES, 16), lambda n, j: compute(x, n, j), "y")
    blocks = []
    walk(te.create_prim_func([x, y]).body, blocks.append, "Block", "SBlock")
    assert alike.is_by_image(blocks[0]) is expected


def test_a_schedule_of_a_user_sees_whole_batches(grouped):
    found = grouped("cores")

    def schedule(sch, ops, target):
        sch.parallel(sch.get_loops(ops.relu.block)[0])

    program, args = (lambda x: op.relu(x)), {"x": (N, 40, 33)}
    mine = selfbyoc.Composite("mine", program, schedule=schedule)
    library, weights = _built(program, args, composites=[mine])
    assert found == [None]
    _check(program, args, library, weights, 5)


def test_too_many_elements(monkeypatch, grouped):
    grouped("cores")
    monkeypatch.setattr(selfbyoc.tvm.symbolic, "MOST", 3 * 6 * 64 * 64)
    _, program, args = CASES["mean"]
    library, weights = _built(program, args)
    _check(program, args, library, weights, 3)
    with pytest.raises(InputError, match=r"a tensor of shape .*: expected at most \d+"):
        library(np.zeros((4, 6, 64, 64), "float32"))


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((1,), {1: [1], 5: [1] * 5}),
        ((1, 2), {1: [1], 2: [2], 3: [2, 1], 7: [2, 2, 2, 1]}),
        ((1, 8), {7: [1] * 7, 9: [8, 1]}),
        ((1, 2, 3, 4, 6), {5: [3, 2], 7: [4, 3], 8: [4, 4], 10: [6, 4], 13: [6, 4, 3]}),
    ],
)
def test_which_groups_a_batch_has(sizes, expected):
    grouped = Grouped("n", tuple(map(Group, sizes)))
    for batch, groups in expected.items():
        left, taken = batch, []
        while left:
            number = grouped.first.get(left, len(sizes) - 1)
            taken.append(sizes[number])
            left -= taken[-1]
        assert taken == groups
