"""What PyTorch writes and reads by indices, along one axis."""

import pytest

import selfbyoc
from selfbyoc.errors import InputError

torch = pytest.importorskip("torch", reason="PyTorch is not installed (make test TORCH=1)")


class Indexed(torch.nn.Module):
    """A cache that is written at places, sums by group, and windows of an image."""

    def forward(self, cache, places, new, groups, rows):
        written = cache.clone()
        written[:, :, places] = new
        return (
            written * 1,
            rows.index_add(0, groups[0], rows, alpha=2),
            torch.zeros(3, 4).scatter_add(0, groups, rows),
            rows.unfold(0, 2, 2).unfold(1, 3, 1),
        )


def arguments():
    torch.manual_seed(0)
    return (
        torch.randn(1, 2, 5, 4),
        torch.tensor([3, -1, 0]),
        torch.randn(1, 2, 3, 4),
        torch.tensor([[0, 2, 1, 0], [2, 2, 1, 1]]),
        torch.randn(4, 4),
    )


def test_they_are_pytorchs():
    given, model = arguments(), Indexed().eval()
    library = selfbyoc.build(selfbyoc.from_torch(model, given))
    for found, expected in zip(library(*given, results="same"), model(*given), strict=True):
        assert found.dtype == expected.dtype
        torch.testing.assert_close(found, expected)
    assert set(library.index_bounds.values()) >= {(-5, 4)}  # a call with others is an error


def test_several_axes_of_more():
    """Their indices are looked at by nobody: PyTorch raises for one of nothing."""

    class Corners(torch.nn.Module):
        def forward(self, x, places, new):
            return torch.index_put(x, (places, places), new)

    given = torch.randn(3, 3, 2), torch.tensor([0, 2]), torch.randn(2, 2)
    with pytest.raises(InputError, match=r"index_put.*an index of one axis or of each, found 2"):
        selfbyoc.from_torch(Corners().eval(), given)


class Cache(torch.nn.Module):
    def forward(self, cache, places, new):
        written = cache.clone()
        written[:, :, places] = new
        return written


def test_a_cache_that_is_written():
    given, model = arguments()[:3], Cache().eval()
    library = selfbyoc.build(selfbyoc.from_torch(model, given))
    torch.testing.assert_close(library(*given, results="same")[0], model(*given))
    with pytest.raises(InputError, match=r"places.*5"):
        library(given[0], torch.tensor([0, 5, 1]), given[2])
