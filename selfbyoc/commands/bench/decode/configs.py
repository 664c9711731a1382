"""Decoders by their configurations, with seeded random weights that everybody gets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ....common.optional import extra
from ....errors import InputError, did_you_mean

if TYPE_CHECKING:
    import torch

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "tiny": {
        "model_type": "llama", "vocab_size": 500, "hidden_size": 128, "intermediate_size": 256,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 2048, "tie_word_embeddings": True,
    },
    "qwen2-0.5b": {
        "model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864,
        "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
        "max_position_embeddings": 32768, "tie_word_embeddings": True,
    },
    "llama-1b": {
        "model_type": "llama", "vocab_size": 128256, "hidden_size": 2048,
        "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072,
        "tie_word_embeddings": True,
    },
}  # fmt: skip
CHECKED = 17  # tokens of the prompt that everybody's logits are compared for
_DIFFERENT = 0.1  # how far norms and biases are from one and zero: a peer may not leave them out


def check_config(name: str) -> None:
    """Raises InputError for what is neither a known name nor a folder with config.json."""
    if name not in CONFIGS and not (Path(name) / "config.json").is_file():
        raise InputError(
            f"--decode: expected one of {[*CONFIGS]} or a folder with config.json, found "
            f"{name!r}{did_you_mean(name, CONFIGS)}"
        )


def key_of(name: str) -> str:
    """What tells a configuration from another of that name."""
    told = (
        json.dumps(CONFIGS[name]) if name in CONFIGS else (Path(name) / "config.json").read_text()
    )
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def write_model(name: str, folder: Path) -> int:
    """The model as transformers saves it, `ids.npy` of a prompt, `logits.npy` of PyTorch for it
    without its last token and with it; -> how many weights a token reads.
    """
    torch, transformers = extra("torch"), extra("transformers")
    transformers.logging.disable_progress_bar()
    told = dict(CONFIGS.get(name, {}))
    found = transformers.AutoConfig
    config = found.for_model(**told) if told else found.from_pretrained(name)
    for token, number in (("bos", 1), ("eos", 2), ("pad", 0)):  # what GenAI wants to know
        if getattr(config, f"{token}_token_id", None) is None:
            setattr(config, f"{token}_token_id", number)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for each in model.parameters():
            if each.ndim == 1:
                each += _DIFFERENT * torch.randn_like(each)
    model.save_pretrained(folder)
    _write_tokenizer(transformers, folder)
    ids = np.random.default_rng(0).integers(0, config.vocab_size, CHECKED)
    np.save(folder / "ids.npy", ids)
    with torch.no_grad():
        logits = model(torch.from_numpy(ids[None])).logits[0, -2:].numpy()
    np.save(folder / "logits.npy", logits)
    linear = (each for each in model.modules() if isinstance(each, torch.nn.Linear))
    return sum(int(each.weight.numel()) for each in linear)


def read_model(folder: Path) -> torch.nn.Module:
    """What `write_model` wrote."""
    transformers = extra("transformers")
    transformers.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    return model.eval()


def _write_tokenizer(transformers: Any, folder: Path) -> None:
    """Of three words: GenAI's builder asks for one, and nobody uses it."""
    models, tokenizer = extra("tokenizers").models, extra("tokenizers").Tokenizer
    words = models.WordLevel({f"t{n}": n for n in range(3)}, unk_token="t0")
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer(words), bos_token="t1", eos_token="t2", pad_token="t0"
    )
    made.save_pretrained(folder)
