"""PyTorch's exported quantised models (pt2e of torchao), as quantized_decomposed writes them."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc.errors import InputError

torch = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization.fx._decomposed")
OPS = torch.ops.quantized_decomposed
U8, S8 = (0, 255, torch.uint8), (-128, 127, torch.int8)


def weight(seed, *shape):
    """Levels, a scale and a zero point of each output."""
    generator = torch.Generator().manual_seed(seed)
    levels = torch.randint(-127, 128, shape, generator=generator, dtype=torch.int8)
    scales = 0.002 + 0.01 * torch.rand(shape[0], generator=generator)
    return levels, scales, torch.zeros(shape[0], dtype=torch.int64)


class Image(torch.nn.Module):
    """Two convolutions, the second with a residual, and a dense layer: static, by channel."""

    def __init__(self):
        super().__init__()
        for name, seed, shape in (("a", 1, (8, 3, 3, 3)), ("b", 2, (8, 8, 3, 3)), ("c", 3, (5, 8))):
            for part, value in zip(("w", "s", "z"), weight(seed, *shape), strict=True):
                self.register_buffer(f"{name}_{part}", value)
        self.register_buffer("bias", torch.randn(8, generator=torch.Generator().manual_seed(4)))

    def weight(self, name):
        parts = (getattr(self, f"{name}_{part}") for part in "wsz")
        return OPS.dequantize_per_channel(*parts, 0, *S8)

    def forward(self, x):
        def levels(value, scale, zero):
            return OPS.quantize_per_tensor(value, scale, zero, *U8)

        def floats(value, scale, zero):
            return OPS.dequantize_per_tensor(value, scale, zero, *U8)

        conv = torch.nn.functional.conv2d
        x = floats(levels(x, 0.03, 111), 0.03, 111)
        y = levels(torch.relu(conv(x, self.weight("a"), self.bias, padding=1)), 0.02, 0)
        z = conv(floats(y, 0.02, 0), self.weight("b"), padding=1) + floats(y, 0.02, 0)
        z = floats(levels(torch.relu(z).mean((2, 3)), 0.01, 0), 0.01, 0)
        return torch.nn.functional.linear(z, self.weight("c"))


def build(module, *args):
    program = torch.export.export(module.eval(), args)
    return selfbyoc.build(selfbyoc.from_torch(program))


def test_a_static_model_is_levels():
    module, x = Image(), torch.randn(2, 3, 9, 11, generator=torch.Generator().manual_seed(5))
    library = build(module, x)
    assert library.report.counts == {"conv2d_int8": 2, "dense_int8": 1}
    wanted = module(x).numpy()
    # One step of the last levels, where theirs and ours round a float differently.
    np.testing.assert_allclose(library(x.numpy())[0], wanted, atol=0.01 * np.abs(wanted).max())


class Rows(torch.nn.Module):
    """As a dynamic quantiser writes it: a scale and a zero point of each call."""

    def __init__(self):
        super().__init__()
        for part, value in zip("wsz", weight(6, 9, 40), strict=True):
            self.register_buffer(part, value)

    def forward(self, x):
        scale, zero = OPS.choose_qparams.tensor(x, 0, 255, 1e-6, torch.uint8)
        x = OPS.quantize_per_tensor.tensor(x, scale, zero, *U8)
        x = OPS.dequantize_per_tensor.tensor(x, scale, zero, *U8)
        return torch.nn.functional.linear(
            x, OPS.dequantize_per_channel(self.w, self.s, self.z, 0, *S8)
        )


@pytest.mark.parametrize("shift", [0.0, 3.0, -3.0])  # ranges that have 0 inside, or outside
def test_a_dynamic_model_is_levels(shift):
    module = Rows()
    x = shift + torch.randn(7, 40, generator=torch.Generator().manual_seed(7))
    library = build(module, x)
    assert library.report.counts == {"dense_int8": 1}
    wanted = module(x).numpy()
    np.testing.assert_allclose(library(x.numpy())[0], wanted, atol=5e-3 * np.abs(wanted).max())
    nothing = np.zeros((7, 40), "float32")  # a scale of eps
    np.testing.assert_array_equal(library(nothing)[0], np.zeros((7, 9)))


class Levels(torch.nn.Module):
    scale = 0.25

    def __init__(self, low, high, dtype, axis=None):
        super().__init__()
        self.told, self.axis = (low, high, dtype), axis
        self.register_buffer("scales", torch.tensor([0.5, 0.25, 0.125], dtype=torch.float64))
        self.register_buffer("zeros", torch.tensor([3, 0, 7]))

    def forward(self, x):
        if self.axis is None:
            return OPS.quantize_per_tensor(x, self.scale, 3, *self.told)
        return OPS.quantize_per_channel(x, self.scales, self.zeros, self.axis, *self.told)


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [(0, 255, torch.uint8), (0, 127, torch.uint8), (-128, 127, torch.int8), (-7, 90, torch.int8)],
)
def test_levels_are_those_of_pytorch(low, high, dtype, axis):
    """Of fewer levels than the type has, too: those beyond become the outermost."""
    module = Levels(low, high, dtype, axis)
    x = torch.linspace(-60, 60, 5 * 3 * 31).reshape(5, 3, 31)
    np.testing.assert_array_equal(build(module, x)(x.numpy())[0], module(x).numpy())


def test_levels_that_nobody_reads():
    program = torch.export.export(Levels(0, 100, torch.int16), (torch.randn(2, 3),))
    with pytest.raises(InputError, match="expected levels of int8, uint8 or int32, found int16"):
        selfbyoc.from_torch(program)


@pytest.mark.parametrize("bad", [0.0, -0.5, float("nan"), float("inf")])
@pytest.mark.parametrize("axis", [None, 1])
def test_scales_that_mean_nothing_are_refused(bad, axis):
    module = Levels(0, 255, torch.uint8, axis)
    module.scale = bad
    module.scales[1] = bad
    program = torch.export.export(module, (torch.randn(2, 3),))
    with pytest.raises(InputError, match=r"quantize_per_.*expected finite scales above 0"):
        selfbyoc.from_torch(program)
