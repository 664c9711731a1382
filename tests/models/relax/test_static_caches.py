"""Programs of PyTorch with static caches, against PyTorch; those of transformers, too."""

import numpy as np
import pytest

import selfbyoc
from selfbyoc.errors import InputError
from selfbyoc.runtime.tolerance import first_wrong

torch = pytest.importorskip("torch")
VOCABULARY, WIDTH, HEADS, SHARED, DEPTH, BOUND = 50, 32, 4, 2, 8, 32  # rows are as many as columns
IDS = [int(n) for n in np.random.default_rng(5).integers(0, VOCABULARY, 20)]


class Static(torch.nn.Module):
    """One layer with positions added to queries; `BOUND` rows are read, filled or not."""

    def __init__(self, batch=1, dtype=torch.float32, window=BOUND):
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.window = window
        shapes = {"q": HEADS, "k": SHARED, "v": SHARED}
        for name, heads in shapes.items():
            setattr(self, name, torch.nn.Linear(WIDTH, heads * DEPTH, bias=False))
        self.out = torch.nn.Linear(HEADS * DEPTH, VOCABULARY, bias=False)
        for name in ("keys", "values"):
            rows = torch.zeros(batch, SHARED, BOUND, DEPTH, dtype=dtype)
            self.register_buffer(name, rows, persistent=False)
        self.register_buffer("length", torch.tensor(0), persistent=False)

    def mask(self, at):
        row, column = at[:, None], torch.arange(BOUND)[None]
        return (column <= row) & (column > row - self.window)

    def put(self, cache, at, new):
        return cache.index_copy_(2, at, new)

    def forward(self, ids, at):
        self.length.copy_(at[0])
        at = torch.arange(ids.shape[1]) + self.length
        x = self.table(ids)
        q, k, v = (
            getattr(self, name)(x).unflatten(-1, (-1, DEPTH)).transpose(1, 2) for name in "qkv"
        )
        q = q + torch.sin(at.to(q.dtype))[:, None]
        k, v = self.put(self.keys, at, k), self.put(self.values, at, v)
        k, v = (each.repeat_interleave(HEADS // SHARED, 1) for each in (k, v))
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, self.mask(at))
        return self.out(mixed.transpose(1, 2).flatten(2))


def exported(model, count=None, batch=1):
    """For `count` tokens a call; None: any number."""
    ids, n = torch.zeros((batch, count or 5), dtype=torch.int64), torch.export.Dim("n", max=BOUND)
    given = (ids, torch.arange(count or 5))
    return torch.export.export(model, given, dynamic_shapes=None if count else ({1: n}, {0: n}))


def logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), torch.arange(len(ids)))[0].numpy()


@pytest.mark.parametrize("count", [None, 1, 5], ids=["any", "one", "five"])
def test_any_number_of_tokens(count):
    model = Static(window=6)
    wanted = logits(model, IDS)
    library = selfbyoc.build(selfbyoc.decoding(exported(model, count), bound=BOUND, piece=16))
    assert library.report.counts["attention_of_heads"] == 1
    names = [name for name, _, _ in library.inputs]
    assert names == ["ids", "past", "keys", "values"]
    own = selfbyoc.Decoder(library)
    assert (own.bound, own.piece) == (BOUND, 16)
    end = 0
    for count in (7, 1, 1, 3, 8):
        end += count
        found = own.feed(IDS[end - count : end])
        assert first_wrong(found, wanted[end - 1], "float32", WIDTH) is None


def test_a_program_stays_as_it_was():
    model, ids = Static(), torch.tensor([IDS[:1]])
    program = exported(model, 1)
    with torch.no_grad():
        before = program.module()(ids, torch.arange(1))
        selfbyoc.decoding(program, bound=9)
        assert torch.equal(before, program.module()(ids, torch.arange(1)))


FAMILIES = {"Llama": {}, "Qwen2": {}, "Gemma3": {"head_dim": 16, "sliding_window": 8}}


def of_transformers(family):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    name = "Gemma3TextConfig" if family == "Gemma3" else f"{family}Config"
    config = getattr(transformers, name)(
        vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, **FAMILIES[family],
    )  # fmt: skip
    if family == "Gemma3":
        config.layer_types = ["sliding_attention", "full_attention"]
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    model.generation_config = transformers.GenerationConfig(
        use_cache=True, cache_implementation="static", max_length=BOUND,
        cache_config={"batch_size": 1, "max_cache_len": BOUND},
    )  # fmt: skip
    return model


def exported_by_transformers(model, count):
    from transformers.integrations import executorch

    if count == 1:
        return executorch.convert_and_export_with_cache(model)
    n = torch.export.Dim("n", max=BOUND - 1)
    return executorch.TorchExportableModuleForDecoderOnlyLM(model).export(
        input_ids=torch.zeros((1, 5), dtype=torch.int64), cache_position=torch.arange(5),
        dynamic_shapes={"input_ids": {1: n}, "cache_position": {0: n}},
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore:While compiling.*side effects")
@pytest.mark.parametrize("count", [1, None], ids=["one", "any"])
@pytest.mark.parametrize("family", FAMILIES)
def test_programs_of_transformers(family, count):
    """Tokens far behind the window, fed one by one and in pieces: logits, and the most likely."""
    model = of_transformers(family)
    program = exported_by_transformers(model, count)
    own = selfbyoc.Decoder(selfbyoc.build(selfbyoc.decoding(program, bound=BOUND, piece=8)))
    assert own.library.report.counts["attention_of_heads"] == 2
    told = [*IDS[:10], *own.tokens(IDS[:10], 20)]
    with torch.no_grad():
        wanted = model(torch.tensor([told])).logits[0].numpy()
    assert told[10:] == list(wanted.argmax(-1)[9:-1])
    own.cache = own.new_cache()
    for token, logits in zip(told, wanted, strict=True):
        assert first_wrong(own.feed([token]), logits, "float32", WIDTH) is None


def test_caches_that_are_constants_are_refused():
    """What transformers gives without dynamo."""
    executorch = pytest.importorskip("transformers.integrations.executorch")
    program = executorch.convert_and_export_with_cache(of_transformers("Llama"), strict=False)
    with pytest.raises(InputError, match="constant, as it does with strict=False; export"):
        selfbyoc.decoding(program, bound=BOUND)


class Unmasked(Static):
    """Rows that are not filled are read."""

    def mask(self, at):
        return torch.arange(BOUND)[None] < at[:, None] + BOUND


class Counting(Static):
    """Positions that the module counts itself."""

    def forward(self, ids, at):
        self.length.add_(1)
        return super().forward(ids, at + 0 * self.length)


class Sum(Static):
    """Rows that are added to what is there."""

    def put(self, cache, at, new):
        return cache.index_add_(2, at, new)


class Twice(Static):
    """Every other row."""

    def put(self, cache, at, new):
        return cache.index_copy_(2, at * 2, new)


REFUSED = {
    Unmasked: "expected a mask and places that follow from cache_position",
    Counting: r"found others that it writes: \['length'\]",
    Sum: r"found others that it writes: \['keys', 'values'\]",
    Twice: "expected a mask and places that follow from cache_position",
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_cache_is_refused(kind):
    with pytest.raises(InputError, match=REFUSED[kind]):
        selfbyoc.decoding(exported(kind(), 1), bound=BOUND)


def test_what_is_refused_by_name():
    with pytest.raises(InputError, match=r"float32, found keys of \[2, 2, 32, 8\] of torch.flo"):
        selfbyoc.decoding(exported(Static(batch=2), 1, batch=2), bound=BOUND)
    half = Static(dtype=torch.float16).half()
    with pytest.raises(InputError, match=r"found keys of \[1, 2, 32, 8\] of torch.float16"):
        selfbyoc.decoding(exported(half, 1), bound=BOUND)
    with pytest.raises(InputError, match="bound: the program's caches are of 32 rows, found 33"):
        selfbyoc.decoding(exported(Static(), 1), bound=BOUND + 1)
    program = torch.export.export(torch.nn.Linear(2, 3), (torch.zeros(1, 2),))
    with pytest.raises(InputError, match=r"found inputs input \[1, 2\], results.* and 0 caches"):
        selfbyoc.decoding(program)
