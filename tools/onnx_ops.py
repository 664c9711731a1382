"""ONNX's own tests of its ops, each one op or few, through `from_onnx` and `build`: docs/onnx.md.

    python tools/onnx_ops.py [--only PATTERN] [--seconds N]     this generation's half
    python tools/onnx_ops.py --document      the document anew, from the data of both generations

Where a model is refused, it is tried again with all inputs but the first as constants: shapes and
axes are inputs in these tests, and constants in what exporters write. Exit status 1 when a result
is wrong, or an error has no type.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.loader import load_model_tests

sys.path.append(str(Path(__file__).parents[1]))

os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"  # of ONNX Runtime: these tests are newer

import selfbyoc
from selfbyoc._tvm import GENERATION, tvm
from selfbyoc.errors import SelfbyocError, one_line

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "onnx.md"
BEGIN, END = "<!-- table -->", "<!-- end -->"
RIGHT, FIXED, REFUSED, WRONG, RAISED, ENDED = STATUSES = (
    "right", "right with constants", "refused", "wrong", "raised", "ended",
)  # fmt: skip
BAD = (WRONG, RAISED, ENDED)
# Those of onnx 1.17 for signed products of bytes wrap around where ONNX saturates.
_LEFT_OUT = ("*_cuda", "test_bernoulli*", "test_training_dropout*", "test_qlinearmatmul_*_int8_*")
Array = np.ndarray
Row = tuple[str, str, str]  # name, status, text


def data_file(generation: str) -> Path:
    """Where the results of a generation are kept."""
    return ROOT / "docs" / "reports" / f"onnx-ops-{generation}.json"


def cases() -> list[Any]:
    """ONNX's tests that need no GPU, draw nothing at random, and are right themselves."""
    found = {case.name: case for case in load_model_tests(kind="node")}
    return [found[name] for name in sorted(found) if not any(fnmatch(name, p) for p in _LEFT_OUT)]


def _loaded(case: Any) -> tuple[Any, list[Any], list[Any]]:
    """The model, its inputs and what it gives."""
    if getattr(case, "model", None) is not None and case.data_sets:
        given, wanted = ([_array(a) for a in side] for side in case.data_sets[0])
        return case.model, given, wanted
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    data = folder / "test_data_set_0"
    sides = (("input", model.graph.input), ("output", model.graph.output))
    found = [[_read(data / f"{s}_{i}.pb", v) for i, v in enumerate(vs)] for s, vs in sides]
    return model, found[0], found[1]


def _read(path: Path, value: Any) -> Any:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type" or not path.exists():
        return None  # a sequence, or nothing: `from_onnx` refuses these
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return _array(tensor)


def _array(value: Any) -> Any:
    is_tensor = isinstance(value, onnx.TensorProto)
    return onnx.numpy_helper.to_array(value) if is_tensor else value


def _with_constants(model: Any, given: Sequence[Any]) -> Any:
    """The model with all inputs but the first as constants."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    graph = fixed.graph
    for value, array in zip(list(graph.input)[1:], given[1:], strict=False):
        graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), value.name))
        graph.input.remove(value)
    return fixed


def _tried(case: Any) -> tuple[str, str]:
    try:
        model, given, wanted = _loaded(case)
    except Exception as err:  # onnx 1.17 cannot read some of its own data
        return REFUSED, f"onnx cannot read the data: {one_line(err)}"
    status, text = _once(case, model, given, wanted)
    arrays = all(isinstance(a, (np.ndarray, np.generic)) for a in given)
    if status != REFUSED or len(given) < 2 or not arrays:
        return status, text
    try:
        fixed = _with_constants(model, given)
    except ValueError:  # onnx 1.17 cannot write arrays of fewer than 8 bits
        return status, text
    again, told = _once(case, fixed, given[:1], wanted)
    return (FIXED, text) if again == RIGHT else (again, told)


def _once(case: Any, model: Any, given: list[Any], wanted: list[Any]) -> tuple[str, str]:
    try:
        library = selfbyoc.build(selfbyoc.from_onnx(model), cache=False)
        found = library(*given)
    except SelfbyocError as err:
        return REFUSED, one_line(err)
    except Exception as err:  # what the tool looks for
        return RAISED, f"{type(err).__name__}: {one_line(err)}"
    return _compared(found, wanted, case)


def _compared(found: Sequence[Array], wanted: Sequence[Any], case: Any) -> tuple[str, str]:
    if len(found) != len(wanted):
        return WRONG, f"{len(found)} outputs instead of {len(wanted)}"
    for ours, theirs in zip(found, map(np.asarray, wanted), strict=True):
        if (ours.shape, str(ours.dtype)) != (theirs.shape, str(theirs.dtype)):
            return WRONG, f"{ours.dtype}{ours.shape} instead of {theirs.dtype}{theirs.shape}"
        if not _close(ours, theirs, case):
            return WRONG, f"{ours.ravel()[:3]} instead of {theirs.ravel()[:3]}"
    return RIGHT, ""


def _close(ours: Array, theirs: Array, case: Any) -> bool:
    if theirs.dtype.kind not in "fV":  # V: floats of 8 bits and less
        return bool((ours == theirs).all())
    a, b = ours.astype("float64"), theirs.astype("float64")
    least = 1e-6 * float(np.abs(b[np.isfinite(b)]).max(initial=1))
    close = np.allclose(a, b, rtol=max(case.rtol, 1e-3), atol=least, equal_nan=True)
    return bool(close)


def _in_a_process(case: Any, seconds: int) -> tuple[str, str]:
    """A forked process, which may crash; nothing was computed in this one."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def work() -> None:
        signal.alarm(seconds)
        warnings.simplefilter("ignore")
        queue.put(_tried(case))

    process = context.Process(target=work)
    process.start()
    process.join()
    return (ENDED, f"exit status {process.exitcode}") if queue.empty() else queue.get()


def _document() -> None:
    """The part of docs/onnx.md between the marks, from the data of both generations."""
    data = {g: json.loads(data_file(g).read_text()) for g in ("relax", "relay")}
    lines = [f"| | {' | '.join(data)} |", "|---|---|---|"]
    lines.append(f"| TVM | {' | '.join(d['tvm'] for d in data.values())} |")
    lines.append(f"| onnx, whose tests they are | {' | '.join(d['onnx'] for d in data.values())} |")
    for status in STATUSES:
        found = (sum(row[1] == status for row in d["rows"]) for d in data.values())
        lines.append(f"| {status} | {' | '.join(map(str, found))} |")
    for generation, held in data.items():
        rows = held["rows"]
        unknown = sorted({op for row in rows if row[1] == REFUSED for op in _missing(row[2])})
        lines += ["", f"**{generation}**: ops that TVM's frontend does not have: "]
        lines[-1] += ", ".join(f"`{op}`" for op in unknown) + "."
        reasons = Counter(_plain(r[2]) for r in rows if r[1] == REFUSED and not _missing(r[2]))
        lines += ["", "| refused otherwise | tests |", "|---|---|"]
        lines += [f"| {text} | {count} |" for text, count in reasons.most_common(_SHOWN)]
        lines += ["", *(f"- {row[1]}: `{row[0]}`, {row[2]}" for row in rows if row[1] in BAD)]
    text = DOCUMENT.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    DOCUMENT.write_text("\n\n".join([before, "\n".join(lines).rstrip(), after]))


_SHOWN = 12


def _missing(text: str) -> list[str]:
    found = re.search(r"not supported for frontend ONNX: (.*?)(;|$)", text)
    return [op.strip() for op in found[1].split(",")] if found else []


def _plain(text: str) -> str:
    """A reason without what differs from test to test."""
    text = text.rpartition("cannot import the model: ")[2].partition(";")[0]
    text = re.sub(r"'[^' ]*'", "'...'", re.sub(r"[\d.]+", "#", text))
    return text.replace("|", "/").replace("<", "").replace(">", "")[:120]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--seconds", type=int, default=60, help="of one model")
    parser.add_argument("--document", action="store_true", help="write the document, try nothing")
    return parser.parse_args()


def main() -> int:
    """Try what is asked for, and write the document."""
    args = _arguments()
    path = data_file(GENERATION)
    kept = json.loads(path.read_text())["rows"] if path.exists() and args.only else []
    rows: dict[str, Row] = {row[0]: tuple(row) for row in kept}
    chosen = [] if args.document else cases()
    if args.only:
        chosen = [c for c in chosen if any(fnmatch(c.name, p) for p in args.only)]
    for case in chosen:
        rows[case.name] = (case.name, *_in_a_process(case, args.seconds))
        if rows[case.name][1] in BAD:
            print(*rows[case.name], flush=True)
    if chosen:
        versions = {"tvm": tvm.__version__, "onnx": onnx.__version__}
        path.write_text(json.dumps({**versions, "rows": sorted(rows.values())}, indent=0) + "\n")
    if all(data_file(generation).exists() for generation in ("relax", "relay")):
        _document()
    print(Counter(row[1] for row in rows.values()))
    return int(any(row[1] in BAD for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
