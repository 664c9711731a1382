"""torch.compile where something cannot be compiled: PyTorch runs that, and a warning names it."""

import re
import warnings
from contextlib import contextmanager

import pytest

from selfbyoc.errors import FallbackWarning
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION

torch = pytest.importorskip("torch", reason="PyTorch is not installed (make test TORCH=1)")

if GENERATION == "relax":
    from selfbyoc.runtime.dynamo import graph, specialised
    from selfbyoc.runtime.dynamo.backend import backend


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(model, **how):
    """A compiled model, and the list of its libraries."""
    libraries = []
    fast = torch.compile(model, backend=backend, options={"on_library": libraries.append}, **how)
    return fast, libraries


@contextmanager
def told():
    """Our warnings, as texts."""
    texts = []
    with warnings.catch_warnings(record=True) as found, torch.no_grad():
        warnings.simplefilter("always")
        yield texts
    texts += [str(w.message) for w in found if issubclass(w.category, FallbackWarning)]


def close(found, expected):
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    dtype = str(found.dtype).removeprefix("torch.")
    arrays = [t.detach().double().numpy() for t in (found, expected)]
    wrong = first_wrong(*arrays, dtype, 64)
    assert wrong is None, wrong


def same(model, *arguments, libraries, calls=2):
    """Compile and call it; the warnings, and the libraries, of which there must be so many."""
    fast, built = compiled(model)
    with told() as texts:
        for _ in range(calls):
            expected, found = model(*arguments), fast(*arguments)
            for f, e in zip(*map(torch.utils._pytree.tree_leaves, (found, expected)), strict=True):
                close(f, e)
    assert len(built) == libraries
    return texts, built


MASK = [[True, False], [False, False]]


@pytest.mark.parametrize(
    ("compute", "make", "op"),
    [
        (lambda x: -x, lambda: torch.tensor([1, 3], dtype=torch.uint8), "aten.neg.default"),
        (lambda x: x.amax(-1), lambda: torch.tensor(MASK), "aten.amax.default"),
        (lambda x: torch.minimum(x, x.T), lambda: torch.tensor(MASK), "aten.minimum.default"),
        (lambda x: x < x.T, lambda: torch.tensor(MASK), "aten.lt.Tensor"),
        (lambda x: x.max(-1)[0], lambda: torch.tensor(MASK), "aten.max.dim"),
        (lambda x: x.sort(-1)[0], lambda: torch.tensor(MASK), "aten.sort.default"),
    ],
    ids=["neg", "amax", "minimum", "less", "max", "sort"],
)
def test_what_tvm_does_not_build_is_pytorchs(compute, make, op):
    """Whatever the compiler raises: a LoweringError, or an error of TVM's own."""
    texts, _ = same(compute, make(), libraries=0)
    assert len(texts) == 1
    assert re.search(rf"PyTorch runs it: .*{re.escape(op)}", texts[0])


def test_an_op_costs_its_own_break():
    """The weights around it are constants of the libraries, and the product stays one kernel."""
    first, last = torch.nn.Linear(8, 8), torch.nn.Linear(8, 3)

    def compute(x):
        return last(torch.special.bessel_j0(first(x))).relu()

    (text,), built = same(compute, torch.randn(4, 8), libraries=2)
    assert "PyTorch runs aten.special_bessel_j0.default: " in text
    assert [[shape for _, shape, _ in library.inputs] for library in built] == [[(4, 8)], [(4, 8)]]
    assert [sum(library.report.counts.values()) for library in built] == [1, 1]


class Attended(torch.nn.Module):
    """As the attention blocks of diffusion models end: their batch is 1."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(8, 8), torch.nn.GroupNorm(2, 8)

    def forward(self, x):
        rows = self.linear(x.flatten(2).transpose(1, 2))
        return self.norm(rows.transpose(1, 2).reshape(x.shape) + x)


def test_a_graph_that_pytorch_itself_cannot_run_as_it_is():
    """Its view has another stride along an axis of 1 than tracing says: group_norm refuses it."""
    texts, _ = same(Attended().eval(), torch.randn(1, 8, 4, 4), libraries=1)
    assert texts == []


def test_a_functional_graph_that_pytorch_cannot_run(monkeypatch):
    """Then dynamo's own graph serves."""

    def wrong(self, *given):
        raise RuntimeError("planted")

    monkeypatch.setattr(graph.ByPyTorch, "_traced", wrong)
    monkeypatch.setattr(graph.ByPyTorch, "_as_it_is", wrong)
    texts, _ = same(torch.tanh, torch.randn(3), libraries=0)
    assert len(texts) == 1
    assert "PyTorch cannot run what it makes of it: RuntimeError: planted" in texts[0]


def test_a_library_that_raises_in_a_call(monkeypatch):
    """The call has PyTorch's results, and so have the calls after it."""
    fast, built = compiled(torch.tanh)
    x = torch.randn(3)
    with told() as texts:
        close(fast(x), torch.tanh(x))

        def wrong(self, given):
            raise RuntimeError("planted")

        monkeypatch.setattr(specialised.Specialised, "__call__", wrong)
        for _ in range(3):
            close(fast(x), torch.tanh(x))
    assert len(built) == len(texts) == 1
    assert "PyTorch runs it: its library raised RuntimeError: planted" in texts[0]


def test_an_error_of_ours_in_a_new_size_is_no_error(monkeypatch):
    """Of a library for every size: each size has one from then on."""
    fast, built = compiled(lambda x: x.relu() + 1, dynamic=True)
    with told() as texts:
        close(fast(torch.ones(4, 3)), torch.full((4, 3), 2.0))

        def wrong(self, given):
            raise RuntimeError("planted")

        monkeypatch.setattr(graph.EverySize, "learn", wrong)
        close(fast(torch.ones(5, 3)), torch.full((5, 3), 2.0))
    assert len(built) == 2
    assert "each size gets a library of its own: RuntimeError: planted" in texts[0]


def test_what_draws_keeps_its_order():
    """Two ops that draw, and a product between them."""
    linear = torch.nn.Linear(8, 8)

    def compute(x):
        return linear(x + torch.randn(8)).relu() * torch.rand(8)

    fast, built = compiled(compute)
    x = torch.randn(4, 8)
    with told() as texts:
        for seed in range(2):
            torch.manual_seed(seed)
            expected = compute(x)
            torch.manual_seed(seed)
            close(fast(x), expected)
    assert len(built) == len(texts) == 1
    assert re.search("PyTorch runs aten.randn.*, aten.rand.*: it draws random numbers", texts[0])


def test_sizes_around_a_break_stay_open():
    """And what the graph returns of them."""
    first, last = torch.nn.Linear(8, 8), torch.nn.Linear(8, 3)

    def compute(x):
        return last(torch.special.bessel_j0(first(x))), x.shape[0] * 2

    fast, built = compiled(compute, dynamic=True)
    with told():
        for rows in (3, 5, 6):
            x = torch.randn(rows, 8)
            (found, size), (expected, other) = fast(x), compute(x)
            close(found, expected)
            assert size == other
    assert [library.inputs[0][1] for library in built] == [(None, 8), (None, 8)]


def test_autocast_rounds_what_it_computes():
    """A product of halves may differ by their rounding, though the result is float32."""
    linear = torch.nn.Linear(64, 64)
    x = torch.randn(4, 64)
    with torch.autocast("cpu", torch.bfloat16):
        fast, built = compiled(lambda x: linear(x).float() * 2)
        with torch.no_grad():
            expected = linear(x).float() * 2
            assert torch.allclose(fast(x), expected, atol=0.05)
    assert len(built) == 1


def test_targets_that_are_none():
    """PyTorch raises its own error, as it would without a library."""
    entropy, x = torch.nn.functional.cross_entropy, torch.randn(4, 7)
    fast, libraries = compiled(lambda x, target: entropy(x.tanh(), target))
    with torch.no_grad():
        for target in (torch.tensor([0, 6, 3, 2]), torch.tensor([0, 6, -100, 2])):
            close(fast(x, target), entropy(x.tanh(), target))
        for number in (7, -1, -101):
            with pytest.raises(IndexError, match=f"Target {number} is out of bounds"):
                fast(x, torch.tensor([0, 6, number, 2]))
    assert len(libraries) == 1


def test_an_op_of_the_users_that_writes():
    """PyTorch wraps it in an op of higher order."""

    @torch.library.custom_op("selfbyoc_tests::up", mutates_args=("x",))
    def up(x: torch.Tensor) -> None:
        x.add_(1)

    first, last = torch.nn.Linear(8, 8), torch.nn.Linear(8, 3)

    def compute(x):
        rows = first(x).relu()
        up(rows)
        return last(rows)

    (text,), _ = same(compute, torch.randn(4, 8), libraries=2)
    assert "PyTorch runs auto_functionalized" in text


def test_an_instance_norm():
    """It keeps no statistics, in training or not."""
    texts, _ = same(torch.nn.InstanceNorm2d(3), torch.randn(2, 3, 4, 4) * 2 + 1, libraries=1)
    assert texts == []
