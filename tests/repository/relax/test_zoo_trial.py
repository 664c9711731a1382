"""One model of the zoo tried, from PyTorch: `tools/zoo_models/trial.py`."""

import importlib
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (make test TORCH=1)")

TOOLS = Path(__file__).parents[3] / "tools"


@pytest.fixture
def zoo(monkeypatch):
    """The parts by name."""
    monkeypatch.syspath_prepend(str(TOOLS))
    names = ("model", "trial", "truth", "weights")
    return SimpleNamespace(**{n: importlib.import_module(f"zoo_models.{n}") for n in names})


def network():
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 6, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(6, 10),
    )  # fmt: skip


class Unknown(torch.nn.Module):
    def forward(self, x):
        return torch.special.bessel_j0(x)


def tried(zoo, module, path, alone=False):
    """The stages that a trial told, and what it found."""
    inputs = (torch.randn(1, 3, 17, 15),)

    def make(size):
        return zoo.model.Made(zoo.weights.reseeded(module(), inputs), inputs)

    model = zoo.model.Model("network", "tests", make)
    zoo.trial.Trial(model, "small", path, alone).run()
    *stages, found = map(json.loads, path.read_text().splitlines())
    return [told["stage"] for told in stages], found


@pytest.mark.parametrize("alone", [False, True])
def test_a_model_is_right(zoo, tmp_path, alone):
    stages, found = tried(zoo, network, tmp_path / "trial", alone)
    assert stages == ["make", "export", "import", "truth", "partition", "build", "run"]
    assert found["outcome"] == "right"
    assert found["error"] <= found["allowed"] < 1e-4
    assert found["live"] > 1e-3
    assert bool(found["composites"]) is not alone
    assert found["ops"] > 5


def test_the_op_that_the_importer_refuses(zoo, tmp_path):
    _, found = tried(zoo, Unknown, tmp_path / "trial")
    assert (found["outcome"], found["stage"]) == ("failed", "import")
    assert "bessel_j0" in found["op"] + found["reason"]


def test_a_model_that_cannot_be_made(zoo, tmp_path):
    def broken():
        raise TypeError("no such option")

    _, found = tried(zoo, broken, tmp_path / "trial")
    assert (found["stage"], found["reason"]) == ("make", "TypeError: no such option")


def test_weights_live(zoo):
    """No ReLU is silent, no batch norm is trivial, and another seed gives others."""
    inputs = (torch.randn(1, 3, 17, 15),)
    one, other = (zoo.weights.reseeded(network(), inputs, seed) for seed in (0, 1))
    with torch.no_grad():
        hidden = one[:3](torch.randn(4, 3, 17, 15))
        assert (hidden > 0).any(dim=(0, 2, 3)).all()
        assert not torch.equal(one(*inputs), other(*inputs))
    assert not one.training
    assert one[1].running_var.std() > 0
    assert one[1].running_mean.abs().min() > 0


def judged(zoo, found, truth, theirs=None):
    theirs = truth if theirs is None else theirs
    return zoo.truth.judged([found], zoo.truth.Truth([], [truth], [theirs], 1.0))


def test_what_is_wrong(zoo):
    truth = np.linspace(-2, 2, 9)
    plain = truth.astype("float32")
    assert judged(zoo, plain, truth, plain)["reason"] == ""
    assert "off by 5.0e-01" in judged(zoo, plain + 1, truth, plain)["reason"]
    assert judged(zoo, np.where(truth > 1, np.nan, plain), truth, plain)["reason"]
    assert "expected" in judged(zoo, plain[1:], truth, plain)["reason"]
    # Where PyTorch itself is off by as much, so may ours be.
    assert judged(zoo, plain + 1e-3, truth, plain - 1e-3)["reason"] == ""
