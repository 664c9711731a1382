"""How a depthwise convolution and the pointwise ones around it are computed: one frozen plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....codegen.info.ops import Ops, OpView
from ....language.decisions import choose
from ....machine import Machine
from ...steps.candidates import decided
from ...steps.faults import Faults, outside, too_large, undivided, unlike
from ...steps.parallel import LEAST_STEPS, is_worth_it
from ...steps.tiles import BLOCK
from ..bfloat16 import HELD, WORD, machine_of, steps_of
from ..conv.depth import steps_at_a_time
from . import tiles
from .form import Form, Pixels
from .layers import is_first, is_pointwise
from .rounded import as_packed, both_of_words
from .staged import StagedPlan
from .tiles import Run, pair

LEAST_UNIT = 4  # steps of k at constant addresses; fewer are not worth a loop around them


@dataclass(frozen=True)
class SeparablePlan:
    """By blocks of channels: lanes are channels, and what is between two layers is in cache."""

    form: Form
    lanes: int  # channels of a vector
    hidden: int  # vectors of the depthwise convolution's channels, in whole groups
    outputs: int  # vectors of the result's channels, folded, in whole groups
    frame: Run  # what the windows read: its tiles, and the vectors of a group
    sums: Run  # the result's
    expands: bool  # a convolution makes what the windows read
    k: tuple[int, int]  # steps at constant addresses: of the expansion, of the projection
    parts: int  # that the projection's sums are cut into
    fold: int  # steps of the projection side by side in a vector
    in_squares: bool  # the result is whole vectors, of its pixels and of its channels
    parallel: bool  # whether it is worth tasks
    words: tuple[bool, bool] = (False, False)  # the expansion, the projection: of words or not

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of this plan."""
        *expand, depth, project = ops.of("conv2d")
        (out, channels), f = project.inputs[1][0][:2], self.form
        yield from f.faults(depth)
        yield from unlike("whether it expands", self.expands, bool(expand))
        yield from unlike("a vector", self.lanes, cpu.lanes("float32"))
        yield from unlike("of words", self.words, both_of_words(ops, cpu))
        of_sums = [machine_of(cpu, of_words) for of_words in self.words]
        framed = of_sums[0] if expand else None
        yield from self.frame.faults(f.framed, f.image[1], self.hidden, framed)
        yield from self.sums.faults(f.rows, f.pitch, self.outputs, of_sums[1], in_pairs=True)
        for what, vectors, of in (
            ("vectors of channels", self.hidden, channels),
            ("vectors of outputs", self.outputs, out * self.fold),
        ):
            least = -(-of // self.lanes)
            yield from outside(what, vectors, least, tiles.most_vectors(least, self.lanes))
        if self.in_squares:
            yield from undivided("channels and pixels", math.gcd(out, f.out[1]), self.lanes)
        steps = steps_of(channels, self.words[1])
        yield from undivided("input channels", steps, self.fold)
        yield from undivided("steps of the sums", steps // self.fold, self.parts * self.k[1])
        if expand:
            inner = steps_of(expand[0].inputs[1][0][1], self.words[0])
            yield from undivided("steps of the expansion", inner, self.k[0])
        packed = ops.packing(project, 1).shape
        if packed is not None and packed[1] != steps // self.fold:
            yield f"{self.fold} steps side by side of a weight packed as {packed}"
        if 1 < f.rows < f.out[0]:
            at_a_time = tiles.MOST_EXPANDED if expand else cpu.lanes("float32")
            kept = tiles.chunk_bytes(f, f.rows, channels, at_a_time)
            yield from too_large("a chunk", kept, cpu.l2_bytes * 3 // 4)

    @property
    def padded(self) -> int:
        """Channels that are computed of the depthwise convolution."""
        return self.hidden * self.lanes

    @property
    def chunked(self) -> bool:
        """Whether the tasks are chunks of rows; else blocks of channels of the whole image."""
        return self.form.chunks > 1

    @property
    def prefetches(self) -> bool:
        """Whether a task has vectors of channels of its own, and prefetches the next one's weights.

        24 pairs of 728x4x4, 51 MB of weights, us a pair on two cores of Zen 5 (Nov 2026), without
        and with: AVX-512 113 and 51, AVX2 126 and 98; 728x7x7 153 and 126, 329 and 282. With the
        weights in L3 as fast, within 5%.
        """
        return not self.chunked and self.sums.pixels.bands == 1

    def __str__(self) -> str:
        f = self.form
        tasks = f"{f.chunks} chunks of {f.rows} rows" if self.chunked else "blocks of channels"
        parts = [
            f"{f.window[0]}x{f.window[1]} windows, {f.together} at a time",
            f"tasks are {tasks}",
        ]
        if self.expands:
            parts.append(f"expands in {_tile(self.frame)}")
        parts.append(f"projects in {_tile(self.sums)}")
        if self.parts > 1:
            parts.append(f"its sums in {self.parts} parts")
        if self.prefetches:
            parts.append("the next weights prefetched")
        if self.fold > 1:
            parts.append(f"{self.fold} steps of k side by side")
        if any(self.words):
            parts.append(f"of words of {WORD} {HELD}")
        return "; ".join(parts)


def _tile(run: Run) -> str:
    flat = " of flat rows" if run.pixels.band > 1 else ""
    return f"register tiles of {run.pixels.tile} pixels{flat} x {run.vectors} vectors"


def plan(ops: Ops, machine: Machine) -> SeparablePlan | StagedPlan:
    """By blocks of channels, or stage by stage where a window, a stride or a padding is not of that
    form, or where an image had to be transposed for few products.
    """
    convs = ops.of("conv2d")
    form = form_of(convs, machine)
    if form is None:
        return StagedPlan.of(ops, machine)
    return _by_blocks(ops, convs, form, machine)


def form_of(convs: Sequence[OpView], cpu: Machine) -> Form | None:
    """Where the windows lie; None for convolutions that only run stage by stage."""
    *expand, depth, project = convs
    image, out = depth.inputs[0][0], depth.outputs[0][0]
    window, pads = pair(depth.inputs[1][0][2:]), depth.attrs["padding"]
    strides, dilation = pair(depth.attrs["strides"]), pair(depth.attrs["dilation"])
    reach = [(window[n] - 1) * dilation[n] for n in (0, 1)]
    plain = is_pointwise(project)
    plain = plain and all(is_pointwise(conv) or is_first(conv) for conv in expand)
    # One channel out for each one in, and no window that lies in the padding alone.
    plain = plain and image[1] == out[1] and all(p <= reach[i % 2] for i, p in enumerate(pads))
    if not plain:
        return None
    form = Form(pair(image[2:]), pair(out[2:]), window, strides, dilation, pair(pads), out[2])
    rows = tiles.chunk_rows(form, out[0], out[1], cpu, bool(expand))
    form = replace(form, rows=decided("rows_of_a_chunk", rows))
    # Rows of padding cost nothing to copy, and little to expand where chunks share rows anyway.
    form = replace(form, padded=not expand or form.chunks > 1)
    outputs = project.outputs[0][0][1]
    if not expand and not tiles.pays_transposing(outputs, cpu):
        return None
    sizes = tiles.together(form.out[1], math.prod(window), outputs, cpu)
    return replace(form, together=decided(f"{depth.name}_lanes.pixels", sizes))


def _by_blocks(ops: Ops, convs: Sequence[OpView], form: Form, cpu: Machine) -> SeparablePlan:
    *expand, depth, project = convs
    lanes, out = cpu.lanes("float32"), project.outputs[0][0]
    channels, words = depth.outputs[0][0][1], both_of_words(ops, cpu)
    of_frame, of_sums = (machine_of(cpu, of_words) for of_words in words)
    fold = _fold(ops, project, lanes, words[1])
    hidden, outputs = -(-channels // lanes), -(-out[1] * fold // lanes)
    frame = _frame(expand[0], form, hidden, out[0], of_frame) if expand else None
    steps = steps_of(channels, words[1]) // fold
    sums = _chosen(f"{project.name}_sums.tile", _sums(form, outputs, out[0], steps, of_sums))
    unit = math.gcd(steps_of(lanes, words[1]) // fold, steps)
    unit = unit if unit >= LEAST_UNIT else steps
    inner = steps_of(expand[0].inputs[1][0][1], words[0]) if expand else 0
    return SeparablePlan(
        form=form,
        lanes=lanes,
        hidden=tiles.whole_groups(hidden, frame.vectors) if frame else hidden,
        outputs=tiles.whole_groups(outputs, sums.vectors),
        frame=frame or Run(Pixels(form.framed, form.image[1], 1, form.image[1]), 1),
        sums=sums,
        expands=bool(expand),
        k=(BLOCK if inner % BLOCK == 0 else inner, unit),
        parts=_parts(project, sums, steps, unit, cpu, form.chunks == 1),
        fold=fold,
        in_squares=fold == 1 and form.out[1] % lanes == 0 and out[1] % lanes == 0,
        parallel=is_worth_it(math.prod(out) * channels / lanes, LEAST_STEPS),
        words=words,
    )


def _frame(expand: OpView, form: Form, count: int, batch: int, cpu: Machine) -> Run:
    """Tiles of the expanded image, of which a task of one chunk has some vectors of channels.

    The rows of an image in one chunk are one flat run; a picture's are not, for its strides.
    """
    whole = form.chunks == 1
    bands = {1, form.framed} if whole and is_pointwise(expand) else {1}
    pixels = [Pixels(form.framed, form.image[1], band, 1) for band in bands]

    def tasks(run: Run) -> int:
        return batch * -(-count // run.vectors) if whole else batch * form.chunks

    return _chosen(f"{expand.name}_sums.tile", tiles.register_runs(count, pixels, tasks, cpu))


def _sums(form: Form, count: int, batch: int, steps: int, cpu: Machine) -> list[Run]:
    """Tiles of the result, of which a task of one chunk has some vectors of a band."""
    whole = form.chunks == 1
    pixels = [Pixels(form.rows, form.pitch, band, 1) for band in {1, form.rows}]

    def tasks(run: Run) -> int:
        return batch * (-(-count // run.vectors) * run.pixels.bands if whole else form.chunks)

    return tiles.register_runs(count, pixels, tasks, cpu, steps, 1.0 if whole else tiles.FLAT_TIME)


def _parts(project: OpView, sums: Run, steps: int, unit: int, cpu: Machine, whole: bool) -> int:
    """Parts of the projection's sums: one, where few tiles read the same weights or where these are
    prefetched; else L1 holds a part's, and the pixels of a tile and of the next one.
    """
    if (whole and sums.pixels.bands == 1) or sums.pixels.tiles < tiles.LEAST_TILES:
        return 1
    read = 4 * (sums.vectors * cpu.lanes("float32") + 2 * sums.pixels.tile)
    return steps // steps_at_a_time(project.name, steps, read, cpu, unit=unit)


def _chosen(name: str, runs: Sequence[Run]) -> Run:
    return decided(name, runs, lambda run: (run.vectors, run.pixels.tile, run.pixels.band))


def _fold(ops: Ops, project: OpView, lanes: int, of_words: bool) -> int:
    """As the weight is packed; else as it should be."""
    shape, weight = ops.packing(project, 1).shape, project.inputs[1][0]
    wanted = fold_of(weight[0], steps_of(weight[1], of_words), lanes)
    return wanted if shape is None else as_packed(shape, weight)[1]


def fold_of(out: int, channels: int, lanes: int) -> int:
    """Steps of a sum over `channels` that lie side by side in a vector: two, where that fills whole
    vectors and saves a quarter of them.

    24 outputs are two vectors of 16, of which one is half empty; with two steps, three (24x56x56
    133 us instead of 141). 40 outputs take 97 us instead of 92, 20, which fill none, 140 instead of
    127; and four steps LLVM 22 loads lane by lane (580 us).
    """
    full = channels % 2 == 0 and 2 * out % lanes == 0
    usual = 2 if full and 4 * -(-2 * out // lanes) <= 6 * -(-out // lanes) else 1
    return choose("steps_side_by_side", (1, 2) if full else (1,), usual)
