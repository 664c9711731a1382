"""`from_torch` refuses what TVM's frontends would take for something else."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc import from_torch
from selfbyoc.errors import InputError
from selfbyoc.tvm import GENERATION

torch = pytest.importorskip("torch", reason="PyTorch is not installed (make test TORCH=1)")


class Computed(torch.nn.Module):
    def __init__(self, compute):
        super().__init__()
        self.compute = compute

    def forward(self, x):
        return self.compute(x)


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda x: torch.nn.functional.dropout(x, 0.5, True), "draws random numbers"),
        (lambda x: x + torch.rand_like(x), "draws random numbers"),
        (lambda x: torch.bernoulli(x), "draws random numbers"),
        (lambda x: torch.nn.functional.rrelu(x, training=True), "draws random numbers"),
        (
            lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.1),
            "draws random numbers",
        ),
        (
            lambda x: torch.nn.functional.batch_norm(
                x, torch.zeros(3), torch.ones(3), training=True
            ),
            "by the statistics of its input",
        ),
    ],
)
def test_what_is_not_the_same_at_each_call_is_refused(compute, message):
    """Which eval() makes sure of, but for what is written as a function."""
    x = torch.full((2, 3, 5, 7), 0.5)
    with pytest.raises(InputError, match=message):
        from_torch(Computed(compute).eval(), (x,))


@pytest.mark.parametrize("weight", [None, torch.tensor([0.5, 2.0, 3.0])])
def test_a_norm_without_statistics_of_its_own(weight):
    """What standardises the weights of a convolution; TVM 0.17 takes it for one that has them."""
    module = Computed(
        lambda x: torch.nn.functional.batch_norm(x, None, None, weight, None, True, 0.0, 1e-3)
    ).eval()
    x = 3 + 2 * torch.randn(2, 3, 5, 7)
    if GENERATION == "relay":
        with pytest.raises(InputError, match="by the statistics of its input"):
            from_torch(module, (x,))
        return
    library = selfbyoc.build(from_torch(module, (x,)))
    np.testing.assert_allclose(library(x)[0], module(x).numpy(), rtol=1e-5, atol=1e-5)


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(3))

    def forward(self, x):
        self.calls.add_(1)
        return x + self.calls


@pytest.mark.parametrize(
    ("module", "what"),
    [(Counting(), "buffer 'calls'"), (Computed(lambda x: 2 * x.add_(1)), "input")],
)
def test_what_is_written_and_kept_is_refused(module, what):
    """A library would forget it: the second call would be wrong."""
    with pytest.raises(InputError, match=f"it writes its {what}.*does not keep"):
        from_torch(module.eval(), (torch.ones(2, 3),))


def test_what_is_written_and_forgotten():
    x = torch.randn(2, 3)
    library = selfbyoc.build(from_torch(Computed(lambda x: (2 * x).add_(1)).eval(), (x,)))
    np.testing.assert_allclose(library(x)[0], 2 * x + 1, rtol=1e-6)


def test_what_would_draw_but_does_not():
    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop, self.last = torch.nn.Dropout(0.4), torch.nn.Linear(7, 5)
            self.norm = torch.nn.BatchNorm2d(3)

        def forward(self, x):
            return torch.nn.functional.dropout(self.last(self.drop(self.norm(x))), 0.0)

    x, network = torch.randn((2, 3, 5, 7)), Network().eval()
    library = selfbyoc.build(from_torch(network, (x,)))
    assert library.report.counts == {"dense": 1}
    np.testing.assert_allclose(library(x)[0], network(x).detach().numpy(), atol=1e-5)
