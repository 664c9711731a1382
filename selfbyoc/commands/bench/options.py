"""The options of `python -m selfbyoc bench`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...errors import InputError
from ...models.sizes import parse_lengths, parse_sizes
from ..command import Commands, add_command, at_least, runs
from ..model_file import add_composites, add_input, add_shape, checked

WEIGHTS = ("float32", "float16", "bfloat16", "int8", "int4")  # of what --decode times


def parse_weights(text: str) -> list[str]:
    """`float16,int4`. Raises InputError for a kind that there is not."""
    found = text.split(",")
    if not {*found} <= {*WEIGHTS}:
        raise InputError(f"weights: expected some of {','.join(WEIGHTS)}, found {text}")
    return found


def add_bench(commands: Commands) -> None:
    """The command, in the command line's list of them."""
    bench = add_command(
        commands, "bench", "models and workloads against other runtimes",
        """
        % model.onnx --shape images=1x3x224x224
        % model.so                by itself
        % one.onnx two.onnx --peers onnxruntime
        % model.onnx --lengths length=1,16,128 --size batch=1
        % model.onnx --where      kernel by kernel
        % model.onnx --start      first answer, memory
        % --decode qwen2-0.5b --weights float16,int4
        % --only attention --quick""",
    )  # fmt: skip
    add = bench.add_argument
    add("own", type=Path, nargs="*", metavar="MODEL", help="measure these, not the suite: ONNX "
        "files against all that are installed, a .pt2 or TVM's JSON against TVM alone, what "
        "`compile` wrote by itself")  # fmt: skip
    add_shape(bench)
    add_input(bench)
    add_composites(bench)
    add("--lengths", type=checked(parse_lengths), metavar="NAME=1,16,128", help="build a model "
        "with an open size of this name once, and time it at these against our build for each "
        "and against peers that load it once")  # fmt: skip
    add("--size", type=checked(lambda text: parse_sizes([text])), action="append", default=[],
        metavar="NAME=1", help="beside --lengths, fixes another open size; of what is no "
        "ONNX file, the size of its inputs; may be given again")  # fmt: skip
    add("--target", help="what TVM's builds and the peak are made for; it must run here; default: "
        "this machine's CPU")  # fmt: skip
    add("--threads", type=at_least(1), metavar="N", help="of everybody; default: all cores")
    add("--requantize", choices=("stepwise", "combined"), default="stepwise", help="how our builds "
        "make levels of sums, as `compile` has it")  # fmt: skip
    add("--only", action="append", default=[], metavar="NAME", help="workloads that begin so")
    add("--sweep", action="store_true", help="also shapes taken from real networks")
    add("--models", action="store_true", help="also whole models, of floats and in int8")
    add("--quick", action="store_true", help="few windows: numbers to look at, not to quote")
    add("--peers", metavar="NAMES", help="these contenders, by commas; all: the slow ones too")
    add("--builds", type=at_least(1), default=1, metavar="N", help="the best of N of everybody")
    add("--minilm", type=Path, metavar="FILE", help="model.safetensors of all-MiniLM-L6-v2")
    add("--json", type=Path, metavar="FILE", help="also write all as data, after each workload")
    add("--resume", action="store_true", help="measure only what the JSON file lacks")
    add("--roofline", type=Path, metavar="FILE.svg", help="also draw a roofline plot")
    _add_questions(bench)
    add("--markdown", type=Path, metavar="FILE.json", help="print this report as Markdown")
    add("--list", action="store_true", help="list the workloads and who can take part")
    bench.set_defaults(run=runs("bench.command", "show"))


def _add_questions(bench: argparse.ArgumentParser) -> None:
    """What else is asked than how long a call takes."""
    add = bench.add_argument
    add("--start", action="store_true", help="of each MODEL.onnx: seconds until the first answer "
        "of a new process, its memory and the file's size, beside the peers'")  # fmt: skip
    add("--where", action="store_true", help="take each MODEL.onnx apart: what our kernels take, "
        "what they would take at least, and what ONNX Runtime and OpenVINO take for the same "
        "nodes")  # fmt: skip
    add("--decode", metavar="CONFIG", help="a language model of seeded weights token by token, "
        "beside llama.cpp, ONNX Runtime GenAI and OpenVINO: tiny, qwen2-0.5b, llama-1b, or a "
        "folder with config.json")  # fmt: skip
    add("--weights", type=checked(parse_weights), metavar="KINDS", help="beside --decode, of "
        "float32, float16, bfloat16, int8 and int4, by commas; default: all")  # fmt: skip
    add("--behind", type=at_least(1), metavar="TOKENS", help="beside --decode, how "
        "many there are when one is timed; default: 128")  # fmt: skip
    add("--keep", type=Path, metavar="FOLDER", help="beside --decode, keeps everybody's files, and "
        "takes the peers' from there the next time")  # fmt: skip
