"""The parts of networks that workloads are made of: each takes and returns a value's name."""

from __future__ import annotations

from .network import Network


def conv_chain(net: Network, x: str, *channels: int, kernel: int = 3, stride: int = 1) -> str:
    """Convolutions with ReLU one after the other; the first one may stride."""
    for number, count in enumerate(channels):
        x = net.conv(x, count, kernel, stride=1 if number else stride, bias=False, act="relu")
    return x


def inverted_residual(
    net: Network, x: str, expand: int, project: int, stride: int = 1, kernel: int = 3
) -> str:
    """MobileNetV2's block; with the shortcut where shapes allow it."""
    y = net.conv(x, expand, act="relu6") if expand != net.shapes[x][1] else x
    y = net.conv(y, expand, kernel, stride=stride, groups=expand, act="relu6")
    y = net.conv(y, project)
    return net.like("Add", x, y) if net.shapes[x] == net.shapes[y] else y


def separable(net: Network, x: str, channels: int, stride: int = 1) -> str:
    """MobileNet v1's block: depthwise 3x3, then 1x1."""
    count = net.shapes[x][1]
    y = net.conv(x, count, 3, stride=stride, groups=count, act="relu")
    return net.conv(y, channels, act="relu")


def then_pointwise(net: Network, x: str, inner: int, channels: int, stride: int = 1) -> str:
    """A whole 3x3 convolution, then 1x1."""
    return net.conv(net.conv(x, inner, 3, stride=stride, act="relu"), channels, act="relu")


def inception(
    net: Network, x: str, one: int, three: tuple[int, int], five: tuple[int, int], pooled: int
) -> str:
    """GoogLeNet's block of four branches."""
    first = net.conv(x, one, act="relu")
    second = net.conv(net.conv(x, three[0], act="relu"), three[1], 3, act="relu")
    third = net.conv(net.conv(x, five[0], act="relu"), five[1], 5, act="relu")
    fourth = net.conv(net.pool(x, "MaxPool", 3, 1, 1), pooled, act="relu")
    return net.concat(first, second, third, fourth)


def fire(net: Network, x: str, squeeze: int, expand: int) -> str:
    """SqueezeNet's block: 1x1, then 1x1 beside 3x3."""
    y = net.conv(x, squeeze, act="relu")
    return net.concat(net.conv(y, expand, act="relu"), net.conv(y, expand, 3, act="relu"))


def basic_residual(net: Network, x: str, channels: int, stride: int = 1) -> str:
    """ResNet-18's block; the shortcut is projected where the shape changes."""
    y = net.conv(x, channels, 3, stride=stride, act="relu")
    y = net.conv(y, channels, 3)
    if net.shapes[x] != net.shapes[y]:
        x = net.conv(x, channels, stride=stride, pad=0)
    return net.act(net.like("Add", y, x), "relu")


def bottleneck(net: Network, x: str, inner: int, channels: int, stride: int = 1) -> str:
    """ResNet-50's block."""
    y = net.conv(x, inner, act="relu")
    y = net.conv(y, inner, 3, stride=stride, act="relu")
    y = net.conv(y, channels)
    if net.shapes[x] != net.shapes[y]:
        x = net.conv(x, channels, stride=stride, pad=0)
    return net.act(net.like("Add", y, x), "relu")


def _heads(net: Network, x: str, heads: int) -> str:
    batch, rows, width = net.shapes[x]
    return net.transpose(net.reshape(x, batch, rows, heads, width // heads), 0, 2, 1, 3)


def self_attention(net: Network, x: str, heads: int, prefix: str = "") -> str:
    """Queries, keys and values of the rows, attention by heads, and the output projection."""
    batch, rows, width = net.shapes[x]
    names = [prefix and f"{prefix}.self.{name}" for name in ("query", "key", "value")]
    q, k, v = (_heads(net, net.dense(x, width, name), heads) for name in names)
    y = net.reshape(net.transpose(net.attention(q, k, v), 0, 2, 1, 3), batch, rows, width)
    return net.dense(y, width, prefix and f"{prefix}.output.dense")


def bert_layer(net: Network, x: str, heads: int, inner: int, prefix: str = "") -> str:
    """A transformer layer with the norms after the sums, as in BERT."""

    def named(name: str) -> str:
        return prefix and f"{prefix}.{name}"

    y = net.like("Add", self_attention(net, x, heads, named("attention")), x)
    y = net.layer_norm(y, named("attention.output.LayerNorm"), 1e-12)
    hidden = net.dense(y, inner, named("intermediate.dense"), act="gelu")
    z = net.like("Add", net.dense(hidden, net.shapes[x][-1], named("output.dense")), y)
    return net.layer_norm(z, named("output.LayerNorm"), 1e-12)


def vit_layer(net: Network, x: str, heads: int, inner: int) -> str:
    """A transformer layer with the norms in front, as in ViT."""
    y = net.like("Add", self_attention(net, net.layer_norm(x), heads), x)
    hidden = net.dense(net.layer_norm(y), inner, act="gelu")
    return net.like("Add", net.dense(hidden, net.shapes[x][-1]), y)
