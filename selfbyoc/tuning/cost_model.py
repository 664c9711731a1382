"""The cost model of a search: which of the candidates that were drawn are worth measuring."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

from ..common.optional import does_not_serve, is_installed
from ..common.threads import core_count
from ..errors import FallbackWarning, InputError, MissingExtra, ToolError
from ..tvm.tune import xgboost_model

MODELS = ("auto", "xgb", "random", "none")
_WARM_UP = 16  # candidates before the cost model is asked; XGBModel's default is 100


def chosen_model(ms: ModuleType, asked: Any, seed: int) -> Any:
    """One of MODELS, or a model of MetaSchedule's as it is; None for "none".

    Raises InputError for another name; where "xgb" is asked for, MissingExtra and ToolError. Where
    xgboost is installed and does not serve, "auto" is "none", with a FallbackWarning.
    """
    if not isinstance(asked, str):
        return asked
    if asked not in MODELS:
        raise InputError(f"cost_model: expected one of {MODELS}, found {asked!r}")
    if asked == "random":
        return ms.cost_model.RandomModel(seed=seed)
    if asked == "none" or (asked == "auto" and not is_installed("xgboost")):
        return None
    if why := does_not_serve("xgboost"):
        if asked == "xgb":
            raise ToolError(f"{why}; or cost_model='none'")
        warnings.warn(FallbackWarning(f"no cost model: {why}"), stacklevel=3)
        return None
    if not is_installed("xgboost"):
        raise MissingExtra(
            "xgboost is missing: pip install 'selfbyoc[cost-model]', or cost_model='none'"
        )
    count = core_count()
    return xgboost_model(num_warmup_samples=_WARM_UP, num_tuning_cores=count)
