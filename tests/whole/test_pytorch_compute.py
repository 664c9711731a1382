"""An op customised in TE, in a network from PyTorch (WISHES A65), on both generations.

"I customize a op in 'te' and want to put it in a network from Pytorch."
"""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import BUILTIN, Composite, op
from selfbyoc.tvm import GENERATION, te, tir

torch = pytest.importorskip("torch", reason="PyTorch is not installed (make test TORCH=1)")


def my_conv2d(ins, call):
    """NCHW, one group: pads a copy, then sums over the window."""
    data, kernel = ins
    top, left, _, _ = call.attrs["padding"]
    down, along = call.attrs["strides"]
    (n, c, h, w), (_, _, kh, kw) = ([int(e) for e in t.shape] for t in ins)
    shape = [int(e) for e in call.outputs[0].shape]
    tall, wide = (shape[2] - 1) * down + kh, (shape[3] - 1) * along + kw

    def padded(b, i, y, x):
        inside = tir.all(y >= top, y < top + h, x >= left, x < left + w)
        return tir.if_then_else(inside, data(b, i, y - top, x - left), tir.const(0, data.dtype))

    image = te.compute((n, c, tall, wide), padded, name="my_pad")
    ri, ry, rx = (te.reduce_axis((0, e), name=a) for e, a in ((c, "i"), (kh, "y"), (kw, "x")))

    def element(b, o, y, x):
        inputs = image(b, ri, y * down + ry, x * along + rx)
        return te.sum(inputs * kernel(o, ri, ry, rx), axis=[ri, ry, rx])

    return te.compute(shape, element, name="my_conv2d")


def gate(ins, call):
    """Another op in the place of relu, to see that the user's own is what runs."""
    (x,) = ins
    half = tir.const(0.5, "float32")
    return te.compute(x.shape, lambda *i: tir.Max(x(*i), half), name="gate")


class Schedule:
    """The user's schedule: rows in parallel; and the blocks it was given."""

    def __init__(self):
        self.blocks = []

    def __call__(self, sch, ops, target):
        self.blocks.append([name for info in ops for name in info.info.blocks])
        for block in ops.conv2d.blocks:
            sch.parallel(sch.get_loops(block)[1])


class Network(torch.nn.Module):
    """Two convolutions, the first of a form that the composite takes, and a classifier."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.second = torch.nn.Conv2d(8, 6, 1)
        self.last = torch.nn.Linear(6, 5)

    def forward(self, image):
        hidden = torch.relu(self.first(image))
        return self.last(torch.sigmoid(self.second(hidden)).mean((2, 3)))

    def with_gate(self, image):
        """What it computes with `gate` for the ReLU."""
        hidden = torch.clamp(self.first(image), min=0.5)
        return self.last(torch.sigmoid(self.second(hidden)).mean((2, 3)))


def imported(network, image):
    """The network as this generation imports it, with its weights by name."""
    if GENERATION == "relax":
        from tvm.relax.frontend.torch import from_exported_program

        exported = torch.export.export(network, (image,))
        return from_exported_program(exported, unwrap_unit_return_tuple=True), None
    from tvm import relay

    traced = torch.jit.trace(network, image)
    return relay.frontend.from_pytorch(traced, [("image", tuple(image.shape))])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("own", [False, True], ids=["conv2d", "conv2d and gate"])
def test_a_compute_of_ones_own_in_a_network(own):
    torch.manual_seed(0)
    network, image = Network().eval(), torch.randn(2, 3, 17, 15)
    with torch.no_grad():
        mod, params = imported(network, image)
        expected = (network.with_gate if own else network)(image).numpy()
        other = (network if own else network.with_gate)(image).numpy()
    schedule = Schedule()
    mine = Composite(
        "mine",
        lambda x, w, b: op.relu(op.bias_add(op.conv2d(x, w, strides=(2, 2)), b)),
        schedule,
        compute={"conv2d": my_conv2d, "relu": gate} if own else {"conv2d": my_conv2d},
    )
    library = selfbyoc.build(mod, params=params, composites=[mine, *BUILTIN])
    assert library.report.counts["mine"] == 1
    assert sum(library.report.counts.values()) > 1  # beside the built-in ones
    (found,) = library(image.numpy())
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert not np.allclose(found, other, rtol=1e-3, atol=1e-3)
    assert schedule.blocks
    assert all(names[:2] == ["my_pad", "my_conv2d"] for names in schedule.blocks)
