"""A detector of YOLO's kind: blocks of YOLOv8, three levels, boxes decoded in the model."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CLASSES, BINS, STRIDES = 5, 4, (8, 16, 32)  # BINS: of which a side of a box is the mean


def _conv(given: int, made: int, window: int = 1, stride: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(given, made, window, stride, window // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(made), nn.SiLU())


class Residual(nn.Module):
    """Two convolutions, and what went in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(_conv(width, width, 3), _conv(width, width, 3))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class Partial(nn.Module):
    """Half of the channels through residual blocks, all that they make joined (C2f)."""

    def __init__(self, given: int, made: int, blocks: int = 1) -> None:
        super().__init__()
        half = made // 2
        self.first, self.last = _conv(given, made), _conv((2 + blocks) * half, made)
        self.blocks = nn.ModuleList(Residual(half) for _ in range(blocks))

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Pyramid(nn.Module):
    """Three max pools one after the other, all joined (SPPF)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.last = _conv(width, width // 2), _conv(2 * width, width)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Detector(nn.Module):
    """An image, whose sides are multiples of 32 -> [batch, 4 + classes, places]: boxes as centre
    and size in pixels, and scores.
    """

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        a, b, c = 2 * width, 4 * width, 8 * width
        self.stem = nn.Sequential(_conv(3, width, 3, 2), _conv(width, a, 3, 2), Partial(a, a))
        self.down8 = nn.Sequential(_conv(a, a, 3, 2), Partial(a, a))
        self.down16 = nn.Sequential(_conv(a, b, 3, 2), Partial(b, b))
        self.down32 = nn.Sequential(_conv(b, c, 3, 2), Partial(c, c), Pyramid(c))
        self.larger = nn.Upsample(scale_factor=2, mode="nearest")
        self.up16, self.up8 = Partial(b + c, b), Partial(a + b, a)
        self.again16, self.join16 = _conv(a, a, 3, 2), Partial(a + b, b)
        self.again32, self.join32 = _conv(b, b, 3, 2), Partial(b + c, c)
        self.heads = nn.ModuleList(nn.Conv2d(n, 4 * BINS + CLASSES, 1) for n in (a, b, c))

    def forward(self, image: Tensor) -> Tensor:
        x8 = self.down8(self.stem(image))
        x16 = self.down16(x8)
        x32 = self.down32(x16)
        y16 = self.up16(torch.cat([self.larger(x32), x16], 1))
        y8 = self.up8(torch.cat([self.larger(y16), x8], 1))
        z16 = self.join16(torch.cat([self.again16(y8), y16], 1))
        z32 = self.join32(torch.cat([self.again32(z16), x32], 1))
        found = [head(x) for head, x in zip(self.heads, (y8, z16, z32), strict=True)]
        places = [_places(x, n) for x, n in zip(found, STRIDES, strict=True)]
        return _decoded(
            torch.cat([x.flatten(2) for x in found], 2),
            torch.cat([at for at, _ in places], 1),
            torch.cat([size for _, size in places]),
        )


def _places(x: Tensor, stride: int) -> tuple[Tensor, Tensor]:
    """The centres of a level's cells, in cells, and how many pixels one has."""
    rows = torch.arange(x.shape[2], dtype=torch.float32) + 0.5
    columns = torch.arange(x.shape[3], dtype=torch.float32) + 0.5
    down, along = torch.meshgrid(rows, columns, indexing="ij")
    at = torch.stack([along.flatten(), down.flatten()])
    return at, torch.full((x.shape[2] * x.shape[3],), float(stride))


def _decoded(found: Tensor, at: Tensor, size: Tensor) -> Tensor:
    """Sides as means of bins (DFL), boxes of them, scores beside."""
    batch, _, count = found.shape
    sides, scores = found.split([4 * BINS, CLASSES], 1)
    weights = sides.view(batch, 4, BINS, count).transpose(1, 2).softmax(1)
    bins = torch.arange(BINS, dtype=torch.float32).view(1, BINS, 1, 1)
    before, after = (weights * bins).sum(1).chunk(2, 1)
    first, last = at - before, at + after
    boxes = torch.cat([(first + last) / 2, last - first], 1) * size
    return torch.cat([boxes, scores.sigmoid()], 1)
