"""An entry of the catalogue as a model of the zoo."""

from __future__ import annotations

from typing import Any

from zoo_models.model import Model

from .catalogue import Entry
from .prepared import prepared

AS_USED = "as used"  # the size of all of them


def zoo_model(entry: Entry) -> Model:
    """What the zoo's parts take."""
    wheel, file = entry

    def make(size: str) -> Any:
        return prepared(wheel, file)

    return Model(wheel.name(file), wheel.family, make, is_onnx=True)
