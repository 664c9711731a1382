"""A PyTorch model into composites: by `torch.export` and Relax, or traced and by Relay."""

import numpy as np
import torch

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
    """Import, partition, build, compare with PyTorch."""
    torch.manual_seed(0)
    network, image = Network().eval(), torch.randn(1, 3, 65, 63)
    with torch.no_grad():
        expected = network(image).numpy()
    mod = selfbyoc.partition_for_tefuse(selfbyoc.from_torch(network, (image,)))
    print(selfbyoc.report(mod))
    (found,) = selfbyoc.build(mod)(image.numpy())
    error = np.abs(found - expected).max() / np.abs(expected).max()
    print(f"agrees with PyTorch: {error < 1e-5}")


if __name__ == "__main__":
    main()
