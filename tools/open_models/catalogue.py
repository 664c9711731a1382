"""The models: two layers each, random weights, none fetched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

WIDTH, HEADS, LAYERS, WORDS, SIDE = 64, 4, 2, 100, 64
FRAMES = 100  # that Whisper's encoder makes of sound

MASKED, TYPED, STATES, IMAGE, SOUND = TAKES = (
    "ids and mask", "ids, mask and types", "ids and states", "image", "sound",
)  # fmt: skip
BATCH, SEQUENCE, HEIGHT, IMAGE_WIDTH = "batch", "sequence", "height", "width"


@dataclass(frozen=True)
class Model:
    """`make`: attention ("eager" or "sdpa") -> the module; `takes`: which inputs; `longest`: the
    most tokens, by its table of positions; `any_image`: of any height and width.
    """

    name: str
    make: Callable[[str], Any]
    takes: str
    longest: int = 512
    any_image: bool = False

    @property
    def is_text(self) -> bool:
        """Whether it has a sequence."""
        return self.takes in (MASKED, TYPED, STATES)

    @property
    def attentions(self) -> tuple[str, ...]:
        """The kinds of attention to try."""
        return ("eager", "sdpa") if self.is_text else ("eager",)

    @property
    def opened(self) -> tuple[tuple[str, ...], ...]:
        """The sizes to open, each in cells of its own."""
        if self.is_text:
            return ((SEQUENCE,), (BATCH, SEQUENCE))
        sides = (HEIGHT, IMAGE_WIDTH)
        return ((BATCH,), sides, (BATCH, *sides)) if self.any_image else ((BATCH,),)


_USUAL = {
    "hidden_size": WIDTH, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS,
    "intermediate_size": 4 * WIDTH, "vocab_size": WORDS,
}  # fmt: skip
_DISTIL = {
    "dim": WIDTH, "n_heads": HEADS, "n_layers": LAYERS, "hidden_dim": 4 * WIDTH,
    "vocab_size": WORDS,
}  # fmt: skip
_GPT2 = {
    "n_embd": WIDTH, "n_head": HEADS, "n_layer": LAYERS, "vocab_size": WORDS, "use_cache": False,
}  # fmt: skip
_T5 = {
    "d_model": WIDTH, "d_kv": WIDTH // HEADS, "d_ff": 4 * WIDTH, "num_layers": LAYERS,
    "num_heads": HEADS, "vocab_size": WORDS,
}  # fmt: skip
_DEBERTA: dict[str, Any] = {
    "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 256,
    "norm_rel_ebd": "layer_norm", "share_att_key": True,
}  # fmt: skip
_WHISPER = {
    "d_model": WIDTH, "encoder_layers": LAYERS, "decoder_layers": LAYERS, "vocab_size": WORDS,
    "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS, "pad_token_id": 0,
    "encoder_ffn_dim": 4 * WIDTH, "decoder_ffn_dim": 4 * WIDTH, "bos_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 1, "max_source_positions": FRAMES,
    "use_cache": False,
}  # fmt: skip
_SWIN = {
    "image_size": SIDE,
    "embed_dim": 32,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": 4,
}
_GROUPS: dict[str, Any] = {"num_key_value_heads": HEADS // 2, "use_cache": False}


def _of_transformers(
    kind: str, options: Mapping[str, Any], part: str = "Model", *, chooses: bool = True
) -> Callable[[str], Any]:
    """`chooses`: whether its attention can be."""

    def make(attention: str) -> Any:
        import transformers
        from zoo_models.vision import torchvision

        torchvision()  # which transformers imports
        transformers.logging.set_verbosity_error()
        given = {**options, **({"attn_implementation": attention} if chooses else {})}
        config = getattr(transformers, f"{kind}Config")(**given)
        *path, name = f"{kind}{part}".split(".")
        made = getattr(transformers, path[0] if path else name)(config)
        return getattr(made, name) if path else made

    return make


def _of_torchvision(name: str) -> Callable[[str], Any]:
    def make(attention: str) -> Any:
        from zoo_models.vision import torchvision

        return getattr(torchvision().models, name)(weights=None)

    return make


def _pooled(attention: str) -> Any:
    from .pooled import Pooled

    return Pooled(_text("Bert")(attention))


def _detector(attention: str) -> Any:
    from .detector import Detector

    return Detector()


def _text(kind: str, *, chooses: bool = True, **options: Any) -> Callable[[str], Any]:
    return _of_transformers(kind, {**_USUAL, **options}, chooses=chooses)


MODELS = [
    Model("BERT", _text("Bert"), MASKED),
    Model("DistilBERT", _of_transformers("DistilBert", _DISTIL), MASKED),
    Model("RoBERTa", _text("Roberta", max_position_embeddings=514), MASKED),
    Model("MPNet", _text("MPNet", chooses=False), MASKED),
    Model("DeBERTa", _text("DebertaV2", chooses=False, **_DEBERTA), MASKED),
    Model("ELECTRA", _text("Electra", embedding_size=WIDTH // 2), MASKED),
    Model("ALBERT", _text("Albert", embedding_size=WIDTH // 2), MASKED),
    Model("GPT-2", _of_transformers("GPT2", _GPT2), MASKED),
    Model("Llama", _text("Llama", **_GROUPS), MASKED),
    Model("Qwen2", _text("Qwen2", **_GROUPS), MASKED),
    Model("Mistral", _text("Mistral", **_GROUPS), MASKED),
    Model("Gemma", _text("Gemma", head_dim=WIDTH // HEADS, **_GROUPS), MASKED),
    Model("T5, encoder", _of_transformers("T5", _T5, "EncoderModel", chooses=False), MASKED),
    Model("CLIP, text", _text("CLIPText", eos_token_id=2), MASKED, 77),
    Model("Whisper, encoder", _of_transformers("Whisper", _WHISPER, "Model.encoder"), SOUND),
    Model("Whisper, decoder", _of_transformers("Whisper", _WHISPER, "Model.decoder"), STATES, 448),
    Model("ViT", _text("ViT", image_size=SIDE), IMAGE),
    Model("DeiT", _text("DeiT", image_size=SIDE), IMAGE),
    Model("Swin", _of_transformers("Swin", _SWIN, chooses=False), IMAGE),
    *(
        Model(title, _of_torchvision(name), IMAGE)
        for title, name in {
            "ResNet-18": "resnet18", "ResNet-50": "resnet50", "MobileNetV2": "mobilenet_v2",
            "MobileNetV3": "mobilenet_v3_small", "EfficientNet": "efficientnet_b0",
        }.items()
    ),
    Model("BERT, as optimum writes it", _text("Bert"), TYPED),
    Model("MiniLM, pooled", _pooled, MASKED),
    Model("Detector", _detector, IMAGE, any_image=True),
]  # fmt: skip
