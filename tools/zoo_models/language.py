"""transformers: encoders and decoders from configurations, two layers each, no weights fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

from .model import FULL, Made, Model, NotHere
from .weights import reseeded

ROWS = {"small": 16, "full": 128}
SIDE = {"small": 64, "full": 224}
VOCABULARY = 1000
WIDTH = {"small": 128, "full": 768}


@dataclass(frozen=True)
class _Kind:
    """`classes`: of the configuration and of the model; `takes`: its inputs by name; `names`: what
    the configuration calls width, heads, layers and the inner width of the MLP.
    """

    config: str
    model: str
    takes: tuple[str, ...] = ("input_ids",)
    names: tuple[str, ...] = (
        "hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size",
    )  # fmt: skip
    options: Mapping[str, Any] = field(default_factory=dict)
    calls: Mapping[str, Any] = field(default_factory=dict)


_PIXELS = ("pixel_values",)
_DECODER = {"num_key_value_heads": 2}
_CAUSAL = {"use_cache": False}
_SEQUENCES = ("input_ids", "decoder_input_ids")
_MASKED = ("input_ids", "attention_mask")
_BART = ("d_model", "encoder_attention_heads", "encoder_layers", "encoder_ffn_dim")
_BART_MORE = {"decoder_attention_heads": 4, "decoder_layers": 2, "decoder_ffn_dim": 256}

_KINDS = {
    "bert": _Kind("BertConfig", "BertModel"),
    "bert_masked": _Kind("BertConfig", "BertModel", _MASKED),
    "distilbert": _Kind(
        "DistilBertConfig", "DistilBertModel", names=("dim", "n_heads", "n_layers", "hidden_dim")
    ),
    "roberta": _Kind("RobertaConfig", "RobertaModel"),
    "albert": _Kind("AlbertConfig", "AlbertModel", options={"embedding_size": 64}),
    "electra": _Kind("ElectraConfig", "ElectraModel", options={"embedding_size": 64}),
    "deberta_v2": _Kind(
        "DebertaV2Config", "DebertaV2Model",
        options={"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    ),
    "mpnet": _Kind("MPNetConfig", "MPNetModel"),
    "modernbert": _Kind("ModernBertConfig", "ModernBertModel"),
    "vit": _Kind("ViTConfig", "ViTModel", _PIXELS),
    "deit": _Kind("DeiTConfig", "DeiTModel", _PIXELS),
    "beit": _Kind("BeitConfig", "BeitModel", _PIXELS),
    "dinov2": _Kind(
        "Dinov2Config", "Dinov2Model", _PIXELS, options={"patch_size": 16, "mlp_ratio": 4}
    ),
    "swin": _Kind(
        "SwinConfig", "SwinModel", _PIXELS, (),
        {"embed_dim": 48, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
    ),
    "convnext": _Kind(
        "ConvNextConfig", "ConvNextModel", _PIXELS, (),
        {"depths": [2, 2, 2, 2], "hidden_sizes": [32, 64, 96, 128]},
    ),
    "segformer": _Kind(
        "SegformerConfig", "SegformerModel", _PIXELS, (), {"depths": [1, 1, 1, 1]}
    ),
    "mobilevit": _Kind("MobileViTConfig", "MobileViTModel", _PIXELS, ()),
    "clip_text": _Kind("CLIPTextConfig", "CLIPTextModel", options={"eos_token_id": 2}),
    "clip_vision": _Kind("CLIPVisionConfig", "CLIPVisionModel", _PIXELS),
    "siglip_vision": _Kind("SiglipVisionConfig", "SiglipVisionModel", _PIXELS),
    "whisper": _Kind(
        "WhisperConfig", "WhisperModel", ("input_features", "decoder_input_ids"), _BART,
        {**_BART_MORE, "num_mel_bins": 80, "max_source_positions": 50, "pad_token_id": 0,
         "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1},
        _CAUSAL,
    ),
    "wav2vec2": _Kind("Wav2Vec2Config", "Wav2Vec2Model", ("input_values",)),
    "t5": _Kind(
        "T5Config", "T5Model", _SEQUENCES, ("d_model", "num_heads", "num_layers", "d_ff"),
        {"d_kv": 32}, _CAUSAL,
    ),
    "bart": _Kind("BartConfig", "BartModel", _SEQUENCES, _BART, _BART_MORE, _CAUSAL),
    "gpt2": _Kind(
        "GPT2Config", "GPT2Model", names=("n_embd", "n_head", "n_layer", "n_inner"), calls=_CAUSAL
    ),
    "gpt_neox": _Kind("GPTNeoXConfig", "GPTNeoXModel", calls=_CAUSAL),
    "opt": _Kind(
        "OPTConfig", "OPTModel", options={"ffn_dim": 256, "word_embed_proj_dim": 128},
        names=("hidden_size", "num_attention_heads", "num_hidden_layers"), calls=_CAUSAL,
    ),
    "bloom": _Kind(
        "BloomConfig", "BloomModel", names=("hidden_size", "n_head", "n_layer"), calls=_CAUSAL
    ),
    "llama": _Kind("LlamaConfig", "LlamaForCausalLM", options=_DECODER, calls=_CAUSAL),
    "mistral": _Kind("MistralConfig", "MistralModel", options=_DECODER, calls=_CAUSAL),
    "qwen2": _Kind("Qwen2Config", "Qwen2ForCausalLM", options=_DECODER, calls=_CAUSAL),
    "qwen3": _Kind(
        "Qwen3Config", "Qwen3Model", options={**_DECODER, "head_dim": 32}, calls=_CAUSAL
    ),
    "gemma": _Kind(
        "GemmaConfig", "GemmaModel", options={**_DECODER, "head_dim": 32}, calls=_CAUSAL
    ),
    "phi": _Kind("PhiConfig", "PhiModel", calls=_CAUSAL),
    "mamba": _Kind("MambaConfig", "MambaModel", names=("hidden_size",),
                   options={"num_hidden_layers": 2}, calls=_CAUSAL),
}  # fmt: skip


def networks() -> list[Model]:
    """Those above."""
    if find_spec("transformers") is None:
        raise NotHere("transformers is not installed")
    return [Model(name, "transformers", partial(_network, name)) for name in _KINDS]


def _network(name: str, size: str) -> Made:
    import transformers

    from .wrapped import Named

    kind, width = _KINDS[name], WIDTH[size]
    values = dict(zip(kind.names, (width, width // 32, 2, 2 * width), strict=False))
    options = dict(_only_known(kind, size)) | values | dict(kind.options)
    if size == FULL:
        options |= {n: 4 * v // 128 * width // 4 for n, v in options.items() if n in _WIDE}
    config = getattr(transformers, kind.config)(**options)
    module = getattr(transformers, kind.model)(config)
    inputs = tuple(_input(which, size, config) for which in kind.takes)
    return Made(reseeded(Named(module, kind.takes, **kind.calls), inputs), inputs)


_WIDE = ("decoder_ffn_dim", "ffn_dim", "word_embed_proj_dim")


def _only_known(kind: _Kind, size: str) -> Mapping[str, Any]:
    if "pixel_values" in kind.takes:
        return {"image_size": SIDE[size], **({"patch_size": 16} if kind.names else {})}
    return {"vocab_size": VOCABULARY, "pad_token_id": 0} if kind.takes != ("input_values",) else {}


def _input(which: str, size: str, config: Any) -> Any:
    import torch

    torch.manual_seed(1)
    rows = ROWS[size]
    if which == "pixel_values":
        return torch.randn(1, 3, SIDE[size], SIDE[size])
    if which == "input_features":
        return torch.randn(1, config.num_mel_bins, 2 * config.max_source_positions)
    if which == "input_values":
        return torch.randn(1, 4000 if size != FULL else 16000)
    if which == "attention_mask":
        return (torch.arange(rows) < rows - 5).long()[None]
    return torch.randint(3, VOCABULARY, (1, rows))
