"""Small models from importers, the same network each time, with what it must compute."""

import numpy as np

INPUT = (2, 3, 17, 15)
# What the built-in composites take of the network below, whichever importer it comes from.
COUNTS = {"conv2d": 1, "conv2d_batch_norm_relu": 1, "dense": 2}


def weights():
    """conv(bias) relu, conv batch_norm relu, pools, dense(bias) relu, dense(bias) gelu."""
    rng = np.random.default_rng(0)

    def normal(*shape, scale=1.0):
        return (rng.standard_normal(shape) * scale).astype("float32")

    return {
        "w0": normal(8, 3, 3, 3, scale=0.2), "b0": normal(8),
        "w1": normal(6, 8, 3, 3, scale=0.1),
        "gamma": np.abs(normal(6)) + 0.5, "beta": normal(6),
        "mean": normal(6), "var": np.abs(normal(6)) + 0.5,
        "w2": normal(10, 6, scale=0.3), "b2": normal(10),
        "w3": normal(10, 7, scale=0.3), "b3": normal(7),
    }  # fmt: skip


def data():
    return np.random.default_rng(1).standard_normal(INPUT).astype("float32")


def onnx_model():
    """The network as ONNX writes it: Gemm with transB, MatMul + Add, GELU taken apart into erf."""
    from onnx import TensorProto, checker, helper, numpy_helper

    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]),
        node("Relu", ["c0"], ["r0"]),
        node("Conv", ["r0", "w1"], ["c1"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("BatchNormalization", ["c1", "gamma", "beta", "mean", "var"], ["n1"]),
        node("Relu", ["n1"], ["r1"]),
        node("MaxPool", ["r1"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", ["p"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "w2", "b2"], ["d"], transB=1),
        node("Relu", ["d"], ["rd"]),
        node("MatMul", ["rd", "w3"], ["mm"]),
        node("Add", ["mm", "b3"], ["ma"]),
        node("Div", ["ma", "root"], ["e0"]),
        node("Erf", ["e0"], ["e1"]),
        node("Add", ["e1", "one"], ["e2"]),
        node("Mul", ["ma", "e2"], ["e3"]),
        node("Mul", ["e3", "half"], ["y"]),
    ]
    numbers = {"root": np.float32(np.sqrt(2)), "one": np.float32(1), "half": np.float32(0.5)}
    tensors = [
        numpy_helper.from_array(np.asarray(a), n) for n, a in {**weights(), **numbers}.items()
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, INPUT)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 7])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    return model


def program(x, w0, b0, w1, gamma, beta, mean, var, w2, b2, w3, b3):
    """The same in the vocabulary."""
    from selfbyoc import op

    y = op.relu(op.bias_add(op.conv2d(x, w0, padding=1), b0))
    y = op.conv2d(y, w1, padding=1, strides=2)
    y = op.relu(op.batch_norm(y, gamma, beta, mean, var)[0])
    y = op.global_avg_pool2d(op.max_pool2d(y, pool_size=2, strides=2))
    y = op.relu(op.bias_add(op.dense(op.reshape(y, shape=(2, 6)), w2), b2))
    return op.gelu(op.bias_add(op.dense(y, op.transpose(w3, axes=(1, 0))), b3))


ROAD_SHAPES = {
    "w0": (5, 3, 3, 3), "b0": (5,), "w1": (7, 5, 3, 3), "b1": (7,), "w2": (17, 693), "w3": (13, 17),
}  # fmt: skip


def road_data():
    """Input and weights of the network that the tests of the two roads write in their own IR."""
    rng = np.random.default_rng(0)
    params = {
        n: (rng.standard_normal(s) / np.sqrt(np.prod(s[1:]) or 1)).astype("float32")
        for n, s in ROAD_SHAPES.items()
    }
    return rng.standard_normal((2, 3, 9, 11)).astype("float32"), params


def road_reference(x, params):
    """conv-bias-relu twice, flatten, dense-relu, and a dense whose value is used twice."""
    y = x.astype("float64")
    for i in range(2):
        padded = np.pad(y, ((0, 0), (0, 0), (1, 1), (1, 1)))
        view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        y = np.einsum("nchwij,ocij->nohw", view, params[f"w{i}"])
        y = np.maximum(y + params[f"b{i}"].reshape(1, -1, 1, 1), 0)
    y = np.maximum(y.reshape(len(y), -1) @ params["w2"].T, 0)
    d = y @ params["w3"].T
    return np.maximum(d, 0) + np.tanh(d)
