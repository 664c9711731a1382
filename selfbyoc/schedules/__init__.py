"""The built-in composites, one file for each op family."""

from .composites.attention import attention
from .composites.attention_of_heads import attention_of_heads
from .composites.batch_matmul import batch_matmul
from .composites.batch_norm import conv2d_batch_norm_relu
from .composites.conv_chain import conv2d_relu_conv2d_relu
from .composites.conv_transpose import conv1d_transpose, conv2d_transpose
from .composites.convolution import conv2d, conv2d_nhwc
from .composites.dense import dense
from .composites.dense_chain import dense_gelu_dense
from .composites.dense_integers import dense_integers
from .composites.depthwise import depthwise_pointwise
from .composites.embedding import embedding, embedding_few_bits
from .composites.few_bits import dense_few_bits
from .composites.gated import gated_dense, gated_few_bits
from .composites.inception import inception, parallel_conv2d
from .composites.inverted_residual import inverted_residual
from .composites.layer_norm import layer_norm, layer_norm_dense, softmax
from .composites.lrn import lrn
from .composites.pool import avg_pool2d, global_avg_pool2d, max_pool2d
from .composites.quantized import conv2d_narrowed, conv2d_narrowed_any_layout
from .composites.quantized_attention import attention_int8
from .composites.quantized_conv import conv2d_int8
from .composites.quantized_dense import layer_norm_dense_int8
from .composites.quantized_matmul import dense_int8
from .composites.quantized_pool import avg_pool2d_int8, avg_pool2d_integers
from .composites.quantized_products import batch_matmul_int8
from .composites.recurrent import gru, lstm, lstm_int8, peephole_lstm, rnn
from .composites.residual import conv2d_add
from .composites.resize import resize2d
from .composites.rms_norm import rms_norm, rms_norm_dense

# Earlier wins: larger composites first.
BUILTIN = (
    conv2d_int8,  # before those of floats, which would dequantise every weight in each call
    dense_int8,
    lstm_int8,
    gated_few_bits,
    dense_few_bits,
    attention_int8,
    attention_of_heads,
    attention,
    batch_matmul_int8,  # after them, whose scores are floats
    inception,
    parallel_conv2d,
    inverted_residual,
    depthwise_pointwise,  # before the chain, which would pair a pointwise with the next depthwise
    conv2d_relu_conv2d_relu,
    conv2d_add,
    conv2d_batch_norm_relu,
    dense_gelu_dense,
    gated_dense,
    layer_norm_dense_int8,
    layer_norm_dense,
    rms_norm_dense,
    conv2d_narrowed,
    conv2d_narrowed_any_layout,
    dense_integers,
    conv2d,
    conv2d_nhwc,
    conv2d_transpose,
    conv1d_transpose,
    dense,
    batch_matmul,
    layer_norm,
    rms_norm,
    softmax,
    max_pool2d,
    avg_pool2d_int8,  # before those of floats
    avg_pool2d_integers,
    avg_pool2d,
    global_avg_pool2d,
    resize2d,
    embedding_few_bits,
    embedding,
    lrn,
    lstm,
    peephole_lstm,
    gru,
    rnn,
)
"""The built-in composites in order of priority, as partitioning takes them by default."""
