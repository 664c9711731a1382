"""torchvision: every classifier, and the networks inside its detectors and segmenters."""

from __future__ import annotations

import warnings
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

from .model import FULL, Made, Model, NotHere
from .weights import reseeded

# What a network needs more than SIDE pixels for: its windows, or how often it halves a picture.
SIDE = 64
_SIDES = {"inception_v3": 96, "maxvit_t": 224, "alexnet": 96}
_FULL_SIDES = {"inception_v3": 299}


_KEPT: list[Any] = []


@cache
def torchvision() -> Any:
    """The package. PyPI's wheels are linked against PyTorch for CUDA: beside one for CPUs alone
    its own ops do not load, and the two that its Python code takes for granted are declared here.
    No backbone and no head runs any of them.
    """
    if find_spec("torchvision") is None or find_spec("torch") is None:
        raise NotHere("torchvision is not installed")
    import torch

    if _own_ops_load(torch):
        import torchvision as found

        return found
    library = torch.library.Library("torchvision", "DEF")
    _KEPT.append(library)  # its ops go when it goes
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torchvision as found
    return found


def _own_ops_load(torch: Any) -> bool:
    spec = find_spec("torchvision")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    try:
        torch.ops.load_library(f"{spec.submodule_search_locations[0]}/_C.so")
    except OSError:
        return False
    return True


def classifiers() -> list[Model]:
    """All that torchvision lists."""
    models = torchvision().models
    names = models.list_models(module=models)
    return [Model(name, "torchvision", partial(_classifier, name)) for name in names]


def _classifier(name: str, size: str) -> Made:
    models = torchvision().models
    side = _FULL_SIDES.get(name, 224) if size == FULL else _SIDES.get(name, SIDE)
    options: dict[str, Any] = {"weights": None}
    if name.startswith("vit_"):
        side = max(side, 56) if name != "vit_h_14" else side // 14 * 14
        options["image_size"] = side
    if name in ("googlenet", "inception_v3"):
        options |= {"aux_logits": False, "init_weights": False}
    return picture(models.get_model(name, **options), side)


def picture(module: Any, side: int, channels: int = 3) -> Made:
    """A module that takes one picture."""
    import torch

    torch.manual_seed(1)
    inputs = (torch.randn(1, channels, side, side),)
    return Made(reseeded(module, inputs), inputs)


def dense_networks() -> list[Model]:
    """Of detection: backbone and head without anchors, thresholds and suppression, whose shapes
    depend on data. Of segmentation: all of it.
    """
    models = torchvision().models
    found = [
        Model(name, "torchvision dense", partial(_detector, name))
        for name in models.list_models(module=models.detection)
    ]
    names = models.list_models(module=models.segmentation)
    return [*found, *(Model(n, "torchvision dense", partial(_segmenter, n)) for n in names)]


def _detector(name: str, size: str) -> Made:
    model = torchvision().models.get_model(name, weights=None, weights_backbone=None)
    side = {"ssd300_vgg16": 300}.get(name, 320) if size == FULL else 128
    if name == "ssd300_vgg16":
        side = 300  # its last levels are 3x3 and 1x1 of this size
    from .wrapped import Detector

    return picture(Detector(model), side)


def _segmenter(name: str, size: str) -> Made:
    model = torchvision().models.get_model(name, weights=None, weights_backbone=None)
    from .wrapped import Named

    return picture(Named(model), 520 if size == FULL else 96)
