"""All models of the zoo, by family."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence

from . import files, language, timm_models, vision
from .model import Model, NotHere

FAMILIES: dict[str, Callable[[], list[Model]]] = {
    "torchvision": vision.classifiers,
    "torchvision dense": vision.dense_networks,
    "timm": timm_models.networks,
    "transformers": language.networks,
    "onnx light": files.light,
}


def catalogue(only: Sequence[str] = ()) -> tuple[list[Model], dict[str, str]]:
    """The models whose key (family/name) or name fits one of the patterns, all of them without
    any; and why a family is not here.
    """
    found: list[Model] = []
    absent: dict[str, str] = {}
    for family, models in FAMILIES.items():
        try:
            found += models()
        except NotHere as err:
            absent[family] = str(err)
    return [model for model in found if fits(model, only)], absent


def fits(model: Model, only: Sequence[str]) -> bool:
    """Whether one of the patterns names it."""
    names = (model.key, model.name)
    return not only or any(fnmatch.fnmatch(n, p) for p in only for n in names)
