"""The plan of a dense layer by itself, of floats or of words."""

from __future__ import annotations

from dataclasses import replace

from ....codegen.info.ops import Ops
from ....machine import Machine
from .forms import ProductPlan
from .halves import become_floats, machine_of, products_of, steps_of
from .plan import lead_of, passes_of_one, plan_rows, product_plan


def plan_alone(ops: Ops, weight: str, machine: Machine) -> ProductPlan:
    """Of the first dense layer, whose weight is the argument of this name."""
    shape, dtype = ops.dense.outputs[0]
    products = products_of(ops, weight, machine)
    machine, depth = machine_of(machine, products), steps_of(ops.dense.inputs[0][0][-1], products)
    halves = become_floats(ops, weight, products)
    rows = plan_rows(lead_of(shape), depth, shape[-1], dtype, machine, halves=halves)
    passes = passes_of_one(rows, depth, machine)
    found = product_plan(
        rows, depth, shape[-1], dtype, machine, "outputs", passes=passes, halves=halves
    )
    return replace(found, products=products)
