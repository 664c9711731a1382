"""A PyTorch model, by `torch.export` and Relax, into composites. Needs torch and Relax."""

import numpy as np
import torch
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program

import selfbyoc


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


def main() -> None:
    """Export, import, partition, build, compare with PyTorch."""
    torch.manual_seed(0)
    network, image = Network().eval(), torch.randn(1, 3, 65, 63)
    with torch.no_grad():
        exported = torch.export.export(network, (image,))
        mod = from_exported_program(exported, unwrap_unit_return_tuple=True)
        expected = network(image).numpy()
    # The importer leaves inference ops such as batch_norm and dropout to be decomposed.
    mod = relax.transform.DecomposeOpsForInference()(mod)
    mod = selfbyoc.partition_for_tefuse(mod)
    print(selfbyoc.report(mod))
    (found,) = selfbyoc.build(mod)(image.numpy())
    error = np.abs(found - expected).max() / np.abs(expected).max()
    print(f"agrees with PyTorch: {error < 1e-5}")


if __name__ == "__main__":
    main()
