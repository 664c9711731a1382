"""Programs of torch.export with open sizes: shapes as PyTorch knows them."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import from_torch
from selfbyoc.codegen.type_inference import check_shapes
from selfbyoc.errors import ComputeError, InputError
from selfbyoc.graph import OpGraph, Value
from selfbyoc.tvm import GENERATION

torch = pytest.importorskip("torch", reason="PyTorch is not installed (make test TORCH=1)")
relax_only = pytest.mark.skipif(GENERATION == "relay", reason="Relax reads exported programs")


def table(x, positions):
    """As position embeddings: a table of 40 rows cut to the length."""
    return x + positions[:, : x.shape[1]]


def middle(x, positions):
    return x[:, 2:] * 2


def repeated(x, positions):
    return x.mean(1, keepdim=True).repeat(1, x.shape[1], 2)


def stacked(x, positions):
    """All rows of the batch as one axis and back, and a product with an expanded matrix."""
    rows = x.reshape(-1, 8) + 1
    matrix = positions[0, :8].expand(x.shape[0], 8, 8)
    return torch.bmm(rows.reshape(x.shape[0], x.shape[1], 8), matrix)


def masked(x, positions):
    n = x.shape[1]
    seen = torch.ones(n, n, dtype=torch.bool).tril()
    scores = (x @ x.transpose(1, 2)).masked_fill(~seen, float("-inf"))
    return scores.softmax(-1)


def joined(x, positions):
    return torch.cat([x, x], 1)


CASES = {f.__name__: f for f in (table, middle, repeated, stacked, masked, joined)}


class Module(torch.nn.Module):
    def __init__(self, compute):
        super().__init__()
        self.compute = compute
        self.register_buffer("positions", torch.randn(1, 40, 8))

    def forward(self, x):
        return self.compute(x, self.positions)


def exported(case, most):
    torch.manual_seed(0)
    module = Module(CASES[case])
    sizes = {0: torch.export.Dim("batch", max=8), 1: torch.export.Dim("n", min=4, max=most)}
    return module, torch.export.export(module, (torch.randn(2, 5, 8),), dynamic_shapes=(sizes,))


# Of masked, no composite takes the product with both sizes open.
@relax_only
@pytest.mark.filterwarnings("ignore::selfbyoc.errors.FallbackWarning")
@pytest.mark.parametrize("case", CASES)
def test_open_sizes(case):
    module, program = exported(case, 40)
    mod = from_torch(program)
    text = str(mod["main"])
    assert "match_cast" not in text
    assert "ndim" not in text
    library = selfbyoc.build(mod, cache=False)
    for batch, n in ((1, 4), (2, 7), (3, 40)):
        x = torch.randn(batch, n, 8)
        np.testing.assert_allclose(library(x)[0], module(x), rtol=1e-5, atol=1e-5)


def attended(x, positions):
    q = (x @ positions[0, :8]).reshape(x.shape[0], x.shape[1], -1, 4).transpose(1, 2)
    y = torch.nn.functional.scaled_dot_product_attention(q, q, q).transpose(1, 2)
    rows = y.reshape(*y.shape[:-2], -1).contiguous().view(-1, 8)
    return (rows @ positions[0, :8]).view(x.shape)


@relax_only
def test_a_view_of_what_has_other_strides_once_decomposed():
    module, x = Module(attended).eval(), torch.randn(2, 5, 8)
    library = selfbyoc.build(from_torch(module, [x]), cache=False)
    assert "attention" in "".join(library.report.counts)
    np.testing.assert_allclose(library(x)[0], module(x), rtol=1e-5, atol=1e-5)


class Halved(torch.nn.Module):
    """A convolution of half the size, resized back and joined with the image."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 3, 3, 2, 1), torch.nn.BatchNorm2d(3)

    def forward(self, image):
        smaller = self.norm(self.conv(image)).relu()
        larger = torch.nn.functional.interpolate(smaller, scale_factor=2.0, mode="nearest")
        smooth = torch.nn.functional.interpolate(smaller, size=image.shape[2:], mode="bilinear")
        return torch.cat([image, larger, smooth], 1)


@relax_only
@pytest.mark.filterwarnings("ignore::selfbyoc.errors.FallbackWarning")
def test_an_image_whose_sides_are_multiples():
    """Said as `2 * s`: a symbol for each side, which the call gives, and half of it inside."""
    module = Halved().eval().requires_grad_(False)
    sides = {n: 2 * torch.export.Dim(f"s{n}", max=40) for n in (2, 3)}
    program = torch.export.export(module, (torch.randn(1, 3, 8, 6),), dynamic_shapes=(sides,))
    library = selfbyoc.build(from_torch(program), cache=False)
    assert [library.sizes[f"image_{axis}"] for axis in (2, 3)] == [(80, ((0, 2),)), (80, ((0, 3),))]
    for height, width in ((2, 2), (4, 10), (34, 80)):
        image = torch.randn(1, 3, height, width)
        np.testing.assert_allclose(library(image)[0], module(image), rtol=1e-5, atol=1e-5)
    with pytest.raises(InputError, match=r"image_2 // 2 \* 2: expected 4, found 5 in axis 2"):
        library(torch.randn(1, 3, 5, 6))


@relax_only
def test_beyond_the_bound():
    library = selfbyoc.build(from_torch(exported("table", 40)[1]), cache=False)
    with pytest.raises(InputError, match="size n: expected at most 40, found 41"):
        library(torch.randn(1, 41, 8))


def test_an_extent_that_nobody_knows_is_an_error():
    """TE ends the process where it is given none."""
    value = Value((2, None), "float32", "x")
    with pytest.raises(ComputeError, match=r"composite dense: x is .* expected extents"):
        check_shapes("dense", OpGraph((value,), (), (value,)))


@relax_only
def test_a_size_that_pytorch_makes_a_constant_is_told():
    """PyTorch's max_pool1d takes sizes as numbers, and its decompositions run it."""
    conv = torch.nn.Conv1d(16, 64, 7, 2, 3)
    model = torch.nn.Sequential(conv, torch.nn.ReLU(), torch.nn.MaxPool1d(2)).eval()
    size = 8 * torch.export.Dim("n", min=2, max=500)
    given = torch.randn(2, 16, 320)
    with torch.enable_grad():  # with gradients PyTorch pools by another function
        program = torch.export.export(model, (given,), dynamic_shapes=({2: size},))
    with pytest.raises(InputError, match=r"makes 8\*\w+ of input a constant .*max_pool1d"):
        selfbyoc.from_torch(program)
