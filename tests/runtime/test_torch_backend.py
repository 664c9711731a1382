"""`torch.compile(model, backend="selfbyoc")` against PyTorch itself."""

import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.errors import FallbackWarning, ScheduleError
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION

torch = pytest.importorskip("torch", reason="PyTorch is not installed (make test TORCH=1)")

if GENERATION == "relax":
    from selfbyoc.transform import Partition, ScheduleRest

pytestmark = pytest.mark.skipif(GENERATION == "relay", reason="dynamo's graphs go by Relax")

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
ENTRY = re.search(r"torch_dynamo_backends\]\n(\w+) = \"(.*)\"", PYPROJECT.read_text())
GRADIENTS = "results need gradients"


@pytest.fixture(autouse=True, scope="module")
def _registered():
    """As the entry point does it where the package is installed anew."""
    found = EntryPoint(ENTRY[1], ENTRY[2], "torch_dynamo_backends").load()
    if ENTRY[1] not in torch._dynamo.list_backends():
        torch._dynamo.register_backend(found, name=ENTRY[1])


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(model, *, dynamic=None, **options):
    """A compiled model, and the list of its libraries."""
    libraries = []
    options = {"on_library": libraries.append, **options}
    return torch.compile(model, backend="selfbyoc", dynamic=dynamic, options=options), libraries


def counts(libraries):
    return [dict(library.report.counts) for library in libraries]


def close(found, expected, reduction=64):
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.stride() == expected.stride()
    assert found.requires_grad == expected.requires_grad
    dtype = str(found.dtype).removeprefix("torch.")
    arrays = [t.detach().double().numpy() for t in (found, expected)]
    wrong = first_wrong(*arrays, dtype, reduction)
    assert wrong is None, wrong


def same(function, *arguments, libraries=1, **options):
    """Compile a function, and compare two calls; the graph must be built, not run by PyTorch."""
    fast, built = compiled(function, **options)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        expected = function(*arguments)
        for _ in range(2):
            found = fast(*arguments)
            if isinstance(expected, torch.Tensor):
                close(found, expected)
            else:
                for f, e in zip(found, expected, strict=True):
                    close(f, e) if isinstance(e, torch.Tensor) else check_equal(f, e)
    assert len(built) == libraries
    return built


@contextmanager
def warned(why):
    """What our warnings say, of which the first one says why; PyTorch has warnings of its own."""
    told = []
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield told
    told += [str(w.message) for w in found if issubclass(w.category, FallbackWarning)]
    assert told
    assert re.search(why, told[0]), told


def check_equal(found, expected):
    assert found == expected


class Network(torch.nn.Module):
    """An image network with a residual and a normalised head."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.head = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 5)
        )

    def forward(self, x):
        y = torch.relu(self.norm(self.conv(x)))
        return self.head(y.mean((2, 3)))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(x).relu()


def dense(rows=4, columns=16):
    return torch.nn.Linear(columns, 8).eval(), torch.randn(rows, columns)


def test_by_one_word():
    network, x = Network().eval(), torch.randn(2, 3, 9, 11)
    (library,) = same(network, x)
    taken = library.report.counts
    assert sum(n for name, n in taken.items() if name.startswith("conv2d")) == 1
    assert [name for name in taken if name.startswith("dense")]
    assert [(shape, dtype) for _, shape, dtype in library.inputs] == [((2, 3, 9, 11), "float32")]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_attention(mode):
    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = torch.nn.Linear(32, 96)

        def forward(self, x):
            q, k, v = (t.view(1, 7, 4, 8).transpose(1, 2) for t in self.qkv(x).split(32, -1))
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    model, x = Attention().eval(), torch.randn(1, 7, 32)
    fast, built = compiled(model)
    with mode():
        close(fast(x), model(x))
        x = torch.randn(1, 7, 32)  # in inference mode such a tensor has no counter of versions
        close(fast(x), model(x))
    assert any(name.startswith("attention") for name in counts(built)[0])


def test_composites_and_target_of_ones_own():
    mine = Composite("mine", lambda x, w: op.relu(op.dense(x, w)))
    linear = torch.nn.Sequential(torch.nn.Linear(16, 8, bias=False), torch.nn.ReLU()).eval()
    x = torch.randn(4, 16)
    (library,) = same(linear, x, composites=[mine], target="llvm")
    assert dict(library.report.counts) == {"mine": 1}
    assert "mcpu" not in str(library.target)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"composite": []}, "found 'composite'; did you mean 'composites'?"),
        ({"target": "llwm"}, "target: 'llwm' is not a target"),
    ],
)
def test_wrong_options(options, message):
    linear, x = dense()
    with torch.no_grad(), pytest.raises(Exception, match=re.escape(message)):
        torch.compile(linear, backend="selfbyoc", options=options)(x)


def test_a_composite_that_raises():
    """It is the user's to mend, here as in `build`."""

    def schedule(sch, blocks, target):
        raise ValueError("no such loop")

    mine = Composite("mine", lambda x, w: op.dense(x, w), schedule=schedule)
    linear = torch.nn.Linear(16, 8, bias=False).eval()
    fast, _ = compiled(linear, composites=[mine])
    with torch.no_grad(), pytest.raises(ScheduleError, match="no such loop"):
        fast(torch.randn(4, 16))


def test_there_are_no_modes():
    linear, x = dense()
    with torch.no_grad(), pytest.raises(Exception, match="mode: expected none, found 'max-auto"):
        torch.compile(linear, backend="selfbyoc", mode="max-autotune")(x)


# ---- weights


def weight_changes():
    linear = torch.nn.Linear(16, 8)

    def step(model):
        model(torch.ones(3, 16)).sum().backward()
        torch.optim.Adam(model.parameters(), fused=True).step()

    return {
        "in place": lambda m: m.weight.detach().add_(1),
        "load_state_dict": lambda m: m.load_state_dict(linear.state_dict()),
        "an adapter": lambda m: m.weight.data.add_(torch.randn(8, 2) @ torch.randn(2, 16)),
        "data": lambda m: setattr(m.weight, "data", torch.ones(8, 16)),
        "another": lambda m: setattr(m, "weight", torch.nn.Parameter(torch.ones(8, 16))),
        "a step": step,
    }


def test_weights_of_inference_mode():
    """Nobody counts when they are written."""
    with torch.inference_mode():
        linear, x = dense()
        fast, built = compiled(linear)
        for _ in range(3):
            close(fast(x), linear(x))
            linear.weight.add_(1)
    assert [len(library.inputs) for library in built] == [3]


@pytest.mark.parametrize("change", weight_changes().values(), ids=list(weight_changes()))
def test_weights_that_change(change):
    linear, x = dense()
    fast, built = compiled(linear)
    with torch.no_grad():
        close(fast(x), linear(x))
    with torch.enable_grad():
        change(linear)
    with torch.no_grad():
        close(fast(x), linear(x))
        close(fast(x), linear(x))
    assert [len(library.inputs) for library in built] == [1, 1]


def test_statistics_that_a_norm_counts_in_training():
    """Batch norm writes them without PyTorch counting it."""
    network, x = Network().eval(), torch.randn(2, 3, 9, 11)
    fast, built = compiled(network)
    with torch.no_grad():
        close(fast(x), network(x))
        network.norm.train()(3 + 2 * torch.randn(5, 8, 3, 3))
        network.eval()
        close(fast(x), network(x))
        close(fast(x), network(x))
    assert len(built) == 2


@pytest.mark.parametrize(
    ("compute", "indices", "wrong"),
    [
        (torch.nn.Embedding(5, 3).eval(), [1, 4], [[5, 1], [-1, 1], [10**9, 0]]),
        (lambda i: (torch.arange(5.0) + 1)[i], [1, -5], [[5, 1], [-6, 1], [10**9, 0]]),
    ],
)
def test_indices_of_nothing(compute, indices, wrong):
    fast, built = compiled(compute)
    with torch.no_grad():
        for given in (torch.tensor(n) for n in (indices, indices[::-1])):
            close(fast(given), compute(given))
        for given in map(torch.tensor, wrong):
            with pytest.raises(IndexError):
                fast(given)
        close(fast(torch.tensor(indices)), compute(torch.tensor(indices)))
    assert len(built) == 1


def test_weights_that_change_always_become_arguments():
    linear, x = dense()
    fast, built = compiled(linear)
    with torch.no_grad(), warned("weights changed 4 times") as told:
        for _ in range(7):
            close(fast(x), linear(x))
            linear.weight.mul_(1.5)
    assert len(told) == 1
    assert [len(library.inputs) for library in built] == [1, 1, 1, 1, 3]


def test_weights_as_arguments():
    linear, x = dense()
    (library,) = same(linear, x, freeze=False)
    assert len(library.inputs) == 3


def test_modules_that_are_alike():
    """Dynamo has one graph for both."""
    x = torch.randn(4, 8)
    layers = [Layer().eval() for _ in range(3)]
    built = []
    for layer in layers:
        layer.compile(backend="selfbyoc", options={"on_library": built.append})
    with torch.no_grad():
        for _ in range(2):
            for layer in layers:
                close(layer(x), layer.forward(x))
    assert len(built) == 3


# ---- what PyTorch runs


def by_pytorch(model, *arguments, why, mode=torch.no_grad, libraries=0):
    """Compile it: one warning that says why, and PyTorch's own results."""
    fast, built = compiled(model)
    with mode(), warned(why) as told:
        for _ in range(3):
            torch.manual_seed(3)
            found = fast(*arguments)
            torch.manual_seed(3)
            expected = model(*arguments)
            torch.testing.assert_close(found, expected)
    assert len(told) == 1
    assert len(built) == libraries
    return told[0]


def test_an_op_that_is_not_known():
    def compute(x):
        return torch.special.bessel_j0(x) + 1

    said = by_pytorch(compute, torch.randn(5), why="imported.*bessel_j0")
    assert re.search(r"a graph of 2 ops from compute, .*test_torch_backend.py:\d+", said)


def test_the_fast_path_of_transformers():
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    x = torch.randn(1, 5, 16)
    by_pytorch(layer, x, why=r"; torch.backends.mha.set_fastpath_enabled\(False\)")
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        same(layer, x)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def test_graph_breaks():
    linear, other = dense()[0], torch.nn.Linear(8, 3).eval()

    def compute(x):
        y = linear(x)
        torch._dynamo.graph_break()
        z = torch.special.bessel_j0(y)
        torch._dynamo.graph_break()
        return other(z).relu()

    by_pytorch(compute, torch.randn(4, 16), why="bessel_j0", libraries=2)


def test_training():
    models = [torch.nn.Sequential(dense()[0], torch.nn.Tanh()) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    fast, built = compiled(models[0].train())
    x = torch.randn(4, 16)
    with warned(GRADIENTS) as told:
        for _ in range(2):
            for model, call in ((models[0], fast), (models[1], models[1])):
                model.zero_grad()
                call(x).square().sum().backward()
            for mine, other in zip(*(m.parameters() for m in models), strict=True):
                torch.testing.assert_close(mine.grad, other.grad)
    assert (len(told), built) == (1, [])


def test_an_input_that_needs_a_gradient():
    x = torch.randn(4, 16, requires_grad=True)
    with pytest.warns(FallbackWarning, match=GRADIENTS):
        compiled(torch.tanh)[0](x).sum().backward()
    torch.testing.assert_close(x.grad, 1 - torch.tanh(x.detach()) ** 2)


def test_nothing_needs_a_gradient():
    """Gradients are on, as they are unless somebody says otherwise."""
    fast, built = compiled(lambda x: torch.softmax(x, 1))
    x = torch.randn(4, 16)
    close(fast(x), torch.softmax(x, 1))
    assert len(built) == 1


def test_gradients_on_inside():
    linear, x = dense()

    def compute(x):
        with torch.enable_grad():
            y = linear(x)
        return y

    by_pytorch(compute, x, why=GRADIENTS)


def test_dropout():
    """TVM takes it for the identity."""
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Dropout(0.5)).train()
    by_pytorch(model, torch.randn(4, 16), why="random numbers", libraries=1)


def test_random_numbers():
    by_pytorch(lambda x: x + torch.randn(4), torch.zeros(4), why="randn.* random numbers")


def test_batch_norm_in_training():
    models = [torch.nn.BatchNorm2d(3).train() for _ in range(2)]
    fast, _ = compiled(models[0])
    x = torch.randn(2, 3, 5, 5) + 4
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for _ in range(3):
            close(fast(x), models[1](x), 4096)
    for mine, other in zip(*(m.buffers() for m in models), strict=True):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: torch.randn(4, dtype=torch.complex64), "is torch.complex64; expected float16"),
        (lambda: torch._neg_view(torch.randn(4)), "a view that negates its memory"),
        (lambda: torch.randn(4, device="meta"), "an input is on meta; expected the CPU"),
    ],
)
def test_other_tensors(make, why):
    x = make()
    fast, _ = compiled(lambda x: x * 2)
    with torch.no_grad(), pytest.warns(FallbackWarning, match=why):
        found = fast(x)
    assert (found.dtype, found.layout, found.device) == (x.dtype, x.layout, x.device)
    if x.device.type == "cpu":
        torch.testing.assert_close(found, x * 2)


def test_another_meaning_is_noticed(monkeypatch):
    """What TVM's importer takes for something else is compared once, and left to PyTorch."""
    from tvm import relax

    from selfbyoc.models.relax import torch_importer

    def wrong(node, importer):
        return importer.block_builder.emit(relax.op.cos(importer.env[node.args[0]]))

    monkeypatch.setitem(torch_importer._CONVERTERS, "sin.default", wrong)
    fast, _ = compiled(torch.sin)
    x = torch.randn(50)
    with torch.no_grad(), pytest.warns(FallbackWarning, match="other values by TVM"):
        close(fast(x), torch.sin(x))


# ---- shapes


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_several_shapes(dynamic):
    linear, _ = dense()
    fast, built = compiled(linear, dynamic=dynamic)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for rows in (3, 5, 1, 7, 5, 3, 0):
            x = torch.randn(rows, 16)
            close(fast(x), linear(x))
    shapes = [library.inputs[0][1] for library in built]
    every, single = (None, 16), (1, 16)
    assert (
        shapes
        == {
            None: [(3, 16), every, single, (0, 16)],  # the second size is for all that come
            True: [every, single, (0, 16)],
            False: [(rows, 16) for rows in (3, 5, 1, 7, 0)],
        }[dynamic]
    )
    assert all(sum(c.values()) == 1 for c in counts(built)[:-1])


def test_sizes_as_results():
    def compute(x):
        return x.relu(), x.shape[0], x.shape[0] * x.shape[1], torch.full((x.shape[0], 2), 3.0)

    fast, built = compiled(compute, dynamic=True)
    for rows in (3, 5, 8, 6, 9):
        x = torch.randn(rows, 4)
        found = fast(x)
        assert found[1:3] == (rows, rows * 4)
        close(found[0], x.relu())
        close(found[3], torch.full((rows, 2), 3.0))
    assert len(built) == 1


def test_more_shapes_than_libraries(monkeypatch):
    monkeypatch.setattr("selfbyoc.runtime.dynamo.graph.MOST", 2)
    fast, built = compiled(lambda x, n: x.relu() + n, dynamic=True)
    with warned("2 libraries were built") as told:
        for n in (-3, -4, -5, -6, -3, -4, -5):
            x = torch.randn(2 - n, 4)
            close(fast(x, n), x.relu() + n)
    assert (len(told), len(built)) == (1, 2)


def small_bert():
    """Attention, GELU and norms, whose epsilons are floats that dynamo does not know at first."""

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = torch.nn.Linear(16, 48), torch.nn.Linear(16, 16)
            self.up, self.down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)
            self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(16) for _ in range(2))

        def forward(self, x):
            rows, length, _ = x.shape
            parts = self.qkv(x).view(rows, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
            y = torch.nn.functional.scaled_dot_product_attention(*parts)
            x = self.norms[0](x + self.out(y.transpose(1, 2).reshape(rows, length, 16)))
            return self.norms[1](x + self.down(torch.nn.functional.gelu(self.up(x))))

    return Block().eval()


def test_attention_of_several_rows():
    """Its results lie otherwise than PyTorch's kernel leaves them, once it is taken apart."""
    (library,) = same(small_bert(), torch.randn(2, 5, 16))
    assert any(name.startswith("attention") for name in library.report.counts)


def of_sizes(function, *givens, libraries=1, **options):
    """One library for all of these inputs, with PyTorch's values, types and strides at each."""
    fast, built = compiled(function, **{"dynamic": True, **options})
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for given in givens:
            found, expected = fast(*given), function(*given)
            if isinstance(expected, torch.Tensor):
                found, expected = [found], [expected]
            for f, e in zip(found, expected, strict=True):
                close(f, e) if isinstance(e, torch.Tensor) else check_equal(f, e)
    assert len(built) == libraries
    return built


def test_a_norm_with_open_sizes():
    """Dynamo traces again, with the norm's epsilon as a constant: PyTorch raises for that."""
    norm = torch.nn.LayerNorm(16).eval()
    (library,) = of_sizes(norm, *((torch.randn(rows, 16),) for rows in (3, 5, 2, 64, 7, 3)))
    assert dict(library.report.counts) == {"layer_norm": 1}
    ((most, places),) = library.sizes.values()
    assert (most, places) == (None, ((0, 0),))


def test_a_float_that_changes():
    """Dynamo makes a tensor of it, by a primitive that TVM's importer does not know."""
    floats = ((3, 0.5), (5, 1.5), (6, -2.5), (9, 0.5))
    of_sizes(lambda x, s: x.relu() * s, *((torch.randn(n, 4), s) for n, s in floats))


def test_attention_with_open_sizes():
    givens = [(torch.randn(2, length, 16),) for length in (5, 9, 33, 2, 64)]
    torch._dynamo.mark_dynamic(givens[0][0], 1)
    (library,) = of_sizes(small_bert(), *givens, dynamic=None)
    assert [places for _, places in library.sizes.values()] == [((0, 1),)]
    assert any(name.startswith("attention") for name in library.report.counts)


def test_a_bound_of_ones_own():
    linear, _ = dense()
    givens = [(torch.randn(rows, 16),) for rows in (5, 8, 2, 3)]
    torch._dynamo.mark_dynamic(givens[0][0], 0, min=2, max=8)
    (library,) = of_sizes(linear, *givens, dynamic=None)
    assert [most for most, _ in library.sizes.values()] == [8]


def test_sizes_of_which_dynamo_knows_nothing():
    givens = [(torch.randn(rows, 4),) for rows in (5, 1, 7, 0, 9)]
    torch._dynamo.decorators.mark_unbacked(givens[0][0], 0)
    of_sizes(lambda x: x.relu() + 1, *givens, dynamic=None)


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: (x.relu().t(), x[1:] + 1, x.shape[0] * 2, x.relu().view(-1)),
        lambda x: (lambda y: (y, y.view(-1), y[:, 1:]))(x.relu()),
        lambda x: x.relu() + torch.ones(x.shape[0], 1),
    ],
)
def test_how_results_of_open_sizes_lie(compute):
    of_sizes(compute, *((torch.randn(rows, 4 + rows % 2),) for rows in (3, 6, 9, 12, 8, 5, 12)))


def test_sizes_that_are_equal():
    """Dynamo holds them to be; one that is not is another graph."""
    sides = ((3, 3), (5, 5), (9, 9), (3, 5), (7, 4), (8, 8))
    givens = [(torch.randn(a, 4), torch.randn(b, 4)) for a, b in sides]
    of_sizes(lambda x, y: (x.relu(), y + 1), *givens, libraries=2)


def test_weights_that_change_with_open_sizes():
    weight = torch.nn.Parameter(torch.randn(4))
    fast, built = compiled(lambda x: x.relu() * weight, dynamic=True)
    with torch.no_grad():
        for rows in (3, 5, 4):
            x = torch.randn(rows, 4)
            close(fast(x), x.relu() * weight)
            weight.add_(1)
    assert [library.inputs[0][1] for library in built] == [(None, 4)] * 3


def test_a_table_of_open_size():
    """A library could not tell an index of nothing: each size has one that can."""
    fast, built = compiled(lambda x, i: x.relu()[i], dynamic=True)
    with torch.no_grad(), warned("each size gets a library of its own: .*index") as told:
        for rows in (4, 6):
            x, i = torch.randn(rows, 3), torch.tensor([rows - 1, 0])
            close(fast(x, i), x.relu()[i])
            with pytest.raises(IndexError):
                fast(x, i + 1)
    assert (len(told), len(built)) == (1, 2)


def every_key(mask):
    """A mask of pairs, as masks of transformers are read: by counted batches and keys."""
    batch, n = mask.shape
    first = torch.arange(batch)[:, None, None, None]
    keys = torch.arange(n)[None, None, None, :] + 0
    seen = mask[first, keys].expand(batch, 1, n, n)
    return seen.float().cumsum(-1)


def the_key_before(mask):
    return mask[:, torch.arange(mask.shape[1]) - 1].float().cumsum(-1)


def test_a_mask_that_is_read_by_counted_indices():
    fast, built = compiled(every_key, dynamic=True)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for shape in ((2, 7), (3, 33), (5, 2)):
            mask = torch.rand(shape) > 0.3
            close(fast(mask), every_key(mask))
    assert len(built) == 1


def test_indices_that_may_leave_an_open_size_are_left_to_pytorch():
    """It raises for what is outside, which a library for every size could not."""
    fast, _ = compiled(the_key_before, dynamic=True)
    mask = torch.rand(2, 7) > 0.3
    with torch.no_grad(), pytest.warns(FallbackWarning, match="indices of an open size"):
        close(fast(mask), the_key_before(mask))


def test_another_size_is_compared_too(monkeypatch):
    from selfbyoc.errors import InputError
    from selfbyoc.runtime.dynamo import results

    check = results.check

    def wrong(found, wanted, compare):
        if wanted[0].shape[0] == 5 and len(built) == 1:
            raise InputError("planted")
        check(found, wanted, compare)

    fast, built = compiled(lambda x: x.relu() + 1, dynamic=True)
    monkeypatch.setattr(results, "check", wrong)
    with torch.no_grad(), warned("each size gets a library of its own: planted") as told:
        for rows in (4, 5):
            x = torch.randn(rows, 3)
            close(fast(x), x.relu() + 1)
    # By size it is wrong as well, while no second library is there.
    assert (len(told), len(built)) == (2, 1)
    assert re.search("PyTorch runs it: .*planted", told[1])


def test_what_on_library_raises():
    """It is the user's, of whatever class."""

    def told(library):
        raise selfbyoc.errors.InputError("planted")

    fast, _ = compiled(torch.tanh, on_library=told)
    with torch.no_grad(), pytest.raises(selfbyoc.errors.InputError, match=r"^planted"):
        fast(torch.randn(3))


@pytest.mark.parametrize("name", ["RestartAnalysis", "SkipFrame", "TensorifyScalarRestartAnalysis"])
def test_what_pytorch_raises_to_go_on(monkeypatch, name):
    """It comes to dynamo as it was; one that it does not know ends as its own error."""
    raised = getattr(torch._dynamo.exc, name)

    def traced(**_):
        def trace(module, inputs):
            raise raised("planted")

        return trace

    from selfbyoc.runtime.dynamo import backend as ours

    monkeypatch.setattr(ours, "aot_autograd", traced)
    module = torch.fx.symbolic_trace(torch.nn.ReLU())
    with pytest.raises(raised, match="planted"):
        ours.backend(module, [])


def test_what_pytorch_cannot_trace(monkeypatch):
    def traced(**_):
        def trace(module, inputs):
            raise RuntimeError("planted")

        return trace

    monkeypatch.setattr("selfbyoc.runtime.dynamo.backend.aot_autograd", traced)
    by_pytorch(lambda x: x + 1, torch.randn(3), why="cannot trace it: RuntimeError: planted")


# ---- memory


def test_an_input_that_is_written():
    def compute(x, y):
        x.add_(1)
        y[:, 1:] = x[:, 1:] * 2
        return x.relu() + y

    fast, built = compiled(compute)
    with torch.no_grad():
        for _ in range(2):
            x, y = torch.randn(3, 4), torch.randn(3, 4)
            mine = x.clone(), y.clone()
            close(fast(*mine), compute(x, y))
            close(mine[0], x)
            close(mine[1], y)
    assert len(built) == 1


def test_a_buffer_that_is_written():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(4))
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x):
            self.seen += x.sum(0)
            return self.linear(x) + self.seen

    model, other = Counter().eval(), Counter().eval()
    other.load_state_dict(model.state_dict())
    fast, built = compiled(model)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for _ in range(6):
            x = torch.randn(3, 4)
            close(fast(x), other(x))
            close(model.seen, other.seen)
    assert len(built) == 1


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: (x, x.relu()),
        lambda x: (x.view(-1), x.relu()),
        lambda x: (x.relu().view(-1), x[1:]),
        lambda x: (lambda y: (y, y.view(-1), y[:, 1:]))(x.relu()),
        lambda x: (lambda y: (y, y))(x.relu()),
        lambda x: (lambda y: (y[0], y[1], y.t()))(x * 2),
        lambda x: (x.relu().t(), x.relu().expand(2, 3, 4), x.sum(0, keepdim=True).expand(3, 4)),
        lambda x: (x.detach(), x.clone(), x.contiguous(), x.reshape(4, 3), x + 0, x.relu()),
        lambda x: (torch.arange(4.0), torch.zeros(3), x + torch.arange(4.0)),
        lambda x: (torch.ones(3, 4),),
    ],
)
def test_memory_that_is_shared(compute):
    """Writing a result, or the input, changes what it changes in PyTorch, and no later call."""
    fast, _ = compiled(compute)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for turn in range(3):
            x = torch.randn(3, 4)
            mine = x.clone()
            found, expected = fast(mine), compute(x)
            for n in range(len(expected)):
                for f, e in zip(found, expected, strict=True):
                    close(f, e)
                if 0 not in expected[n].stride():
                    found[n].add_(turn + 1)
                    expected[n].add_(turn + 1)
                close(mine, x)
            mine.add_(2)
            x.add_(2)
            for f, e in zip(found, expected, strict=True):
                close(f, e)


def test_a_weight_that_is_returned():
    linear, x = dense()

    def compute(x):
        return linear(x), linear.weight, linear.bias * 1

    fast, _ = compiled(compute)
    with torch.no_grad():
        found = fast(x)
        assert found[1] is linear.weight
        found[2].add_(1)
        close(fast(x)[2], linear.bias.detach())


def layouts():
    x = torch.randn(2, 3, 8, 9)
    wide = torch.randn(2, 3, 8, 10)
    return {
        "channels last": x.to(memory_format=torch.channels_last),
        "transposed": torch.randn(2, 3, 9, 8).transpose(2, 3),
        "every other": torch.randn(2, 3, 8, 18)[..., ::2],
        "a part": wide[..., 1:],
        "expanded": torch.randn(1, 3, 1, 9).expand(2, 3, 8, 9),
        "not aligned": torch.randn(2 * 3 * 8 * 9 + 1)[1:].view(2, 3, 8, 9),
    }


@pytest.mark.parametrize("x", layouts().values(), ids=list(layouts()))
def test_how_inputs_lie(x):
    conv = torch.nn.Conv2d(3, 4, 3).eval()
    (library,) = same(lambda x: conv(x).relu(), x)
    assert sum(library.report.counts.values()) == 1


def test_inputs_that_lie_otherwise_later():
    """Dynamo looks at strides, not at addresses."""
    linear, x = dense()
    fast, built = compiled(linear)
    with torch.no_grad():
        close(fast(x), linear(x))
        for offset in (1, 3, 16):
            x = torch.randn(4 * 16 + offset)[offset:].view(4, 16)
            close(fast(x), linear(x))
    assert len(built) == 1


def test_a_copy_stays_one():
    """TVM's importer makes nothing of `clone`; the first input is copied, as it is not aligned."""
    fast, _ = compiled(lambda x: x.clone())
    with torch.no_grad():
        fast(torch.randn(9)[1:])
        x = torch.zeros(8)
        fast(x).add_(1)
    assert not x.any()


def test_inputs_that_share_memory():
    def compute(x, y):
        x.add_(1)
        return y.relu() + x[1:]

    fast, _ = compiled(compute)
    with torch.no_grad(), warned("as_strided_scatter"):
        for _ in range(3):
            x = torch.randn(4, 3)
            mine = x.clone()
            close(fast(mine, mine[1:]), compute(x, x[1:]))
            close(mine, x)


def test_results_in_channels_last():
    conv = torch.nn.Conv2d(3, 4, 3).eval().to(memory_format=torch.channels_last)
    same(lambda x: (conv(x), conv(x).relu()), torch.randn(2, 3, 8, 9))


# ---- types


@pytest.mark.parametrize(
    ("compute", "make"),
    [
        (lambda x: x * 2 + 1, lambda: torch.tensor(3.0)),
        (lambda x: x.sum(), lambda: torch.randn(3, 5)),
        (lambda x: (x > 0, x.argmax(1), x.long() * 3), lambda: torch.randn(3, 5)),
        (lambda x: (~x, x & x), lambda: torch.tensor([True, False])),
        (lambda x: x // 2 + x % 3, lambda: torch.arange(10)),
        (lambda x: x + 1, lambda: torch.arange(10, dtype=torch.int8)),
        (lambda x: x * 2, lambda: torch.arange(10, dtype=torch.uint8)),
        (lambda x: (x * 2).relu(), lambda: torch.randn(3, 5, dtype=torch.float64)),
        (lambda x: (x * 2).relu(), lambda: torch.randn(3, 5, dtype=torch.float16)),
        (lambda x: (x * 2).relu(), lambda: torch.randn(3, 5, dtype=torch.bfloat16)),
        (lambda x: x.relu(), lambda: torch.empty(0, 5)),
        (lambda x: {"a": x.relu(), "b": None, "c": "text", "d": 3}.values(), lambda: torch.ones(3)),
        (lambda x: (x.relu(), [x + 1, (x + 2, 5)][0]), lambda: torch.ones(3)),
    ],
)
def test_types(compute, make):
    same(compute, make())


def test_numbers_that_change():
    """The values of Python that dynamo hands on: integers share a library as sizes do, but for 0, 1
    and those below; so do floats.
    """
    fast, built = compiled(lambda x, n: x.relu() * n + n)
    x = torch.randn(3, 5)
    with torch.no_grad(), warned("each integer below 2 that is no size") as told:
        for n in (3, 4, 5, 1, 6, -2, 4, -3, 0.5, 1.5, 2.5, True):
            close(fast(x, n), x.relu() * n + n)
    assert len(told) == 1
    assert len(built) == 7  # of 3, of all from 2 on, of 1, -2, -3; and two of other types


def test_a_place_that_moves_on():
    """As `start_pos` of a decoder: one library for all tokens but the first two."""
    linear = torch.nn.Linear(4, 4)

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("keys", torch.zeros(16, 4))

        def forward(self, x, start):
            self.keys[start : start + 1] = linear(x)
            return self.keys[: start + 1].relu(), start * 2

    mine, other = Decoder().eval(), Decoder().eval()
    fast, built = compiled(mine)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for start in range(6):
            x = torch.randn(1, 4)
            (found, number), (expected, _) = fast(x, start), other(x, start)
            close(found, expected)
            close(mine.keys, other.keys)
            assert number == start * 2
    assert len(built) == 3


def test_tensors_of_the_program():
    weight = torch.randn(4)
    same(lambda x: x * torch.tensor([1.0, 2.0, 3.0, 4.0]) + weight, torch.randn(3, 4))


def test_autocast():
    linear, x = dense()
    fast, built = compiled(linear)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        found, expected = fast(x), linear(x)
    assert found.dtype == expected.dtype == torch.bfloat16
    # Weights are halves, and what is computed is rounded to some: the product, and its sum with the
    # bias, each by half a step at most. PyTorch's own rounds x, and partial sums on some CPUs.
    w, bias = (t.detach().to(torch.bfloat16).double() for t in (linear.weight, linear.bias))
    x = x.double()
    products, exact = x @ w.T, torch.nn.functional.linear(x, w, bias)
    most = 2**-9 * (products.abs() + (exact.abs() + 2**-9 * products.abs()))
    assert ((found.double() - exact).abs() <= 1.001 * most + 1e-6).all()
    assert len(built) == 1


# ---- around it


def test_threads():
    linear, _ = dense()
    fast, built = compiled(linear)
    inputs = [torch.randn(4, 16) for _ in range(8)]

    def call(x):
        with torch.no_grad():
            return [fast(x) for _ in range(20)][-1]

    call(inputs[0])
    with ThreadPoolExecutor(4) as pool:
        for x, found in zip(inputs, pool.map(call, inputs), strict=True):
            close(found, linear(x).detach())
    assert len(built) == 1


def test_relax_dynamo():
    """TVM's own backend of torch.compile, with our pass in its pipeline."""
    from tvm import relax, transform
    from tvm.relax.frontend.torch import relax_dynamo

    found = []

    @transform.module_pass(opt_level=0)
    def look(mod, _):
        found.append(selfbyoc.report(mod).counts)
        return mod

    passes = [Partition(), look, relax.transform.RunCodegen(), ScheduleRest()]
    backend = relax_dynamo(transform.Sequential([*passes, relax.get_pipeline()]))
    network, x = Layer().eval(), torch.randn(4, 8)
    with torch.no_grad():
        close(torch.compile(network, backend=backend)(x), network(x))
    assert [sum(counts.values()) for counts in found] == [1]


def test_selfbyoc_needs_no_pytorch():
    code = "import selfbyoc, sys; assert 'selfbyoc.runtime.dynamo' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
