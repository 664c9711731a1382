"""Decoders of transformers, by family and by what their weights are: the page's table.

    python tools/decoders.py [FAMILY ...] > docs/reports/decoders.md      (.venv-zoo, ten minutes)
    python tools/decoders.py --optimum > docs/reports/exported-decoders.md    (beside optimum-onnx,
                                                 whose transformers is an older one; ten minutes)
    python tools/decoders.py --models > docs/reports/decoder-sizes.md         (20 minutes)

Two layers of seeded random weights each, or (--models) one of the sizes of a model that people
have, by each of several targets: what a plan decides follows from these. Logits are compared with
PyTorch's in float64, of the weights that the library has (levels of few bits are floats again
there), of a prompt in one piece, in pieces and token by token; and 64 tokens with `generate`.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import transformers

import selfbyoc
from selfbyoc.errors import FallbackWarning, SelfbyocError
from selfbyoc.simplify.few_bits import NAMES, in_groups, takes

VOCABULARY, TOKENS, PROMPT, BOUND, PIECE, GROUP = 500, 64, 10, 128, 64, 32
SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": 128, "intermediate_size": 256,
    "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 256,
    "pad_token_id": 0,
}  # fmt: skip
SHARED = {"num_key_value_heads": 2}
WINDOW = {"sliding_window": 16}
HEADS = {"head_dim": 32}
OF_GPT2 = {"vocab_size": VOCABULARY, "n_positions": 256, "n_embd": 128, "n_layer": 2, "n_head": 4}
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Llama": ("LlamaForCausalLM", "LlamaConfig", SIZES | SHARED),
    "Qwen2": ("Qwen2ForCausalLM", "Qwen2Config", SIZES | SHARED),
    "Qwen3": ("Qwen3ForCausalLM", "Qwen3Config", SIZES | SHARED | HEADS),
    "Mistral": ("MistralForCausalLM", "MistralConfig", SIZES | SHARED | WINDOW),
    "Gemma": ("GemmaForCausalLM", "GemmaConfig", SIZES | SHARED | HEADS),
    "Gemma2": ("Gemma2ForCausalLM", "Gemma2Config", SIZES | SHARED | HEADS | WINDOW),
    "Gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", SIZES | SHARED | HEADS | WINDOW),
    "Phi": ("PhiForCausalLM", "PhiConfig", SIZES | SHARED),
    "Phi-3": ("Phi3ForCausalLM", "Phi3Config", SIZES | SHARED),
    "GPT-2": ("GPT2LMHeadModel", "GPT2Config", OF_GPT2),
    "GPT-NeoX": ("GPTNeoXForCausalLM", "GPTNeoXConfig", SIZES),
    "SmolLM3": ("SmolLM3ForCausalLM", "SmolLM3Config", SIZES | SHARED),
    "Granite": ("GraniteForCausalLM", "GraniteConfig", SIZES | SHARED),
    "OLMo2": ("Olmo2ForCausalLM", "Olmo2Config", SIZES | SHARED),
}
HELD: dict[str, dict[str, Any]] = {
    "float32": {},
    "float16": {"weights": "float16"},
    "int8": {"weights": "int8", "group": GROUP},
    "int4": {"weights": "int4", "group": GROUP},
}
TARGETS = ("llvm -mcpu=znver4", "llvm -mcpu=haswell", "llvm")
MODELS = {  # family, width, heads of queries and of keys, columns of each, columns of the MLP
    "GPT-2": ("GPT-2", 768, 12, 12, 64, 3072),
    "GPT-2 XL": ("GPT-2", 1600, 25, 25, 64, 6400),
    "Llama 3.2 1B": ("Llama", 2048, 32, 8, 64, 8192),
    "TinyLlama": ("Llama", 2048, 32, 4, 64, 5632),
    "SmolLM2 135M": ("Llama", 576, 9, 3, 64, 1536),
    "SmolLM2 360M": ("Llama", 960, 15, 5, 64, 2560),
    "Qwen2.5 0.5B": ("Qwen2", 896, 14, 2, 64, 4864),
    "Qwen2.5 1.5B": ("Qwen2", 1536, 12, 2, 128, 8960),
    "Qwen3 0.6B": ("Qwen3", 1024, 16, 8, 128, 3072),
    "Gemma 2B": ("Gemma", 2048, 8, 1, 256, 16384),
    "Gemma 2 2B": ("Gemma2", 2304, 8, 4, 256, 9216),
    "Gemma 3 1B": ("Gemma3", 1152, 4, 1, 256, 6912),
    "Phi-2": ("Phi", 2560, 32, 32, 80, 10240),
    "Phi-3 mini": ("Phi-3", 3072, 32, 32, 96, 8192),
    "Pythia 160M": ("GPT-NeoX", 768, 12, 12, 64, 3072),
    "SmolLM3 3B": ("SmolLM3", 2048, 16, 4, 128, 11008),
    "Granite 2B": ("Granite", 2048, 32, 8, 64, 8192),
    "OLMo 2 1B": ("OLMo2", 2048, 16, 16, 128, 8192),
}
OF_FILES = " of the ONNX file that optimum writes for each (`text-generation-with-past`)"
PIECES = ([40], [5, 1, 1, 7, 26], [1] * 40)


def model_of(family: str, **own: Any) -> torch.nn.Module:
    """With seeded random weights, the head's its own: tables stay float32."""
    kind, config, sizes = FAMILIES[family]
    torch.manual_seed(0)
    told = getattr(transformers, config)(**(sizes | own), tie_word_embeddings=False)
    return getattr(transformers, kind)(told).eval()


def as_held(model: torch.nn.Module, weights: str) -> torch.nn.Module:
    """A copy in float64 with the numbers that a library has."""
    done = copy.deepcopy(model)
    if weights == "float16":  # tables too, which the file holds so
        for parameter in done.parameters():
            parameter.data = parameter.data.half().float()
        return done.double()
    done = done.double()
    linear = (torch.nn.Linear, transformers.pytorch_utils.Conv1D)
    for module in (m for m in done.modules() if isinstance(m, linear)):
        given = module.weight.detach().numpy().astype("float32")
        units = given if isinstance(module, torch.nn.Linear) else given.T
        if weights in NAMES and takes(units):
            held = _floats(*in_groups(units, NAMES[weights], GROUP))
            module.weight.data = torch.from_numpy(held if units is given else held.T.copy())
    return done


def _floats(levels: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
    def of_each(array: np.ndarray) -> np.ndarray:
        return np.repeat(array.astype("float64"), GROUP, 1)[:, : levels.shape[1]]

    return (levels - of_each(zero)) * of_each(scale)


def exported(model: torch.nn.Module) -> selfbyoc.tvm.types.IRModule:
    """The model out of the ONNX file that optimum writes, with its caches as inputs."""
    from optimum.exporters.onnx import main_export

    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(f"{folder}/model")
        told = {"task": "text-generation-with-past", "library_name": "transformers"}
        main_export(f"{folder}/model", output=f"{folder}/onnx", do_validation=False, **told)
        sizes: dict[str, Any] = {"batch_size": 1, "sequence_length": (1, PIECE)}
        return selfbyoc.from_onnx(f"{folder}/onnx/model.onnx", sizes=sizes)


def cells(family: str, by_optimum: bool) -> Iterator[str]:
    """Of each way to hold weights, the largest error and tokens that differ; then the kernels."""
    model = model_of(family)
    mod = selfbyoc.decoding(exported(model) if by_optimum else model, bound=BOUND, piece=PIECE)
    ids = np.random.default_rng(1).integers(0, VOCABULARY, 40)
    kernels = ""
    for weights, how in HELD.items():
        library, fallen = built(mod, **how)
        counts = library.report.counts if library.report else {}
        kernels = kernels or ", ".join(f"{n} {k}" for k, n in counts.items())
        yield cell(selfbyoc.Decoder(library), as_held(model, weights), ids) + fallen
    yield kernels


def of_models() -> None:
    """The page of models by targets."""
    ids = np.random.default_rng(1).integers(0, VOCABULARY, 40)
    print("# Decoders of the sizes that models have\n")
    print(
        "Written by `tools/decoders.py --models`: one layer of seeded random weights, its sizes "
        "those of a model, built by `selfbyoc.decoding` for at most 2048 tokens in pieces of 512; "
        f"transformers {transformers.__version__}. Of each target the largest error of a logit, "
        "over the largest, against PyTorch in float64: a prompt in one piece, in pieces and token "
        f"by token. {TOKENS} tokens are those of `generate`, and all kernels have their own "
        "schedule, where nothing else is said.\n"
    )
    print("| | heads, shared, columns |", " | ".join(f"`{target}`" for target in TARGETS), "|")
    print("|---" * (len(TARGETS) + 2) + "|")
    for name, (family, width, heads, shared, depth, inner) in MODELS.items():
        model = model_of(family, **_sizes(family, width, heads, shared, depth, inner))
        mod = selfbyoc.decoding(model, bound=2048, piece=512)
        found = [of_target(mod, target, model, ids) for target in TARGETS]
        told = f"{heads}, {shared}, {depth}"
        print(f"| {name} | {told} |", " | ".join(found), "|", flush=True)


def _sizes(
    family: str, width: int, heads: int, shared: int, depth: int, inner: int
) -> dict[str, Any]:
    """One layer of these, by the names that a family has for them."""
    if family == "GPT-2":
        return {"n_embd": width, "n_head": heads, "n_layer": 1, "n_positions": 2048}
    found = {"hidden_size": width, "num_attention_heads": heads, "intermediate_size": inner,
             "num_hidden_layers": 1, "max_position_embeddings": 2048}  # fmt: skip
    own = {} if family == "GPT-NeoX" else {"num_key_value_heads": shared}
    return found | own | ({"head_dim": depth} if depth * heads != width else {})


def of_target(mod: Any, target: str, model: torch.nn.Module, ids: np.ndarray) -> str:
    """The largest error; what has the default schedule, or none."""
    library, fallen = built(mod, target)
    return cell(selfbyoc.Decoder(library), as_held(model, "float32"), ids) + fallen


def built(mod: Any, target: str | None = None, **how: Any) -> tuple[selfbyoc.Library, str]:
    """A library, and how many kernels lack their schedule, if any do."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        library = selfbyoc.build(mod, target, **how)
    fallen = sum(issubclass(each.category, FallbackWarning) for each in caught)
    return library, f", {fallen} without its schedule" if fallen else ""


def cell(decoder: selfbyoc.Decoder, wanted: torch.nn.Module, ids: np.ndarray) -> str:
    """The largest error, and how many tokens are the same."""
    with torch.no_grad():
        logits = wanted(torch.from_numpy(ids[None])).logits[0].numpy()
        told = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": False}
        after = wanted.generate(torch.from_numpy(ids[None, :PROMPT]), **told)[0, PROMPT:].tolist()
    worst = 0.0
    for pieces in PIECES:
        decoder.cache = decoder.new_cache()
        for end, count in zip(itertools.accumulate(pieces), pieces, strict=True):
            found = decoder.feed(ids[end - count : end])
            worst = max(worst, float(np.abs(found - logits[end - 1]).max()))
    decoder.cache = decoder.new_cache()
    told_ours = decoder.tokens(ids[:PROMPT], TOKENS)
    same = next(
        (n for n, (a, b) in enumerate(zip(told_ours, after, strict=True)) if a != b), TOKENS
    )
    tokens = "" if same == TOKENS else f", {same} tokens"
    return f"{worst / np.abs(logits).max():.0e}{tokens}"


def main() -> None:
    """The page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY", choices=[[], *FAMILIES])
    parser.add_argument("--optimum", action="store_true", help="out of the ONNX files it writes")
    parser.add_argument("--models", action="store_true", help="of the sizes that models have")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.models:
        return of_models()
    asked = given.families or list(FAMILIES)
    print(f"# Decoders of transformers{', as optimum exports them' if given.optimum else ''}\n")
    print(
        "Written by `tools/decoders.py`: two layers of seeded random weights, built by "
        f"`selfbyoc.decoding`{OF_FILES if given.optimum else ''}; transformers "
        f"{transformers.__version__}. Of each way to hold the weights of dense layers (groups of "
        f"{GROUP}) the largest error of a logit, over the largest, against PyTorch in float64 "
        "with the same weights: a prompt in one piece, in pieces and token by token. "
        f"{TOKENS} tokens are those of `generate`, where nothing else is said.\n"
    )
    print("| |", " | ".join(HELD), "| kernels of float32 |")
    print("|---" * (len(HELD) + 2) + "|")
    for family in asked:
        try:
            print(f"| {family} |", " | ".join(cells(family, given.optimum)), "|", flush=True)
        except (SelfbyocError, RuntimeError, ValueError) as err:  # optimum's, and its traces'
            print(f"| {family} | {type(err).__name__}: {err} |", flush=True)
    return None


if __name__ == "__main__":
    main()
