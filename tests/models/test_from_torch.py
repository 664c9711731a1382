"""`from_torch`: modules of PyTorch, and what TVM's frontends mean otherwise than PyTorch."""

import warnings

import numpy as np
import pytest

import selfbyoc
from selfbyoc import from_torch
from selfbyoc.errors import InputError
from selfbyoc.runtime.tolerance import first_wrong
from selfbyoc.tvm import GENERATION

torch = pytest.importorskip("torch", reason="PyTorch is not installed (make test TORCH=1)")


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.last = torch.nn.Conv2d(3, 8, 3), torch.nn.Linear(8, 5)

    def forward(self, x):
        return self.last(torch.relu(self.conv(x)).mean((2, 3)))


class Positions(torch.nn.Module):
    """As decoders number the tokens that are not padding: a running sum of bools."""

    def forward(self, ids, weight):
        places = torch.cumsum(ids != 0, -1)
        return places, weight[0].float() * places.float()


class Unknown(torch.nn.Module):
    def forward(self, x):
        return torch.special.bessel_j0(x)


def example():
    torch.manual_seed(1)
    return (torch.randn(1, 3, 9, 11),)


def test_a_module():
    (x,), network = example(), Network().eval()
    mod = from_torch(network, [x])
    counts = selfbyoc.report(selfbyoc.partition_for_tefuse(mod)).counts
    assert sum(counts.values()) > 0
    (found,) = selfbyoc.build(mod)(x.numpy())
    with torch.no_grad():
        np.testing.assert_allclose(found, network(x).numpy(), atol=1e-5)


def test_one_tensor_is_one_input():
    """Of a batch of one, whose only row would be taken for the input."""
    network = torch.nn.Linear(5, 3).eval()
    for mod in (from_torch(network, torch.ones(1, 5)), from_torch(network, [torch.ones(1, 5)])):
        ((_, shape, _),) = selfbyoc.build(mod).inputs
        assert shape == (1, 5)


def test_sums_of_bools_are_integers():
    ids, weight = torch.tensor([[3, 0, 2, 2, 0, 7]]), torch.randn(1, 6)
    mod = from_torch(Positions().eval(), (ids, weight))
    places, scaled = selfbyoc.build(mod)(ids.numpy(), weight.numpy())
    wanted = [t.numpy() for t in Positions()(ids, weight)]
    assert places.dtype == np.int64
    np.testing.assert_array_equal(places, wanted[0])
    np.testing.assert_allclose(scaled, wanted[1], rtol=1e-6)


class Computed(torch.nn.Module):
    """An op of ATen that some models have, and TVM's frontend lacks or takes for another."""

    def __init__(self, compute):
        super().__init__()
        self.compute = compute

    def forward(self, x):
        return -self.compute(x)


GRID = torch.from_numpy(np.random.default_rng(1).uniform(-1.3, 1.3, (2, 4, 3, 2)).astype("float32"))
resized, sampled = torch.nn.functional.interpolate, torch.nn.functional.grid_sample


@pytest.mark.skipif(GENERATION == "relay", reason="TVM 0.17 has no converter for them")
@pytest.mark.parametrize(
    "compute",
    [
        lambda x: torch.amax(x, 1),
        lambda x: torch.cat([torch.zeros(0), x, x * 2], 1),
        lambda x: torch.cat([x, (x > 0).int()], -1),
        lambda x: torch.amax(x, (1, -1), keepdim=True),
        lambda x: torch.amin(x, -2, keepdim=True),
        lambda x: torch.amin(x, ()),
        lambda x: torch.prod(x, 1),
        lambda x: torch.prod(x > 0, 2, keepdim=True),
        lambda x: torch.cumsum((x > 0).to(torch.int8), 2),
        lambda x: torch.div(10 * x, 3, rounding_mode="floor"),
        lambda x: torch.div(10 * x, 2.5, rounding_mode="trunc"),
        lambda x: torch.div((10 * x).int(), 3, rounding_mode="floor"),
        lambda x: torch.div((10 * x).int(), 3, rounding_mode="trunc"),
        lambda x: torch.div((10 * x).int(), x.abs() + 1, rounding_mode="floor"),
        lambda x: (10 * x).int() / 4,
        lambda x: (10 * x).int() * 0.5 + (x > 0),
        lambda x: torch.where((10 * x).int() > 2.5, 1.0, x),
        lambda x: torch.add((10 * x).int(), x, alpha=2.5),
        lambda x: (10 * x).int() % 3 - 1.5,
        lambda x: torch.where(torch.round(x).any(1), x[:, 0], 2.0),
        lambda x: torch.where((x > 2).any(), x, 0.5),
        lambda x: torch.where((x > 1).any(0), x, -1.0),
        lambda x: (10 * x).int().clamp(max=3) - (10 * x).int().clamp(min=-2),
        lambda x: (10 * x).int().clamp(max=2.5) + x.clamp(min=0.1),
        lambda x: torch.nanmean(torch.where(x > 1, float("nan"), x), 1),
        lambda x: resized(x[0], size=13, mode="linear"),
        lambda x: x[:, -1],
        lambda x: x.take(torch.tensor([[3, -2], [0, -1]])),
        lambda x: x[..., -2, [0, -1]],
        lambda x: x[:, torch.tensor([[0, 2], [1, -1]])],
        lambda x: x[:, [0, 1, -1], [1, 2, 0]],
        lambda x: x[torch.tensor([[1], [-2]]), [0, 2], torch.tensor([4, -5], dtype=torch.int32)],
        lambda x: x[[0, 1], :, [1, -1]],
        lambda x: x[:, :, torch.arange(5)[:, None], torch.arange(7)],
        lambda x: x[:, torch.arange(3)[:, None, None], [[0, 2], [4, -1]]],
        lambda x: x[1, :, torch.tensor(-2)],
        lambda x: resized(x, size=(13, 4), mode="nearest"),
        lambda x: resized(x, size=(13, 4), mode="bilinear"),
        lambda x: resized(x, scale_factor=(2, 3), mode="bicubic"),
        lambda x: resized(x, scale_factor=1.7, mode="bilinear", align_corners=True),
        lambda x: sampled(x, GRID, align_corners=True),
        lambda x: sampled(x, GRID, mode="nearest", align_corners=False),
        lambda x: sampled(x, GRID, padding_mode="border", align_corners=False),
        torch.nn.functional.elu,
        torch.nn.functional.selu,
        lambda x: torch.nn.functional.celu(x, 0.3),
        lambda x: torch.nn.functional.elu(100 * x, 0.3),
    ],
)
def test_ops(compute):
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3, 5, 7), np.float32))
    network = Computed(compute).eval()
    (found,) = selfbyoc.build(from_torch(network, (x,)))(x.numpy())
    wanted = network(x).numpy()
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6)


@pytest.mark.skipif(GENERATION == "relay", reason="TVM 0.17 reads traces")
@pytest.mark.parametrize(
    "compute",
    [
        lambda x: 2 * x[:, -1],
        lambda x: x[:, torch.tensor([-1, 0])],
        lambda x: x[torch.tensor([0, -1]), torch.tensor([-3, -1])],
        lambda x: x.take(torch.tensor([-1, 0])),
        lambda x: torch.stack([x[:, 0], x[:, -2]]),
    ],
)
def test_from_the_end_of_a_symbolic_axis(compute):
    """Of the length that it is exported with it would be right by chance."""
    network, x = Computed(compute).eval(), torch.randn(2, 6, 4)
    sizes = {1: torch.export.Dim("n", min=3, max=64)}
    program = torch.export.export(network, (x,), dynamic_shapes=(sizes,))
    library = selfbyoc.build(from_torch(program))
    for length in (3, 6, 9, 64):
        x = torch.randn(2, length, 4)
        np.testing.assert_array_equal(library(x)[0], network(x).numpy())


@pytest.mark.skipif(GENERATION == "relay", reason="TVM 0.17 reads traces")
def test_sizes_have_the_names_that_the_user_gave():
    """PyTorch's own are s77 and the like."""
    rows, n = torch.export.Dim("rows", max=9), torch.export.Dim("n", max=64)
    network, sizes = Computed(torch.tanh).eval(), ({0: rows, 1: n},)
    program = torch.export.export(network, (torch.randn(2, 6),), dynamic_shapes=sizes)
    library = selfbyoc.build(from_torch(program))
    assert library.sizes == {"rows": (9, ((0, 0),)), "n": (64, ((0, 1),))}
    with pytest.raises(InputError, match="size n: expected at most 64, found 65 in axis 1 of"):
        library(np.ones((2, 65), "float32"))
    x = torch.randn(9, 64)
    np.testing.assert_allclose(library(x)[0], network(x).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(GENERATION == "relay", reason="TVM 0.17 reads traces")
@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda x: resized(x, scale_factor=1.7, mode="bilinear"), "5 pixels by a factor of 1.7"),
        (lambda x: resized(x, size=(3, 3), mode="bilinear", antialias=True), "antialias=False"),
        (lambda x: torch.nn.functional.avg_pool2d(x, 3, divisor_override=2), "no divisor_override"),
        (
            lambda x: torch.nn.functional.max_pool2d(x, 3, return_indices=True)[1],
            "the places of the largest",
        ),
    ],
)
def test_what_the_frontend_takes_for_another_is_refused(compute, message):
    x = torch.ones((2, 3, 5, 7))
    with pytest.raises(InputError, match=message):
        from_torch(Computed(compute).eval(), (x,))


@pytest.mark.skipif(GENERATION == "relax", reason="Relax reads exported programs")
def test_no_exported_program_on_relay():
    program = torch.export.export(Network().eval(), example())
    with pytest.raises(InputError, match=r"module: TVM .* reads a torch.nn.Module"):
        from_torch(program)


@pytest.mark.skipif(GENERATION == "relay", reason="Relay reads traces")
def test_an_exported_program():
    (x,), network = example(), Network().eval()
    (found,) = selfbyoc.build(from_torch(torch.export.export(network, (x,))))(x.numpy())
    with torch.no_grad():
        np.testing.assert_allclose(found, network(x).numpy(), atol=1e-5)


def scripts():
    (x,), network = example(), Network().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated
        return {
            "traced": torch.jit.trace(network, (x,)),
            "scripted": torch.jit.script(network),
            "frozen": torch.jit.freeze(torch.jit.script(network)),
            "a function": torch.jit.trace(lambda x: torch.relu(x).mean(1), (x,)),
        }


# TVM 0.17 does not know aten::conv2d, as scripts have it.
KINDS = ["traced", "a function", *(["scripted", "frozen"] if GENERATION == "relax" else [])]


@pytest.mark.parametrize("kind", KINDS)
def test_what_torch_jit_made(kind):
    (x,), script = example(), scripts()[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mod = from_torch(script, (x,))
    library = selfbyoc.build(mod)
    assert library.inputs[0][1] == (1, 3, 9, 11)
    assert kind == "a function" or sum(library.report.counts.values()) > 0
    with torch.no_grad():
        np.testing.assert_allclose(library(x.numpy())[0], script(x).numpy(), atol=1e-5)


@pytest.mark.skipif(GENERATION == "relay", reason="Relay reads traces")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_dense_layers_of_every_float(dtype):
    linear, x = torch.nn.Linear(16, 8).eval().to(dtype), torch.randn(4, 16, dtype=dtype)
    (found,) = selfbyoc.build(from_torch(linear, (x,)))(x, results="same")
    wanted = linear(x).detach().double().numpy()
    assert found.dtype == dtype
    wrong = first_wrong(found.double().numpy(), wanted, str(dtype).removeprefix("torch."), 16)
    assert wrong is None, wrong


def test_factors_of_addmm():
    def compute(x, bias, weight):
        return torch.addmm(bias, x, weight, beta=3, alpha=-0.5)

    inputs = [torch.randn(*shape) for shape in ((4, 8), (8,), (8, 8))]
    module = Called(compute).eval()
    (found,) = selfbyoc.build(from_torch(module, inputs))(*[x.numpy() for x in inputs])
    np.testing.assert_allclose(found, compute(*inputs).numpy(), rtol=1e-5, atol=1e-6)


class Called(torch.nn.Module):
    def __init__(self, compute):
        super().__init__()
        self.compute = compute

    def forward(self, *inputs):
        return self.compute(*inputs)


def test_the_op_that_is_not_known():
    with pytest.raises(InputError, match="bessel_j0"):
        from_torch(Unknown().eval(), example())


@pytest.mark.parametrize(
    ("module", "inputs", "message"),
    [
        (lambda: "resnet18", (), "expected a torch.nn.Module or an ExportedProgram, found str"),
        (Network, (), "it is in training mode"),
        (lambda: Network().eval(), ([1.0],), "inputs: expected tensors, found list at 0"),
        (lambda: Network().eval(), (), "the module cannot be imported"),
    ],
)
def test_what_is_refused(module, inputs, message):
    with pytest.raises(InputError, match=message):
        from_torch(module(), inputs)
