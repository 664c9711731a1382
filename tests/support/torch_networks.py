"""Three networks as torchvision has them, with seeded weights: ResNet-18, MobileNetV2, SqueezeNet.
`width` divides their channels.
"""

import torch
from torch import nn


def _conv(inputs, outputs, taps=3, stride=1, groups=1, act=nn.ReLU):
    conv = nn.Conv2d(inputs, outputs, taps, stride, taps // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), *([act()] if act else []))


class _Basic(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.one = _conv(inputs, outputs, 3, stride)
        self.two = _conv(outputs, outputs, act=None)
        same = stride == 1 and inputs == outputs
        self.skip = nn.Identity() if same else _conv(inputs, outputs, 1, stride, act=None)

    def forward(self, x):
        return torch.relu(self.two(self.one(x)) + self.skip(x))


def resnet18(width=1):
    inputs = 64 // width
    layers = [_conv(3, inputs, 7, 2), nn.MaxPool2d(3, 2, 1)]
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [_Basic(inputs, outputs // width, stride)]
        inputs = outputs // width
        layers += [_Basic(inputs, inputs, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 100))


class _Inverted(nn.Module):
    def __init__(self, inputs, outputs, stride, times):
        super().__init__()
        inner = inputs * times
        self.keeps = stride == 1 and inputs == outputs
        up = [_conv(inputs, inner, 1, act=nn.ReLU6)] if times > 1 else []
        depthwise = _conv(inner, inner, 3, stride, inner, nn.ReLU6)
        self.body = nn.Sequential(*up, depthwise, _conv(inner, outputs, 1, act=None))

    def forward(self, x):
        return x + self.body(x) if self.keeps else self.body(x)


_STAGES = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
    (6, 320, 1, 1),
)  # fmt: skip


def mobilenet_v2(width=1):
    inputs = 32 // width
    layers = [_conv(3, inputs, 3, 2, act=nn.ReLU6)]
    for times, outputs, blocks, stride in _STAGES:
        for block in range(blocks):
            layers += [_Inverted(inputs, outputs // width, 1 if block else stride, times)]
            inputs = outputs // width
    layers += [_conv(inputs, 1280 // width, 1, act=nn.ReLU6), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(1280 // width, 100))


class _Fire(nn.Module):
    def __init__(self, inputs, squeezed, each):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.one = nn.Conv2d(squeezed, each, 1)
        self.three = nn.Conv2d(squeezed, each, 3, padding=1)

    def forward(self, x):
        y = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.one(y)), torch.relu(self.three(y))], 1)


def squeezenet(width=1):
    inputs = 64 // width
    layers = [nn.Conv2d(3, inputs, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True)]
    for squeezed, each in ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192),
                           (64, 256), (64, 256)):  # fmt: skip
        layers += [_Fire(inputs, squeezed // width, each // width)]
        inputs = 2 * each // width
    last = [nn.Conv2d(inputs, 100, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, *last)


NETWORKS = {"ResNet-18": resnet18, "MobileNetV2": mobilenet_v2, "SqueezeNet": squeezenet}


def network(name, width=1):
    """One of them, to be run; batch norms have seen something."""
    torch.manual_seed(0)
    made = NETWORKS[name](width).eval()
    for module in made.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return made
