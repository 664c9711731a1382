"""Products of views of a batch, as PyTorch's exporter writes them, have the axes before."""

import numpy as np
import pytest
from symbolic_programs import UNKNOWN

import selfbyoc
from selfbyoc import op
from selfbyoc.ir.emit import emit
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION

pytestmark = pytest.mark.skipif(GENERATION == "relay", reason="products of Relay have three axes")
SENTENCES, HEADS, DEPTH = 2, 3, 20
HEADS_FIRST = (0, 2, 1, 3)


def program(keys=9, *, scaled="queries", whole_softmax=True, masked=True, lead=None):
    """Attention of (sentences, rows, heads, depth) by products of three axes."""
    lead = (SENTENCES, HEADS) if lead is None else lead
    batch = SENTENCES * HEADS

    def view(x, rows, columns):
        return op.reshape(x, shape=(batch, rows, columns))

    def attention(q, k, v, mask=None):
        q, k, v = (op.transpose(x, axes=HEADS_FIRST) for x in (q, k, v))
        q = op.multiply(q, 0.25) if scaled == "queries" else q
        k = op.transpose(k, axes=(0, 1, 3, 2))
        scores = op.batch_matmul(view(q, 5, DEPTH), view(k, DEPTH, keys))
        scores = op.multiply(scores, 0.25) if scaled == "scores" else scores
        if masked:
            scores = op.add(op.reshape(scores, shape=(SENTENCES, HEADS, 5, keys)), mask)
            scores = view(scores, 5, keys) if not whole_softmax else scores
        elif whole_softmax:
            scores = op.reshape(scores, shape=(*lead, 5, keys))
        powers = op.softmax(scores)
        powers = view(powers, 5, keys) if whole_softmax else powers
        weighted = op.batch_matmul(powers, view(v, keys, DEPTH))
        return op.transpose(op.reshape(weighted, shape=(*lead, 5, DEPTH)), axes=HEADS_FIRST)

    return attention


def arguments(keys=9, masked=True):
    rng = np.random.default_rng(0)
    shapes = {"q": (SENTENCES, 5, HEADS, DEPTH)}
    shapes |= dict.fromkeys("kv", (SENTENCES, keys, HEADS, DEPTH))
    shapes |= {"mask": (SENTENCES, 1, 1, keys)} if masked else {}
    return {name: rng.standard_normal(shape).astype("float32") for name, shape in shapes.items()}


def expected(q, k, v, mask=0.0):
    q, k, v = (x.astype("float64").transpose(HEADS_FIRST) for x in (q, k, v))
    scores = 0.25 * (q @ k.swapaxes(2, 3)) + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True) @ v).transpose(HEADS_FIRST).astype("float32")


def check(library, given):
    (found,) = library(**given)
    keys = given["k"].shape[1]
    assert first_wrong(found, expected(**given), "float32", 4 * keys) is None


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("whole_softmax", [True, False])
@pytest.mark.parametrize("scaled", ["queries", "scores"])
def test_one_kernel_reads_heads_as_they_lie(scaled, whole_softmax, masked):
    given = arguments(masked=masked)
    wanted = program(scaled=scaled, whole_softmax=whole_softmax, masked=masked)
    mod = emit(wanted, {name: x.shape for name, x in given.items()})
    library = selfbyoc.build(mod, cache=False)
    assert (library.report.counts, library.report.left) == ({"attention_of_heads": 1}, {})
    check(library, given)


@pytest.mark.slow
def test_open_sizes():
    n = UNKNOWN
    shapes = {name: x.shape for name, x in arguments().items()}
    shapes |= {name: (SENTENCES, n, HEADS, DEPTH) for name in "kv"}
    mod = emit(program(n), shapes | {"mask": (SENTENCES, 1, 1, n)})
    library = selfbyoc.build(mod)
    assert (library.report.counts, library.report.left) == ({"attention_of_heads": 1}, {})
    for keys in (1, 2, 17, 70):
        check(library, arguments(keys))


def both(program, wanted, counts, *shapes, results=1):
    rng = np.random.default_rng(1)
    given = {
        n: rng.standard_normal(s).astype("float32") for n, s in zip("xyz", shapes, strict=False)
    }
    library = selfbyoc.build(emit(program, {n: x.shape for n, x in given.items()}), cache=False)
    assert library.report.counts == counts
    found = library(**given)
    assert len(found) == results
    for one, other in zip(found, wanted(*given.values()), strict=True):
        assert one.shape == other.shape
        assert first_wrong(one, other.astype("float32"), "float32", 64) is None


def test_views_of_different_axes_stay():
    def program(x, y):
        product = op.batch_matmul(op.reshape(x, shape=(6, 5, 7)), op.reshape(y, shape=(6, 7, 4)))
        return op.reshape(op.relu(product), shape=(2, 3, 5, 4))

    def wanted(x, y):
        product = x.reshape(6, 5, 7).astype("float64") @ y.reshape(6, 7, 4)
        return [np.maximum(product, 0).reshape(2, 3, 5, 4)]

    both(program, wanted, {"batch_matmul": 1}, (2, 3, 5, 7), (3, 2, 7, 4))


@pytest.mark.parametrize("lead", [(1, 6), (6, 1), (1, 1), (2, 1, 3)])
def test_batches_of_one(lead):
    batch = int(np.prod(lead))

    def program(x, y):
        x, y = op.reshape(x, shape=(batch, 5, 7)), op.reshape(y, shape=(batch, 7, 4))
        return op.reshape(op.relu(op.batch_matmul(x, y)), shape=(batch * 5, 4))

    def wanted(x, y):
        return [np.maximum(x.astype("float64") @ y, 0).reshape(batch * 5, 4)]

    both(program, wanted, {"batch_matmul": 1}, (*lead, 5, 7), (*lead, 7, 4))


def test_what_others_read_is_there_in_its_axes():
    """The scores as a result, and along another axis than that of the keys."""

    def program(x, y):
        scores = op.batch_matmul(op.reshape(x, shape=(6, 5, 7)), op.reshape(y, shape=(6, 7, 4)))
        return scores, op.softmax(scores, axis=1), op.reshape(scores, shape=(2, 3, 5, 4))

    def wanted(x, y):
        scores = (x.astype("float64") @ y).reshape(6, 5, 4)
        powers = np.exp(scores - scores.max(1, keepdims=True))
        return [scores, powers / powers.sum(1, keepdims=True), scores.reshape(2, 3, 5, 4)]

    counts = {"batch_matmul": 1}  # softmax is of the last axis
    both(program, wanted, counts, (2, 3, 5, 7), (2, 3, 7, 4), results=3)


def test_numbers_stay_on_their_side():
    def program(x, y):
        scores = op.batch_matmul(op.reshape(x, shape=(6, 5, 7)), op.reshape(y, shape=(6, 7, 4)))
        scores = op.divide(1.0, op.add(op.multiply(scores, scores), 2.0))
        return op.reshape(op.subtract(3.0, scores), shape=(2, 3, 5, 4))

    def wanted(x, y):
        scores = x.astype("float64") @ y
        return [3 - 1 / (scores * scores + 2)]

    both(program, wanted, {"batch_matmul": 1}, (2, 3, 5, 7), (2, 3, 7, 4))
