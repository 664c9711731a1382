"""All names of the library. Importing it sets nothing up."""

from . import transform  # noqa: F401 (selfbyoc.transform.Partition, without a further import)
from .analysis.explain.explanation import Explanation, explain
from .analysis.guard import MeasuredGuard, Times, Trial
from .analysis.lint.linter import Finding, lint
from .analysis.loops import show
from .analysis.melting.report import Melting, melting
from .analysis.verify.verification import verify
from .codegen.info.layout_change import transform_layout
from .codegen.info.op_info import UNKNOWN, op_info
from .codegen.info.op_record import OpInfo, TensorInfo
from .codegen.info.source import Source
from .codegen.raising.plain import with_plain_layouts
from .codegen.raising.raising import raise_ops
from .codegen.records.lookup import Applied, apply_records
from .codegen.target import host_target
from .graph import OpGraph
from .ir.declare import declare
from .ir.emit import emit
from .language.case import Case
from .language.composite import Composite, Refused, require
from .language.decisions import choose
from .language.growing import elementwise, repeat
from .language.intrinsic import T, intrinsic
from .language.kernel import Kernel
from .language.known import installed
from .language.nodes import Node
from .language.pattern import either, many, number, op
from .language.registry import Registry
from .machine import Machine
from .models.decoding import decoding
from .models.from_onnx import from_onnx
from .models.from_torch import from_torch
from .partition import partition_for_tefuse
from .partition.layouts.optimize import optimize_layouts
from .partition.name_sizes import name_sizes
from .partition.report import report
from .partition.unfuse import unfuse
from .runtime.build import build
from .runtime.decoder import Decoder
from .runtime.exporting import weights_once
from .runtime.integrity import seal
from .runtime.library import Library
from .runtime.loading import load
from .schedules import BUILTIN
from .schedules.by_meta_schedule import by_meta_schedule
from .schedules.by_rules import by_rules
from .schedules.each_op import each_op
from .schedules.melt import melt
from .tuning.engine import tune
from .tuning.progress import Outcome, Progress, Tuning
from .tuning.tasks import Task, extract_tasks
from .tuning.tracker import Tracker

__all__ = [
    "BUILTIN",
    "UNKNOWN",
    "Applied",
    "Case",
    "Composite",
    "Decoder",
    "Explanation",
    "Finding",
    "Kernel",
    "Library",
    "Machine",
    "MeasuredGuard",
    "Melting",
    "Node",
    "OpGraph",
    "OpInfo",
    "Outcome",
    "Progress",
    "Refused",
    "Registry",
    "Source",
    "T",
    "Task",
    "TensorInfo",
    "Times",
    "Tracker",
    "Trial",
    "Tuning",
    "apply_records",
    "build",
    "by_meta_schedule",
    "by_rules",
    "choose",
    "declare",
    "decoding",
    "each_op",
    "either",
    "elementwise",
    "emit",
    "explain",
    "extract_tasks",
    "from_onnx",
    "from_torch",
    "host_target",
    "installed",
    "intrinsic",
    "lint",
    "load",
    "many",
    "melt",
    "melting",
    "name_sizes",
    "number",
    "op",
    "op_info",
    "optimize_layouts",
    "partition_for_tefuse",
    "raise_ops",
    "repeat",
    "report",
    "require",
    "seal",
    "show",
    "transform_layout",
    "tune",
    "unfuse",
    "verify",
    "weights_once",
    "with_plain_layouts",
]
