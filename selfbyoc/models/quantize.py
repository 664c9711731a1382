"""A model of levels from one of floats, by ONNX Runtime's quantiser: what it is given, and what it
says. The levels are its own; how they are computed is docs/int8.md.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.files import written
from ..common.optional import extra
from ..errors import InputError, did_you_mean, one_line
from .batches import Batch
from .onnx_model import read_onnx

if TYPE_CHECKING:
    import onnx

PRODUCTS = ("Conv", "MatMul", "Gemm")  # what is worth levels; pools and shapes go along
OPSET = 13  # from which scales may differ by channel
_LEVELS = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv")
_LARGE = 1 << 30  # bytes of a file whose weights go beside it while it is worked on
_LOSSES = 2  # batches from which losses are measured: all activations of them are kept


@dataclass(frozen=True)
class Options:
    """How a model is quantised.

    dynamic      activations get their scales at run time, products of matrices alone
    in_float     names of nodes that stay as they are
    calibration  how ranges of activations are found: `minmax`, `entropy` or `percentile`
    seven_bits   weights have 7 bits: less exact, and faster on CPUs without a product of four bytes
    """

    dynamic: bool = False
    in_float: Sequence[str] = ()
    calibration: str = "minmax"
    seven_bits: bool = False


@dataclass(frozen=True)
class Made:
    """What came of it: products in levels and in all, and how far activations are from those of the
    model of floats, in decibels of signal to noise, the furthest first.
    """

    products: int
    total: int
    losses: tuple[tuple[str, float], ...] = ()


def quantize(model: Path, output: Path, batches: Sequence[Batch], options: Options) -> Made:
    """Write the model in levels of 8 bits. Raises InputError where it cannot be, or nothing of it
    is.
    """
    quantization = extra("onnxruntime.quantization")
    found = read_onnx(model)
    _check_is_of_floats(found, model)
    with TemporaryDirectory() as folder, _quiet(), _naming(model):
        exact, made = Path(folder) / "exact.onnx", Path(folder) / "made.onnx"
        _prepared(found, model, exact)
        _check_names(options.in_float, found, exact, model)
        is_large = model.stat().st_size > _LARGE
        how: dict[str, Any] = {
            "per_channel": True,
            "reduce_range": options.seven_bits,
            "nodes_to_exclude": list(options.in_float),
            "use_external_data_format": is_large,
        }
        if options.dynamic:
            how |= {"op_types_to_quantize": ["MatMul"], "extra_options": {"MatMulConstBOnly": True}}
            quantization.quantize_dynamic(
                exact, made, weight_type=quantization.QuantType.QInt8, **how
            )
        else:
            methods = {m.name.lower(): m for m in quantization.CalibrationMethod}
            quantization.quantize_static(
                exact, made, _Reader(batches),
                activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
                calibrate_method=methods[options.calibration], **how,
            )  # fmt: skip
        products, total = _counts(extra("onnx").load(str(made), load_external_data=False))
        if not products:
            kinds = "MatMul or Gemm" if options.dynamic else "Conv, MatMul or Gemm"
            raise InputError(f"{model.name}: nothing is quantised: it has no {kinds} by constants")
        losses = () if options.dynamic else _losses(exact, made, batches[:_LOSSES])
        _write(made, output)
    return Made(products, total, tuple(losses))


def _check_is_of_floats(found: onnx.ModelProto, model: Path) -> None:
    kinds = {node.op_type for node in found.graph.node}
    if levels := sorted(kinds & set(_LEVELS)):
        raise InputError(f"{model.name} is quantised already: it has {levels[0]}")


def _check_names(names: Sequence[str], found: onnx.ModelProto, exact: Path, model: Path) -> None:
    """The quantiser passes over names that it does not know."""
    loaded = extra("onnx").load(str(exact), load_external_data=False)
    known, had = ({node.name for node in each.graph.node} for each in (loaded, found))
    for name in names:
        if name not in known and name in had:
            raise InputError(f"--float: node {name!r} becomes part of another before quantising")
        if name not in known:
            near = did_you_mean(name, known)
            raise InputError(f"--float: {model.name} has no node {name!r}{near}")


def _prepared(found: onnx.ModelProto, model: Path, path: Path) -> None:
    """The model as the quantiser wants it: shapes known, batch norms in the convolutions."""
    onnx = extra("onnx")
    opset = next((o.version for o in found.opset_import if o.domain in ("", "ai.onnx")), OPSET)
    is_large = model.stat().st_size > _LARGE
    source = model
    if opset < OPSET:
        # By a file: of a model in memory the quantiser puts shapes beside it, and misses them then.
        source = path.with_suffix(".newer.onnx")
        newer = onnx.version_converter.convert_version(found, OPSET)
        onnx.save(newer, str(source), save_as_external_data=is_large)
    extra("onnxruntime.quantization").quant_pre_process(
        str(source), str(path), skip_symbolic_shape=True, save_as_external_data=is_large
    )


def _counts(model: onnx.ModelProto) -> tuple[int, int]:
    """Products in levels, and all of them."""
    graph = model.graph
    weights = {t.name for t in graph.initializer}
    dequantised = {n.output[0] for n in graph.node if n.op_type == "DequantizeLinear"}
    integers = sum(1 for n in graph.node if n.op_type in ("MatMulInteger", "ConvInteger"))
    products = [n for n in graph.node if n.op_type in PRODUCTS]
    of_levels = sum(1 for n in products if n.input[1] in dequantised)
    by_constants = sum(1 for n in products if n.input[1] in dequantised | weights)
    return integers + of_levels, integers + by_constants


def _losses(exact: Path, made: Path, batches: Sequence[Batch]) -> list[tuple[str, float]]:
    """Activations by how far they are from those of floats, in decibels, the furthest first."""
    debug = extra("onnxruntime.quantization.qdq_loss_debug")
    seen = []
    for path in (exact, made):
        watched = path.with_suffix(".watched.onnx")
        debug.modify_model_output_intermediate_tensors(str(path), str(watched))
        seen.append(debug.collect_activations(str(watched), _Reader(batches)))
    pairs = debug.create_activation_matching(seen[1], seen[0])
    found = debug.compute_activation_error(pairs)
    return sorted(((name, float(e["xmodel_err"])) for name, e in found.items()), key=lambda e: e[1])


def _write(made: Path, output: Path) -> None:
    """In one file, whatever the quantiser left beside its own."""
    onnx = extra("onnx")
    model = onnx.load(str(made))
    with written(output) as part:
        onnx.save(model, str(part))


class _Reader:
    """Batches, as the quantiser asks for them."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches, self.waiting = batches, iter(batches)

    def get_next(self) -> dict[str, np.ndarray] | None:
        """The next batch; None after the last."""
        batch = next(self.waiting, None)
        return None if batch is None else dict(batch)

    def rewind(self) -> None:
        """From the first one again."""
        self.waiting = iter(self.batches)

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        return map(dict, self.batches)

    def __len__(self) -> int:
        return len(self.batches)


@contextmanager
def _quiet() -> Iterator[None]:
    """What the quantiser advises is followed already."""
    was = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(was)


@contextmanager
def _naming(model: Path) -> Iterator[None]:
    """The quantiser raises plain errors of many kinds."""
    try:
        yield
    except InputError:
        raise
    except Exception as err:  # of onnx, ONNX Runtime and NumPy
        raise InputError(f"ONNX Runtime cannot quantise {model.name}: {one_line(err)}") from err
