"""A PyTorch model into composites: by `torch.export` and Relax, or traced and by Relay."""

import numpy as np
import torch

import selfbyoc
from selfbyoc._tvm import GENERATION


class Network(torch.nn.Module):
    """A convolution, pooling and two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 32, 3, stride=2, padding=1)
        self.pool = torch.nn.AdaptiveAvgPool2d(1)
        self.hidden = torch.nn.Linear(32, 64)
        self.last = torch.nn.Linear(64, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Image -> scores."""
        features = self.pool(torch.relu(self.conv(image))).flatten(1)
        return self.last(torch.relu(self.hidden(features)))


def by_relax(network, image):
    """The exported program as a module; what only training needs is taken apart."""
    from tvm import relax
    from tvm.relax.frontend.torch import from_exported_program

    exported = torch.export.export(network, (image,))
    mod = from_exported_program(exported, unwrap_unit_return_tuple=True)
    return relax.transform.DecomposeOpsForInference()(mod), None


def by_relay(network, image):
    """The traced network as a module, and its weights by name."""
    from tvm import relay

    return relay.frontend.from_pytorch(torch.jit.trace(network, image), [("image", image.shape)])


def main() -> None:
    """Import, partition, build, compare with PyTorch."""
    torch.manual_seed(0)
    network, image = Network().eval(), torch.randn(1, 3, 65, 63)
    with torch.no_grad():
        mod, params = {"relax": by_relax, "relay": by_relay}[GENERATION](network, image)
        expected = network(image).numpy()
    mod = selfbyoc.partition_for_tefuse(mod, params)
    print(selfbyoc.report(mod))
    (found,) = selfbyoc.build(mod)(image.numpy())
    error = np.abs(found - expected).max() / np.abs(expected).max()
    print(f"agrees with PyTorch: {error < 1e-5}")


if __name__ == "__main__":
    main()
