"""ONNX Runtime GenAI: its own builder's model of the folder of transformers."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np

from ....common.optional import extra
from ....errors import ToolError
from .contender import GROUP, Job

_KINDS = {"float32": "fp32", "float16": "fp16", "int8": "int8", "int4": "int4"}


def write(job: Job) -> None:
    """Levels by groups as everybody's, and sums of bytes: accuracy level 4."""
    if job.weights not in _KINDS:
        raise ToolError(f"onnxruntime-genai: its builder writes no {job.weights} for CPUs")
    command = [
        sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(job.model),
        "-o", str(job.files), "-c", str(job.files / "cache"),
        "-p", _KINDS[job.weights], "-e", "cpu",
    ]  # fmt: skip
    if job.weights in ("int8", "int4"):
        command += ["--extra_options", f"block_size={GROUP}", "accuracy_level=4"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ToolError(f"onnxruntime-genai: {(done.stderr.strip().splitlines() or ['?'])[-1]}")


def imports() -> None:
    """Its package."""
    extra("onnxruntime_genai")


class _Decoder:
    def __init__(self, job: Job) -> None:
        genai = extra("onnxruntime_genai")
        config = genai.Config(str(job.files))
        options = {"intra_op_num_threads": job.threads}
        config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
        self._genai, self._model, self._bound = genai, genai.Model(config), job.bound
        self.reset()

    def feed(self, ids: np.ndarray) -> np.ndarray:
        self._generator.append_tokens(ids.astype("int32"))
        return np.asarray(self._generator.get_logits())[0, -1]

    def reset(self) -> None:
        params = self._genai.GeneratorParams(self._model)
        params.set_search_options(max_length=self._bound, batch_size=1)
        self._generator: Any = self._genai.Generator(self._model, params)


def load(job: Job) -> _Decoder:
    """From its folder."""
    return _Decoder(job)
