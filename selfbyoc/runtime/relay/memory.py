"""Relay: the memory between kernels that the graph executor plans, the outputs' too."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

from ...tvm import tvm


def planned_memory(graph_json: str) -> int:
    """Bytes of all storages but those of inputs and weights."""
    # Names of inputs and attributes come first, not always as JSON has them.
    graph: dict[str, Any] = json.loads("{" + graph_json[graph_json.rindex('"arg_nodes"') :])
    shapes, dtypes, storages = (graph["attrs"][n][1] for n in ("shape", "dltype", "storage_id"))
    given = set(graph["arg_nodes"])
    sizes: dict[int, int] = {}
    for node, entries in enumerate(pairwise(graph["node_row_ptr"])):
        for n in range(*entries) if node not in given else ():
            size = math.prod(shapes[n]) * -(-tvm.DataType(dtypes[n]).bits // 8)
            sizes[storages[n]] = max(size, sizes.get(storages[n], 0))
    return sum(sizes.values())
