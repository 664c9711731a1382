"""Every example runs in a process of its own and prints what it should."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness import model, random_args

import selfbyoc
from selfbyoc.analysis.lint.file import load_file, named
from selfbyoc.analysis.lint.linter import lint_file
from selfbyoc.tvm import GENERATION

ROOT = Path(__file__).parents[2]

RFC_REFUSAL = (
    "relay.build: Cannot apply TOPI schedule to a primitive function with two complicated ops "
    "anchor=Op(nn.conv2d) current=Op(nn.conv2d)\n"
)
PRINTS = {
    "first_composite": """\
   1 x dense_bias_relu
  refused dense_bias_relu at relu_1: 10 units are no multiple of 16
  left to TVM: 1 bias_add, 1 dense, 1 relu
agrees with NumPy: True
""",
    "own_op": """\
   1 x conv2d_quick_gelu
  left to TVM: nothing
agrees with the three ops: True
""",
    "reuse_winograd": """\
   1 x conv2d_hard_swish_add
  left to TVM: nothing
by Winograd: True
agrees with TVM alone: True
""",
    "any_epilogue": """\
alone: {'conv2d_any': 1}
  agrees with TVM alone: True
scaled: {'conv2d_any': 1}
  agrees with TVM alone: True
""",
    "nhwc_network": """\
8 transposes before, 2 now
401.4 kB moved by them before, 100.4 kB now
8 ops have another order of axes
  before: {'conv2d': 4}, left: {'transpose': 8, 'add': 4, 'relu': 4}
  now: {'conv2d_relu_conv2d_relu': 2}, left: {'transpose': 2}
agrees with TVM alone: True
""",
    "query_key_value": """\
   1 x query_key_value
  left to TVM: nothing
3 results, agree with NumPy: True
""",
    "conv_chain_rfc": f"""\
{RFC_REFUSAL if GENERATION == "relay" else ""}\
one task: conv_chain: float32[1, 3, 224, 224], float32[32, 3, 3, 3], float32[32, 32, 3, 3] -> \
float32[1, 32, 224, 224]
schedules tried: 3
1 kernels by records, 0 refused, 0 unused
agrees with the built-in composite: True
""",
    "custom_conv_nhwc": """\
   1 x my_conv2d
  left to TVM: nothing
agrees with NumPy: True
composite my_conv2d, conv2d: computes float32[1, 55, 59, 16], but type inference expects \
float32[1, 29, 31, 16]
""",
    "tiles_from_attributes": """\
strides (1, 1), padding (1, 1, 1, 1): 12 tiles
strides (2, 2), padding (1, 1, 1, 1): 8 tiles
strides (1, 1), padding (0, 0, 0, 0): 23 tiles
agrees with NumPy: True
""",
    "rule_of_tiles": """\
strides (1, 1), padding (1, 1, 1, 1): 6 tiles tried, 0 of no use
strides (2, 2), padding (0, 0, 0, 0): 2 tiles tried, 0 of no use
2 kernels by records, 0 refused, 0 unused
agrees with NumPy: True
""",
    "tiles_of_an_accelerator": """\
parallel i1 and i2 of cast (40):
    conv2d_init                 from nothing; for 2 x 8; 8 lanes
    for rc_o of conv2d_update_o (2):
        conv2d_pad              padded copy of data; for 8 x 3 x 18
        store kernel_local.wgt  from kernel; for 8 x 8 x 3 x 3
        conv2d_update_o         reduce over rc_o, ry_o, rx_o (2 x 3 x 3) of conv2d_pad_local.inp, \
kernel_local.wgt; for 3 x 3 x 2
    right_shift                 from conv2d_local.acc; for 8; 16 lanes
    clip                        from right_shift_local.acc; for 8; 16 lanes
    store cast_local.out        from clip_local.acc; for 8; 16 lanes
    store cast                  from cast_local.out; for 8; 16 lanes
agrees with NumPy: True
""",
    "mixed_schedules": """\
conv_chain: tuned record
dense_relu: own schedule
dense_softmax: default schedule
TVM's own: global_avg_pool2d reshape
agrees with TVM alone: True
""",
    "pass_on_pools": """\
conv2d + relu: as it was
max_pool2d: as it was
max_pool2d + tanh: vectorised
  still known: max_pool2d (2, 2) NCHW
  agrees with NumPy: True
""",
    "call_of_a_library": """\
conv2d (param 0, param 1) {'data_layout': 'NHWC', 'kernel_layout': 'HWIO', 'out_layout': 'NHWC'}
bias_add (conv2d, param 2) {'axis': 3}
relu (bias_add,) {}
calls: bias, conv2d, relu
agrees with the PrimFunc: True
agrees with NumPy: True
""",
    "rfc_functions": f"""\
chain: one kernel, each op by itself: 1 x chain
chain: as TVM fuses it: 2 of TVM's
chain: each op a function of its own: 4 of TVM's
chain: the built-in composites: 1 x conv2d_relu_conv2d_relu
chain: all agree: True
int8_pair: one kernel, each op by itself: 1 x int8_pair
int8_pair: as TVM fuses it: {5 if GENERATION == "relay" else 4} of TVM's
int8_pair: each op a function of its own: {14 if GENERATION == "relay" else 8} of TVM's
int8_pair: the built-in composites: 1 x layer_norm_dense_int8
int8_pair: all agree: True
""",
}
ARGUMENTS = {"rfc_functions": ["chain", "int8_pair"]}
# Of these nothing is linted: they declare no composite, or one that is of one network.
WITHOUT_CASES = (
    "call_of_a_library", "forum_inception", "issue_op_info", "nhwc_network", "pass_on_pools",
    "rfc_functions",
)  # fmt: skip

FOUR_USES = {  # C16
    "relay": """\
fallback: True
tasks of AutoTVM: ['dense_nopack.x86', 'dense_pack.x86']
AutoTVM's log: True
our task: conv2d relu conv2d relu
both: True
1 kernels by records, 0 refused, 0 unused
""",
    "relax": """\
fallback: True
tasks of MetaSchedule: ['adaptive_avg_pool2d', 'matmul', 'reshape', 'transpose']
MetaSchedule's database: True
our task: conv2d relu conv2d relu
both: True
1 kernels by records, 0 refused, 0 unused
""",
}
PRINTS[f"four_uses_{GENERATION}"] = FOUR_USES[GENERATION]
OTHERS = {f"four_uses_{name}" for name in FOUR_USES if name != GENERATION}

# Threads about one generation.
OF_ONE = {
    "relay": ("forum_inception", """\
kernels of FuseOps: 8
   1 x inception
  left to TVM: nothing
parallel i1 of concatenate (14):
    max_pool2d_pad  padded copy of x0; for 3 x 16 x 16
    max_pool2d      max over ry, rx (3 x 3) of max_pool2d_pad; for 14 x 16 x 3 x 3
    conv2d_5        sum over r2, r3, r1 (1 x 1 x 16) of max_pool2d, x6; for 14 x 8 x 16
    relu_5          from conv2d_5; for 14 x 8
    conv2d_3        sum over r2, r3, r1 (1 x 1 x 16) of x0, x4; for 5 x 14 x 4 x 16
    relu_3          from conv2d_3; for 5 x 14 x 4
    conv2d_4        sum over r2, r3, r1 (5 x 5 x 4) of relu_3, x5; for 14 x 8 x 5 x 5 x 4
    relu_4          from conv2d_4; for 14 x 8
    conv2d_1        sum over r2, r3, r1 (1 x 1 x 16) of x0, x2; for 3 x 14 x 6 x 16
    relu_1          from conv2d_1; for 3 x 14 x 6
    conv2d_2        sum over r2, r3, r1 (3 x 3 x 6) of relu_1, x3; for 14 x 12 x 3 x 3 x 6
    relu_2          from conv2d_2; for 14 x 12
    conv2d          sum over r2, r3, r1 (1 x 1 x 16) of x0, x1; for 14 x 8 x 16
    relu            from conv2d; for 14 x 8
    concatenate     from relu_5, relu_4, relu_2, relu; for 14 x 36
1 kernel: 1 passed; 6 runs agree with the reference
"""),
    "relax": ("issue_op_info", """\
conv2d out_elemwise_fusable (float32[1, 8, 16, 16] 'NCHW', float32[32, 8, 3, 3] 'OIHW') -> \
(float32[1, 32, 8, 8] 'NCHW',)
relu elemwise (float32[1, 32, 8, 8],) -> (float32[1, 32, 8, 8],)
lowered:  addConvolution(channels=32, kernel=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1), \
dilation=(1, 1), groups=1, float32)
planned:  no converter: expected NCHW, OIHW, NCHW, found NHWC, OIHW, NHWC
restored: addConvolution(channels=32, kernel=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1), \
dilation=(1, 1), groups=1, float32)
"""),
}  # fmt: skip
PRINTS |= dict([OF_ONE[GENERATION]])
OTHERS |= {name for generation, (name, _) in OF_ONE.items() if generation != GENERATION}
# As the page of the discussions has them, in its order.
DISCUSSED = (OF_ONE["relay"][0], OF_ONE["relax"][0], "conv_chain_rfc")


WITH_TORCH = ("pytorch_model", "decode")


def output_of(name):
    hidden = [] if name in WITH_TORCH else [str(ROOT / "tests" / "support" / "no_torch")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*hidden, str(ROOT), *sys.path])}
    script = str(ROOT / "examples" / f"{name}.py")
    command = [sys.executable, script, *ARGUMENTS.get(name, [])]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


# Three tune: a minute each, most of it in processes of their own that import TVM. One builds three
# models of two convolutions.


@pytest.mark.parametrize("name", PRINTS)
def test_example(name):
    assert output_of(name) == PRINTS[name]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_pytorch_example():
    printed = output_of("pytorch_model")
    assert printed.startswith("   1 x conv2d\n   2 x dense\n")
    assert printed.endswith("agrees with PyTorch: True\n")


@pytest.mark.skipif(GENERATION == "relay", reason="caches in place are Relax's")
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="needs transformers")
def test_decode_example():
    printed = output_of("decode")
    assert printed.startswith("{'attention_of_heads': 4, 'dense': 29, 'rms_norm': 9}\n")
    assert printed.endswith("the same as PyTorch's: True\n")


@pytest.mark.usefixtures("vocabulary_as_before")
@pytest.mark.parametrize("name", [n for n in PRINTS if n not in WITHOUT_CASES])
def test_the_composites_of_an_example(name):
    """Nothing to say of the file, and every case is right."""
    path = ROOT / "examples" / f"{name}.py"
    assert lint_file(path) == []
    for composite in named(load_file(path)[0], None):
        for case in composite.cases:
            found = selfbyoc.verify(
                model(composite, case, random_args(case)), None, None, [composite]
            )
            assert found.ok, str(found)
            assert found.verdicts


@pytest.mark.parametrize("name", [n for n in DISCUSSED if n in PRINTS])
def test_the_page_of_the_discussions_shows_what_it_prints(name):
    page = (ROOT / "docs/discussions.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = shown[DISCUSSED.index(name)].splitlines()
    known = PRINTS[name].splitlines()
    left_out = [line for line in known if line not in lines]
    assert set(lines) <= {*known, "    ...", *RFC_REFUSAL.splitlines()}
    assert not left_out or "    ..." in lines


@pytest.mark.parametrize("name", DISCUSSED)
def test_a_program_of_a_discussion_can_be_pasted(name):
    """A reply to a thread has no room for more."""
    text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    assert len([line for line in text.splitlines() if line.strip()]) <= 72


def test_every_example_is_tested():
    files = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert files == {*PRINTS, *OTHERS, *WITH_TORCH}
