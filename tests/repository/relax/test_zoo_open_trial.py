"""One model of the zoo with an open size tried: `tools/zoo_models/opened.py`."""

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
    names = ("model", "opened", "open_truth", "sizes", "truth")
    return SimpleNamespace(**{n: importlib.import_module(f"zoo_models.{n}") for n in names})


class Picture(torch.nn.Module):
    """`turned`: its first output has the channels before the pictures."""

    def __init__(self, turned=False):
        super().__init__()
        self.inner, self.turned = torch.nn.Linear(5, 3), turned

    def forward(self, x):
        y = torch.relu(self.inner(x.flatten(1)))
        return (y.T, y) if self.turned else (y,)


class Text(torch.nn.Module):
    """A table of 90 positions."""

    def __init__(self):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(1000, 8), torch.nn.Embedding(90, 8)
        self.register_buffer("count", torch.arange(90)[None])

    def forward(self, *inputs):
        ids, mask = inputs
        x = self.words(ids) + self.places(self.count[:, : ids.shape[1]])
        return x * mask[..., None]


class Closed(torch.nn.Module):
    def forward(self, x):
        return x.reshape(2, -1).sum(1)


def made(zoo, module):
    picture = torch.randn(1, 1, 5)
    words = torch.randint(3, 1000, (1, 6))
    inputs = (words, torch.ones_like(words)) if isinstance(module, Text) else (picture,)
    return zoo.model.Made(module.eval(), inputs)


def tried(zoo, module, path, alone=False, is_timed=False):
    """The stages that a trial told, and all that it found."""
    model = zoo.model.Model("network", "tests", lambda size: made(zoo, module()))
    zoo.opened.Opened(model, "small", path, alone, is_timed).run()
    told = [json.loads(line) for line in path.read_text().splitlines()]
    return [t["stage"] for t in told if "outcome" not in t], [t for t in told if "outcome" in t]


def test_a_batch_is_right(zoo, tmp_path):
    stages, (found,) = tried(zoo, Picture, tmp_path / "trial")
    before = ["make", "export", "import", "truth", "build"]
    assert stages == before + ["run", "compare"] * 5
    assert found["outcome"] == "right"
    assert found["facts"] == {"open": "batch", "most": "128", "sizes": "1, 2, 7, 33, 128"}
    assert 0 < found["error"] <= found["allowed"] < 1e-4
    assert found["composites"] == {"dense": 1}
    assert found["live"] > 1e-3


def test_a_sequence_ends_with_the_table(zoo, tmp_path):
    _, (found,) = tried(zoo, Text, tmp_path / "trial", alone=True)
    assert found["outcome"] == "right"
    assert found["facts"] == {"open": "sequence", "most": "90", "sizes": "1, 2, 7, 33"}


def test_what_pytorch_does_not_export(zoo, tmp_path):
    _, (found,) = tried(zoo, Closed, tmp_path / "trial")
    assert (found["outcome"], found["stage"]) == ("failed", "export")
    assert found["reason"].startswith("NotOpen: UserError: You marked batch as dynamic but ")
    assert found["facts"]["open"] == "batch"


def test_one_size_is_wrong(zoo, tmp_path, monkeypatch):
    """The reason names it, whatever the others are."""
    real = zoo.opened.Opened._built

    class Off:
        def __init__(self, library):
            self.library, self.report = library, library.report

        def __call__(self, *arrays):
            return [one + (len(one) == 7) for one in self.library(*arrays)]

    monkeypatch.setattr(zoo.opened.Opened, "_built", lambda self, mod: Off(real(self, mod)))
    _, (found,) = tried(zoo, Picture, tmp_path / "trial")
    assert found["outcome"] == "wrong"
    assert found["reason"].startswith("batch 7: off by ")


def test_what_has_no_kernel_is_told(zoo):
    record = SimpleNamespace
    records = [
        record(composite="dense", cause="fallback", level_reason="", reason="no kernel"),
        record(composite="conv2d", cause="fallback", level_reason="too large", reason="it fits"),
        record(composite="softmax", cause="shape", level_reason="", reason="no such axis"),
    ]
    told = zoo.opened._without_kernel(SimpleNamespace(records=records))
    assert told == ["conv2d: too large", "dense: no kernel"]


def test_times_of_both(zoo, tmp_path, monkeypatch):
    monkeypatch.setattr(zoo.opened, "LEAST", 0.001)
    _, (first, found) = tried(zoo, Picture, tmp_path / "trial", is_timed=True)
    assert first["outcome"] == found["outcome"] == "right"
    assert "times" not in first  # told before, should timing be the end of it
    assert set(found["times"]) == {"open", "static"}
    assert all(time > 0 for time in found["times"].values())


@pytest.mark.parametrize("seconds", [0.0, 60.0])
@pytest.mark.parametrize("turned", [False, True])
def test_the_truth_of_pictures(zoo, monkeypatch, turned, seconds):
    """Of few, of all, or size by size where an output has other axes: a wrong last one shows."""
    monkeypatch.setattr(zoo.open_truth, "MOST_SECONDS", seconds)
    one = made(zoo, Picture(turned))
    judge = zoo.open_truth.judge_of(one, "batch", zoo.sizes.SIZES)
    one.module.float()
    for size in zoo.sizes.SIZES:
        with torch.no_grad():
            found = [o.numpy() for o in one.module(*zoo.sizes.inputs_at(one, "batch", size))]
        assert judge.judged(size, found)["reason"] == ""
        assert judge.judged(size, [np.concatenate([f, f]) for f in found])["reason"]
        found[-1][-1] += 1
        assert "off by" in judge.judged(size, found)["reason"]


def test_the_last_number_that_fits(zoo):
    for most in (0, 1, 7, 64, 89, 99, 100):
        assert zoo.sizes._last(lambda n, most=most: n <= most, 100) == most
