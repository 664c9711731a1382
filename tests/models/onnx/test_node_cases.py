"""Each op of ONNX that is written anew before import: one of ONNX's own tests of it, on both TVMs.

All of them run by `make onnx-ops`; here are those by which a form that breaks is noticed.
"""

import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

import onnx_ops
from op_by_op import FIXED, RIGHT

from selfbyoc.models.onnx import forms
from selfbyoc.tvm import GENERATION

CASES = {
    "AveragePool": "averagepool_2d_ceil",
    "BatchNormalization": "batchnorm_epsilon",
    "Cast": "cast_DOUBLE_to_FLOAT",
    "CastLike": "castlike_DOUBLE_to_FLOAT",
    "Clip": "clip",
    "Col2Im": "col2im",
    "Concat": "concat_1d_axis_0",
    "Conv": "conv_with_autopad_same",
    "ConvInteger": "convinteger_with_padding",
    "ConvTranspose": "convtranspose",
    "CumSum": "cumsum_1d",
    "DFT": "dft",
    "DeformConv": "deform_conv_with_mask_bias",
    "DequantizeLinear": "dequantizelinear",
    "Det": "det_2d",
    "Dropout": "dropout_random_old",
    "DynamicQuantizeLinear": "dynamicquantizelinear",
    "Equal": "equal",
    "Einsum": "einsum_batch_matmul",
    "EyeLike": "eyelike_with_dtype",
    "GRU": "gru_defaults",
    "Gather": "gather_0",
    "GatherND": "gathernd_example_int32",
    "Gelu": "gelu_tanh_1",
    "GridSample": "gridsample",
    "IsInf": "isinf",
    "LSTM": "lstm_defaults",
    "LayerNormalization": "layer_normalization_2d_axis0",
    "Loop": "loop11",
    "LpPool": "lppool_2d_pads",
    "MatMulInteger": "matmulinteger",
    "MaxPool": "maxpool_2d_ceil",
    "Mod": "mod_uint8",
    "OneHot": "onehot_with_axis",
    "OptionalHasElement": "optional_has_element_empty_no_input_tensor_input",
    "Pad": "edge_pad",
    "Pow": "pow",
    "QLinearConv": "qlinearconv",
    "QLinearMatMul": "qlinearmatmul_2D_uint8_float32",
    "QuantizeLinear": "quantizelinear",
    "RMSNormalization": "rms_normalization_2d_axis0",
    "RNN": "rnn_seq_length",
    "ReduceL1": "reduce_l1_keep_dims_random",
    "ReduceL2": "reduce_l2_keep_dims_random",
    "ReduceLogSum": "reduce_log_sum_default",
    "ReduceLogSumExp": "reduce_log_sum_exp_keepdims_random",
    "ReduceMax": "reduce_max_keepdims_random",
    "ReduceMean": "reduce_mean_keepdims_random",
    "ReduceMin": "reduce_min_keepdims_random",
    "ReduceProd": "reduce_prod_keepdims_random",
    "ReduceSum": "reduce_sum_keepdims_random",
    "ReduceSumSquare": "reduce_sum_square_keepdims_random",
    "Resize": "resize_tf_crop_and_resize",
    "ReverseSequence": "reversesequence_time",
    "Scan": "scan_sum",
    "ScatterND": "scatternd",
    "SpaceToDepth": "spacetodepth",
    "Split": "split_equal_parts_2d",
    "TopK": "top_k",
    "Trilu": "tril",
    "Upsample": "upsample_nearest",
}
ON_ONE = {  # the other TVM's frontend lacks the op
    "relax": {
        "CumProd": "cumprod_1d",
        "LpNormalization": "lpnormalization_default",
        "RoiAlign": "roialign_aligned_true",
        "TensorScatter": "tensorscatter",
        "TfIdfVectorizer": "tfidfvectorizer_tf_onlybigrams_skip5",
    },
    "relay": {
        "NonMaxSuppression": "nonmaxsuppression_single_box",
    },
}
HERE = CASES | ON_ONE[GENERATION]
# Of the first ONNX has no test; those of the other give sizes as inputs, which no frontend reads.
UNTESTED = {"GlobalLpPool", "STFT"}


# ONNX Runtime lacks ops of opset 28; what TVM's own schedules cannot do runs in serial loops.
pytestmark = [
    pytest.mark.filterwarnings("ignore::selfbyoc.errors.ModelWarning"),
    pytest.mark.filterwarnings("ignore::selfbyoc.errors.FallbackWarning"),
]


@pytest.fixture(scope="module", name="every")
def fixture_every():
    with warnings.catch_warnings():  # onnx computes what it expects
        warnings.simplefilter("ignore")
        return {case.name.removeprefix("test_"): case for case in onnx_ops.cases()}


@pytest.mark.parametrize("op", sorted(HERE))
def test_an_op_that_is_written_anew(op, every):
    model, _, _ = onnx_ops.loaded(every[HERE[op]])
    assert op in {node.op_type for node in model.graph.node}
    status, text = onnx_ops.tried(every[HERE[op]])
    assert status in (RIGHT, FIXED), text


def test_each_such_op_has_a_case():
    """Of ONNX's own domain; ONNX Runtime's have tests of their own."""
    written = {op for op in (*forms.FORMS, *forms.OURS) if "." not in op}
    known = {*CASES, *ON_ONE["relax"], *ON_ONE["relay"], *UNTESTED}
    assert written <= known, f"a form without a case: {written - known}"
