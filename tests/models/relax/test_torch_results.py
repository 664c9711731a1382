"""What a module of PyTorch returns beside tensors."""

import pytest

import selfbyoc
from selfbyoc.errors import InputError

torch = pytest.importorskip("torch", reason="PyTorch is not installed (make test TORCH=1)")


class Returning(torch.nn.Module):
    """What `of` makes of x."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, x):
        return self.of(x)


@pytest.mark.parametrize(
    "of",
    [
        lambda x: (x.relu(), None),
        lambda x: (None, {"a": x.relu(), "b": [None, (x + 1, None)]}),
    ],
    ids=["after", "inside"],
)
def test_none_is_left_out(of):
    x, model = torch.randn(2, 4), Returning(of).eval()
    library = selfbyoc.build(selfbyoc.from_torch(model, (x,)))
    expected = [t for t in torch.utils._pytree.tree_leaves(model(x)) if t is not None]
    for found, e in zip(library(x, results="same"), expected, strict=True):
        torch.testing.assert_close(found, e)


@pytest.mark.parametrize("is_open", [False, True])
def test_a_number_is_no_result(is_open):
    x, model = torch.randn(2, 4), Returning(lambda x: (x.relu(), x.shape[0])).eval()
    sizes = ({0: torch.export.Dim("rows")},) if is_open else None
    program = torch.export.export(model, (x,), dynamic_shapes=sizes)
    with pytest.raises(InputError, match=r"returns the number .*; leave it out"):
        selfbyoc.from_torch(program)
