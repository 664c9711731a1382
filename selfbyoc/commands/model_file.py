"""The model of a command: `MODEL --shape images=1x3x224x224 --composites mine.py`. Nothing here
needs TVM before a model is read.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.files import read_text
from ..common.probes import ask_beside
from ..errors import InputError, SelfbyocError, one_line
from ..models.shapes import parse_shapes
from ..models.sizes import parse_ranges, parse_sizes

if TYPE_CHECKING:
    from ..language.composite import Composite
    from ..tvm.types import IRModule


KINDS = "an ONNX file, a .pt2 of torch.export, or a module in TVM's JSON"
LIBRARIES = (".so", ".dylib", ".dll")
_INSTALLED = "installed"  # in the place of a file: composites of installed packages
_LARGEST = 4 << 30  # bytes of a module in JSON: its weights are in it


def add_model(parser: argparse.ArgumentParser, **options: Any) -> None:
    """The arguments that say which model, of what size, and with which composites."""
    told = options.pop("help", "")
    text = f"{told}; {KINDS}" if told else KINDS
    parser.add_argument("model", type=Path, metavar="MODEL", help=text, **options)
    add_shape(parser)
    add_input(parser)
    add_composites(parser)


def add_composites(parser: argparse.ArgumentParser) -> None:
    """The argument that brings a user's own composites."""
    parser.add_argument(
        "--composites",
        type=lambda text: text if text == _INSTALLED else Path(text),
        action="append",
        default=[],
        metavar="FILE.py",
        help="the composites of this file, before the built-in ones; `installed`: those of "
        "installed packages; may be given again",
    )


def add_shape(parser: argparse.ArgumentParser) -> None:
    """The argument that fixes dynamic sizes."""
    parser.add_argument(
        "--shape",
        type=checked(lambda text: parse_shapes([text])),
        action="append",
        default=[],
        metavar="NAME=1x3x224x224",
        help="the shape of an input whose sizes are dynamic; may be given again",
    )


def add_input(parser: argparse.ArgumentParser) -> None:
    """The argument that makes an input of a constant."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME",
        help="an initializer of an ONNX file that a caller gives; all others are constants, those "
        "too that the file has as inputs; may be given again",
    )


def checked(parse: Callable[[str], object]) -> Callable[[str], str]:
    """The type of an argument that is looked at before TVM is there."""

    def text_of(text: str) -> str:
        try:
            parse(text)
        except InputError as err:  # "shape: ", which argparse says too
            raise argparse.ArgumentTypeError(str(err).partition(": ")[2]) from err
        return text

    return text_of


def add_size(parser: argparse.ArgumentParser) -> None:
    """The argument that says at which sizes figures are."""
    parser.add_argument(
        "--size",
        type=checked(lambda text: parse_sizes([text])),
        action="append",
        default=[],
        metavar="NAME=128",
        help="report a kernel of symbolic sizes at this one; may be given again",
    )


def add_range(parser: argparse.ArgumentParser) -> None:
    """The argument that fixes an open size, or says between what it is."""
    parser.add_argument(
        "--size",
        type=checked(lambda text: parse_ranges([text])),
        action="append",
        default=[],
        metavar="NAME=1..512",
        help="what an open size may be: NAME=64, NAME=1..512, NAME=..512 or NAME=8..; a call with "
        "another one is an error, and kernels are learnt for these alone; may be given again",
    )


def imported(
    model: Path, shape: Sequence[str], inputs: Sequence[str] = (), size: Sequence[str] = ()
) -> IRModule:
    """The file as an IRModule."""
    from ..models.from_onnx import from_onnx

    if model.suffix.lower() in LIBRARIES:
        raise InputError(f"{model.name} is a library, built already; expected {KINDS}")
    shapes, sizes = parse_shapes(shape), parse_ranges(size)
    read = {".json": _module, ".pt2": _exported}.get(model.suffix.lower())
    if read is None:
        return from_onnx(model, shapes, inputs, sizes)
    if inputs:
        raise InputError(f"--input: of an ONNX file's initializers, and {model.name} is none")
    from ..models.generation import tvm_road
    from ..runtime.build import with_sizes

    mod = tvm_road.sized(read(model), shapes, model.name)
    return with_sizes(mod, sizes, model.name)


def composites_in(given: Sequence[Path | str]) -> list[Composite] | None:
    """The composites of files and of installed packages, as they are given, and the built-in ones
    after them; None: the built-in ones alone.
    """
    from ..analysis.lint.file import declared_in
    from ..language.known import default_registry, installed

    found = [installed() if one == _INSTALLED else declared_in([one]) for one in given]
    return [*dict.fromkeys(chain(*found)), *default_registry()] if given else None


@contextmanager
def naming(model: Path) -> Iterator[None]:
    """TVM's passes over an odd model raise plain errors of many kinds."""
    try:
        yield
    except SelfbyocError:
        raise
    except Exception as err:  # TVM's passes raise what they like
        raise InputError(f"TVM cannot work on {model.name}: {one_line(err)}") from err


def _module(path: Path) -> IRModule:
    """What `tvm.ir.save_json` wrote."""
    from ..tvm import tvm

    text = read_text(path, _LARGEST)
    # Where a node is part of itself, 0.27 follows it until the stack ends; 0.17 calls what is none.
    told = ask_beside(partial(_read_and_say, text), rf"\A({_READ}|{_WRONG})")
    if told.why_not:
        raise InputError(f"{path} is no module in TVM's JSON: TVM's reader {told.why_not}")
    if told.printed.startswith(_WRONG):
        why = told.printed.removeprefix(_WRONG).strip()
        raise InputError(f"{path} is no module in TVM's JSON: {why}")
    return tvm.ir.load_json(text)


_READ, _WRONG = "read", "wrong: "


def _read_and_say(text: str) -> None:
    """Whether it is read, or TVM's own error, of any kind: it is not met twice, as what was half
    read may end the process.
    """
    from ..partition import check_module
    from ..tvm import GENERATION, tvm

    try:
        mod = tvm.ir.load_json(text)
        check_module(mod)
        if GENERATION == "relay":  # looks at each node
            mod.astext(show_meta_data=False)
    except Exception as err:  # TVM's own, of any kind
        print(f"{_WRONG}{one_line(err)}")
    else:
        print(_READ)


def _exported(path: Path) -> IRModule:
    """What `torch.export.save` wrote."""
    from ..common.optional import extra
    from ..models.archive import check_archive
    from ..models.from_torch import from_torch
    from ..tvm import GENERATION, tvm

    if GENERATION == "relay":
        raise InputError(
            f"{path.name}: TVM {tvm.__version__} (Relay) reads no exported programs of PyTorch; "
            f"expected an ONNX file, or apache-tvm 0.26 or newer"
        )
    torch = extra("torch")
    check_archive(path, "exported program")
    log = logging.getLogger("torch.export")  # it prints a traceback before it raises
    was, log.disabled = log.disabled, True
    try:
        program = torch.export.load(str(path))
    except Exception as err:  # PyTorch's own, of many kinds
        raise InputError(f"{path} is no exported program: {one_line(err)}") from err
    finally:
        log.disabled = was
    return from_torch(program)
