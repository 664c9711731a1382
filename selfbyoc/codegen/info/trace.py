"""What a schedule's trace says of layouts."""

from __future__ import annotations

from ...tvm.types import Instruction, Trace

# Primitives that leave every buffer's layout as it is. Others, and those of a TVM to come, count as
# changing it: a mistake here must not make op info wrong.
_HARMLESS = frozenset(
    (
        "AddUnitLoop", "Annotate", "AnnotateBufferAccess", "Bind", "Blockize", "CacheIndex",
        "CacheInplace", "CacheRead", "CacheWrite", "ComputeAt", "ComputeInline",
        "DecomposeReduction", "EnterPostproc", "Fuse", "FuseReductionEpilogue", "GetBlock",
        "GetChildBlocks", "GetConsumers", "GetLoops", "GetOutputBlocks", "GetProducers",
        "GetSBlock", "LoopPartition", "Merge", "Parallel", "RFactor", "ReIndex", "ReadAt",
        "Reorder", "ReorderBlockIterVar", "ReverseComputeAt", "ReverseComputeInline",
        "RollingBuffer", "SampleCategorical", "SampleComputeLocation", "SamplePartitionedTile",
        "SamplePerfectTile", "SetScope", "Split", "StorageAlign", "Tensorize",
        "TransformBlockLayout", "Unannotate", "Unroll", "Vectorize", "WriteAt",
    )
)  # fmt: skip


def _name(instruction: Instruction) -> str:
    return str(instruction.kind.name)


def _is_harmless(step: Instruction) -> bool:
    """Whether it leaves every layout; `transform_layout` by the identity only simplifies reads."""
    if _name(step) != "TransformLayout":
        return _name(step) in _HARMLESS
    index_map = step.inputs[1]
    old, new = list(index_map.initial_indices), list(index_map.final_indices)
    same = len(old) == len(new) and all(a.same_as(b) for a, b in zip(old, new, strict=True))
    return same and index_map.inverse_index_map is None


def is_clean(trace: Trace) -> bool:
    """Whether no step may have changed a layout."""
    return all(map(_is_harmless, trace.insts))


def layout_prefix(trace: Trace) -> Trace:
    """The trace up to the last step that may have changed a layout."""
    steps = list(trace.insts)
    last = max((i for i, step in enumerate(steps) if not _is_harmless(step)), default=-1)
    kept = steps[: last + 1]
    decisions = {step: trace.decisions[step] for step in kept if step in trace.decisions}
    return type(trace)(kept, decisions)
