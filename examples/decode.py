"""A language model of transformers, from a prompt of token ids to a stream of tokens (Relax).

    python examples/decode.py                         a small one, seeded, in half a minute
    python examples/decode.py FOLDER --weights int4   what save_pretrained wrote, with its weights

Words and ids are the tokenizer's, of the packages tokenizers and transformers; here is none.
"""

import argparse
import time

import numpy as np
import torch
import transformers
from rich.progress import Progress, TextColumn, TimeElapsedColumn

import selfbyoc

LEVELS = {"group": 32, "activations": "int8"}


def model_of(folder: str | None) -> torch.nn.Module:
    """The model in a folder; a small Qwen2 of random weights where none is given."""
    if folder is not None:
        return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        vocab_size=1000, hidden_size=256, intermediate_size=704, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
    )  # fmt: skip
    return transformers.Qwen2ForCausalLM(config).eval()


def main() -> None:
    """Build, feed a prompt, print tokens a second; compare them with PyTorch's."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", help="a model of transformers")
    parser.add_argument("--weights", default="float32", help="float32, float16, int8, int4")
    parser.add_argument("--tokens", type=int, default=32)
    args = parser.parse_args()
    model = model_of(args.folder)
    how = LEVELS if args.weights.startswith("int") else {}
    mod = selfbyoc.decoding(model, bound=min(512, model.config.max_position_embeddings))
    library = selfbyoc.build(mod, weights=args.weights, **how)
    print(library.report.counts if library.report else "")
    decoder = selfbyoc.Decoder(library)
    prompt = np.random.default_rng(0).integers(0, model.config.vocab_size, 16)
    columns = TextColumn("{task.completed} tokens"), TimeElapsedColumn()
    found: list[int] = []
    with Progress(*columns, transient=True) as progress:
        task, start = progress.add_task("", total=args.tokens), time.perf_counter()
        for token in decoder.tokens(prompt, args.tokens):
            found.append(token)
            progress.update(task, advance=1)
        seconds = time.perf_counter() - start
    print("tokens:", *found)
    print(f"{len(found) / seconds:.1f} tokens a second")
    if args.weights == "float32":  # others are other numbers
        with torch.no_grad():
            ids = torch.from_numpy(prompt[None])
            told = model.generate(ids, max_new_tokens=args.tokens, do_sample=False)
        print(f"the same as PyTorch's: {found == told[0, len(prompt) :].tolist()}")


if __name__ == "__main__":
    main()
