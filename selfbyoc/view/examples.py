"""What `--help` of a command shows below its options: lines that can be typed."""

from __future__ import annotations

import argparse
from typing import Any

EXAMPLES = {
    "demo": ["--output build/demo"],
    "composites": [""],
    "ops": ["", "conv2d"],
    "explain": [
        "model.onnx --html page.html",
        "model.onnx --root relu_3",
        "model.onnx --composites mine.py --composite mine",
    ],
    "melting": ["model.onnx --time", "model.onnx --composite conv2d_relu_conv2d_relu"],
    "verify": ["model.onnx", "model.onnx --composites mine.py --kind nan"],
    "bounds": ["model.onnx", "mine.py --target 'llvm -mcpu=haswell'", "--composite dense --no-run"],
    "lint": ["mine.py"],
    "op-info": ["dense", "--target 'llvm -mcpu=haswell' --json info.json"],
    "bench": ["model.onnx --shape images=1x3x224x224", "--sweep --models --json all.json --resume"],
    "tune": ["model.onnx --list", "model.onnx --records records --seconds 3600"],
    "records": ["records", "records model.onnx"],
    "cache": ["", "--clear"],
    "fuzz": ["--seconds 600 --seed 1", "--replay build/fuzz/CASE.json"],
}


def add_examples(commands: Any) -> None:
    """A sentence before the options, and examples after them, where a command has none yet."""
    words = {action.dest: action.help for action in commands._choices_actions}
    for name, parser in commands.choices.items():
        if name not in EXAMPLES:
            continue
        lines = [f"  %(prog)s {arguments}".rstrip() for arguments in EXAMPLES[name]]
        text = words[name]
        parser.description = f"{text[0].upper()}{text[1:]}{'' if text.endswith('?') else '.'}"
        parser.epilog = "\n".join(["examples:", *lines])
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
