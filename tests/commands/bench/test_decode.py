"""`bench --decode`: ours and the peers on a tiny language model, and who computes another one."""

import io
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from selfbyoc.__main__ import main
from selfbyoc.commands.bench.decode import contender, run
from selfbyoc.commands.bench.decode.configs import key_of, write_model
from selfbyoc.commands.bench.decode.contender import CONTENDERS, Job, missing, module_of
from selfbyoc.commands.bench.decode.run import Decoded, Report
from selfbyoc.commands.bench.decode.tables import notes, table
from selfbyoc.commands.bench.records import OURS
from selfbyoc.tvm import GENERATION

PEERS = [name for name in CONTENDERS if name != OURS]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Of `tiny`, as everybody reads it."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("decode")
    # A matrix of each layer, and the tied head.
    assert write_model("tiny", folder) == 2 * (128 * 128 * 2 + 128 * 64 * 2 + 3 * 128 * 256) + 64000
    return folder


@pytest.mark.parametrize("weights", ["float32", "int8", "int4"])
@pytest.mark.parametrize("peer", PEERS)
def test_a_peer_computes_what_pytorch_does(peer, weights, model, monkeypatch):
    """A prompt, then a token; the same after a reset. In a process, as the command has it."""
    if why := missing(peer):
        pytest.skip(why)
    job = Job(model, model / f"{peer}-{weights}", weights, 1, "llvm", 5)
    job.files.mkdir()
    run._ask(job, "write", name=peer, job=run._told(job))
    found = run._ask(job, "time", name=peer, job=run._told(job), prompts=[16, 40], tokens=2)
    row = run._row(peer, job, [found, found])
    assert row.counts, row
    assert row.token > 0
    assert row.reading > 0
    assert row.could_read > 0
    assert [*row.prompts] == ["16", "40"]
    assert 10 < row.memory < 2000
    assert 0.1 < row.file < 5


@pytest.mark.skipif(GENERATION == "relay", reason="decoders are Relax's")
def test_the_command(model, tmp_path, capsys):
    written, kept = tmp_path / "found.json", tmp_path / "kept"
    asked = ["--decode", "tiny", "--weights", "float32", "--peers", "llama.cpp", "--threads", "1"]
    asked += ["--behind", "1200"]
    assert not main(["bench", *asked, "--quick", "--keep", str(kept), "--json", str(written)])
    said = capsys.readouterr().out
    assert "tiny, float32, 1 MB of weights a token, after 1200" in said
    (ours, *_) = json.loads(written.read_text())["rows"]
    assert ours["contender"] == OURS
    assert ours["error"] < 1e-5
    assert (kept / f"tiny-{key_of('tiny')}" / f"{OURS}-float32" / "done.json").exists()


def row(name, token, **others):
    return Decoded(
        name, "int4", token, {"16": 4 * token}, 1.0, 100.0, 50.0, 0.1, 0.98, 30.0, 80.0, **others
    )


def report(*rows):
    return Report("some", "a CPU", "llvm", 2, 128, {"int4": 60.0}, {"int4": 0.5}, list(rows))


def printed(*rows):
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(table(report(*rows), "int4"))
    return console.export_text()


def test_ratios_are_of_the_best_peer_that_is_right():
    wrong = replace(row("openvino", 0.5), alike=0.2)
    rows = [row(OURS, 2.0), row("llama.cpp", 3.0), row("onnxruntime-genai", 5.0), wrong]
    lines = printed(*rows).splitlines()
    (ratios,) = [line for line in lines if "best peer" in line]
    assert ratios.split()[5] == "1.50"
    (ours,) = [line for line in lines if line.startswith(" ours")]
    assert "75%" in ours  # 60 MB, while who only reads reads 80
    said = "\n".join(notes(report(*rows), [OURS]))
    assert "openvino, int4: other logits than PyTorch's, no peer" in said
    assert "int4: others took 50%" in said
    assert "best peer" not in printed(row(OURS, 2.0), wrong)


def test_who_fails_is_told():
    rows = [row(OURS, 2.0), Decoded("openvino", "int4", failed="died")]
    assert "openvino, int4: died" in notes(report(*rows), [OURS])
    assert "openvino" not in printed(*rows)
    assert not rows[1].counts


def test_who_is_not_installed_is_told(monkeypatch):
    gone = {**CONTENDERS, "llama.cpp": ("llama", ["no_such_package"])}
    monkeypatch.setattr(contender, "CONTENDERS", gone)
    assert missing("llama.cpp") == "no_such_package not installed"
    assert "llama.cpp: no_such_package not installed" in notes(report(), ["llama.cpp"])


def test_rows_of_heads_are_neighbours_for_llama_cpp():
    """A head of 4: its halves 0 1 and 2 3 become pairs 0 2 and 1 3."""
    turned = module_of("llama.cpp")._turned
    config = type("Config", (), {"model_type": "llama", "num_attention_heads": 2})
    config.num_key_value_heads = 1
    assert turned("q_proj.weight", np.arange(8), config).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert turned("k_proj.weight", np.arange(4), config).tolist() == [0, 2, 1, 3]
    assert turned("v_proj.weight", np.arange(4), config).tolist() == [0, 1, 2, 3]


def test_a_folder_is_made_once(tmp_path):
    found = []
    for _ in range(2):
        assert run._once(tmp_path / "some", lambda: found.append(0) or 7) == 7
    assert len(found) == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--decode", "qwen-0.5b"], "did you mean 'qwen2-0.5b'?"),
        (["--decode", "tiny", "--peers", "vllm"], "unknown ['vllm']"),
        (["--decode", "tiny", "--sweep"], "--sweep: not beside --decode"),
        (["--decode", "tiny", __file__], "MODEL: not beside --decode"),
        (["--weights", "int4"], "--weights: only beside --decode"),
        (["--behind", "99"], "--behind: only beside --decode"),
    ],
)
def test_what_is_asked_wrong(asked, said, capsys):
    assert main(["bench", *asked]) == 1
    assert said in capsys.readouterr().err


def test_other_weights(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "--decode", "tiny", "--weights", "int4,int5"])
    told = "expected some of float32,float16,bfloat16,int8,int4, found int4,int5"
    assert told in capsys.readouterr().err


def test_a_process_that_dies_is_told(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(run.Failed, match="died with status 1"):
        run._ask(Job(None, None, "int4", 1, ""), "time")
