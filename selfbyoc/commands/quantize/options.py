"""The options of `quantize`."""

from __future__ import annotations

from pathlib import Path

from ..command import Commands, add_command, at_least, runs
from ..model_file import add_shape

CALIBRATIONS = ("minmax", "entropy", "percentile")


def add_quantize(commands: Commands) -> None:
    """From a model of floats to one of levels."""
    parser = add_command(
        commands, "quantize", "an ONNX model in 8 bits, by ONNX Runtime: how near, how fast",
        """
        % model.onnx --data folder
        % model.onnx --random 16   only for its speed
        % model.onnx --dynamic --random 4 -o out.onnx
        % model.onnx --data folder --float /head/Gemm""",
    )  # fmt: skip
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL.onnx", help="of float32")
    add("-o", "--output", type=Path, metavar="FILE.onnx", help="default: MODEL.int8.onnx, here")
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--data", type=Path, metavar="DIR", help="what ranges and accuracy are "
        "found on: a call's inputs in each .npz, or .npy of one input")  # fmt: skip
    given.add_argument("--random", type=at_least(1), metavar="N", help="as many made-up calls")
    add("--dynamic", action="store_true", help="scales of activations are found in each call, of "
        "products of matrices alone: what transformers are usually given")  # fmt: skip
    add("--float", dest="in_float", action="append", default=[], metavar="NODE",
        help="the name of a node that stays in float; may be given again")  # fmt: skip
    add("--calibration", choices=CALIBRATIONS, default="minmax", help="how ranges are found; "
        "default: minmax")  # fmt: skip
    add("--seven-bits", action="store_true", help="weights of 7 bits: less exact, and faster on "
        "CPUs without VNNI")  # fmt: skip
    add("--seed", type=at_least(0), default=0, help="of what is made up; default: 0")
    add("--no-build", dest="builds", action="store_false", help="only write it: neither accuracy "
        "nor time")  # fmt: skip
    add_shape(parser)
    parser.set_defaults(run=runs("quantize.command", "run"))
