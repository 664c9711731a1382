"""Modules of PyTorch in other floats than float32: whatever is convolved, multiplied or normed."""

import pytest

import selfbyoc
from selfbyoc.runtime.tolerance import first_wrong

torch = pytest.importorskip("torch", reason="PyTorch is not installed (make test TORCH=1)")
nn = torch.nn


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.grouped = nn.Sequential(nn.Conv2d(8, 8, 3, 2, groups=2, bias=False), nn.BatchNorm2d(8))
        self.up = nn.ConvTranspose2d(8, 4, 3, 2, 1, 1, groups=2)
        self.norm = nn.GroupNorm(2, 4)

    def forward(self, x):
        return self.norm(self.up(torch.relu(self.grouped(self.conv(x)))))


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.up = nn.Conv1d(4, 8, 3), nn.ConvTranspose1d(8, 4, 3)
        self.deep = nn.Conv3d(1, 2, 2)
        self.norm, self.plain = nn.LayerNorm(16), nn.LayerNorm((4, 16), elementwise_affine=False)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x):
        rows = self.norm(self.up(self.conv(x)))
        rows = self.attention(rows, rows, rows)[0]
        return self.plain(rows), self.deep(rows.reshape(-1, 1, 4, 4, 4))


def seeded(make):
    torch.manual_seed(0)
    model = make().eval()
    for part in model.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2)
    return model


def computed(model, x):
    library = selfbyoc.build(selfbyoc.from_torch(model, (x,)))
    with torch.no_grad():
        expected = model(x)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for found, e in zip(library(x, results="same"), expected, strict=True):
        assert (found.dtype, found.shape) == (e.dtype, e.shape)
        dtype = str(e.dtype).removeprefix("torch.")
        wrong = first_wrong(found.double().numpy(), e.double().numpy(), dtype, 256)
        assert wrong is None, wrong
    return library.report.counts


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("make", "shape"), [(Images, (1, 3, 9, 9)), (Rows, (1, 4, 16))], ids=["images", "rows"]
)
def test_one_type(make, shape, dtype):
    counts = computed(seeded(make).to(dtype), torch.randn(shape).to(dtype))
    if dtype != torch.float64:
        assert sum(counts.values()) > 1


def test_a_norm_of_another_type():
    """As under autocast: what is normed is half, and the statistics are float32."""

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm2d(3)

        def forward(self, x):
            return self.norm(x)

    model = seeded(Mixed)
    computed(model, torch.randn(2, 3, 4, 4).bfloat16())


def test_a_convolution_of_halves():
    """The bias, too."""
    counts = computed(nn.Conv2d(3, 4, 3).eval().half(), torch.randn(1, 3, 5, 5).half())
    assert sum(counts.values()) == 1


class Integers(nn.Module):
    """Elements wrap around in 32 bits; what is summed or multiplied over an axis is int64."""

    def forward(self, x):
        square = x * x
        products = (x.prod(), (x % 5).reshape(4, 8).prod(1), x[:9].cumprod(0))
        return square, square.sum(), square.cumsum(0), square < 0, *products, x.prod(dtype=x.dtype)


def test_integers_of_32_bits():
    x = torch.randint(1, 60000, (32,), dtype=torch.int32, generator=torch.manual_seed(0))
    library = selfbyoc.build(selfbyoc.from_torch(Integers().eval(), x), cache=False)
    for found, wanted in zip(library(x.numpy()), Integers()(x), strict=True):
        assert torch.equal(torch.from_numpy(found.copy()), wanted)
