"""llama.cpp: the weights in a file of `gguf`, as its own converter writes those of transformers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....common.optional import extra
from ....errors import InputError
from .contender import LEAST_BOUND, Job

_FILE = "model.gguf"
_KINDS = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "int8": "Q8_0", "int4": "Q4_0"}
_ARCHS = {"llama": "LLAMA", "mistral": "LLAMA", "qwen2": "QWEN2", "qwen3": "QWEN3"}
_TURNED = ("llama", "mistral")  # llama.cpp turns neighbours of a head, transformers its halves


def write(job: Job) -> None:
    """All matrices in one type, vectors as float32; no tokenizer."""
    from .configs import read_model

    gguf, model = extra("gguf"), read_model(job.model)
    config: Any = model.config
    if config.model_type not in _ARCHS or config.rope_parameters["rope_type"] != "default":
        raise InputError(
            f"llama.cpp: written are {[*_ARCHS]} with plain rotary embeddings, found "
            f"{config.model_type} with {config.rope_parameters['rope_type']}"
        )
    arch = getattr(gguf.MODEL_ARCH, _ARCHS[config.model_type])
    writer = gguf.GGUFWriter(job.files / _FILE, gguf.MODEL_ARCH_NAMES[arch])
    _write_facts(writer, config)
    kind = getattr(gguf.GGMLQuantizationType, _KINDS[job.weights])
    names = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    for name, tensor in model.named_parameters():  # a tied head is none
        array = _turned(name, tensor.detach().numpy(), config)
        stored = gguf.quants.quantize(array, kind) if array.ndim == 2 else array
        told = kind if array.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(names.get_name(name, (".weight", ".bias")), stored, raw_dtype=told)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_facts(writer: Any, config: Any) -> None:
    depth = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(depth)
    writer.add_value_length(depth)
    writer.add_rope_dimension_count(depth)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("none")


def _turned(name: str, array: np.ndarray, config: Any) -> np.ndarray:
    """Rows of queries and keys in the order of llama.cpp."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    found = next((count for part, count in heads.items() if part in name), None)
    if found is None or config.model_type not in _TURNED:
        return array
    split = array.reshape(found, 2, -1, *array.shape[1:])
    return np.ascontiguousarray(split.swapaxes(1, 2)).reshape(array.shape)


def imports() -> None:
    """Its package."""
    extra("llama_cpp")


class _Decoder:
    def __init__(self, job: Job) -> None:
        llama_cpp = extra("llama_cpp")
        kind = llama_cpp.GGML_TYPE_F32 if job.weights == "float32" else None  # of caches; its own
        self._llama = llama_cpp.Llama(
            str(job.files / _FILE), n_ctx=job.bound, n_batch=LEAST_BOUND, n_ubatch=LEAST_BOUND // 2,
            type_k=kind, type_v=kind, n_threads=job.threads, n_threads_batch=job.threads,
            verbose=False,
        )  # fmt: skip

    def feed(self, ids: np.ndarray) -> np.ndarray:
        self._llama.eval(ids.tolist())
        logits = self._llama._ctx.get_logits()
        return np.ctypeslib.as_array(logits, (self._llama.n_vocab(),)).copy()

    def reset(self) -> None:
        self._llama.reset()


def load(job: Job) -> _Decoder:
    """From its file, which it maps."""
    return _Decoder(job)
