"""ONNX decoders as ONNX Runtime GenAI's builder writes them, with seeded weights."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32 = np.float32
MOST = 24  # positions in the tables of cosines and sines
VOCABULARY = 40


class Decoder:
    """Layers of attention and a gated MLP; `attrs` are those of GroupQueryAttention."""

    def __init__(self, heads=4, shared=2, depth=16, layers=1, seed=0, is_packed=True, rotary=None,
                 norm="Simplified", batch="batch_size", head_norm="", **attrs):  # fmt: skip
        self.rng, self.nodes, self.weights = np.random.default_rng(seed), [], {}
        self.heads, self.shared, self.depth, self.layers = heads, shared, depth, layers
        self.width, self.is_packed, self.norm = heads * depth, is_packed, norm
        self.batch, self.head_norm = batch, head_norm  # of queries and keys: "apart", "within"
        self.attrs = {"do_rotary": 1, "rotary_interleaved": 0, "local_window_size": -1, **attrs}
        self.half = (rotary or depth) // 2

    def weight(self, name, *shape, scale=1.0):
        array = self.rng.standard_normal(shape) * scale / np.sqrt(shape[0] if shape[1:] else 1)
        self.weights[name] = array.astype(F32)
        return name

    def add(self, op, inputs, outputs, domain="", **attrs):
        self.nodes.append(helper.make_node(op, inputs, outputs, outputs[0], domain=domain, **attrs))
        return outputs[0]

    def ours(self, op, inputs, outputs, **attrs):
        return self.add(op, inputs, outputs, "com.microsoft", **attrs)

    def gamma(self, name):
        self.weights[name] = (1 + 0.1 * self.rng.standard_normal(self.width)).astype(F32)
        return [name, self.weight(f"{name}.beta", self.width, scale=0.1)][: 1 + (not self.norm)]

    def product(self, x, name, units, depth=None):
        weight = self.weight(f"{name}.weight", depth or self.width, units)
        return self.add("MatMul", [x, weight], [f"{name}.out"])

    def model(self, opset=21):
        self.constants()
        x = self.add("Gather", [self.weight("table", VOCABULARY, self.width), "input_ids"], ["x"])
        op, eps = f"{self.norm}LayerNormalization", {"epsilon": 1e-5}
        normal = self.add(op, [x, *self.gamma("g0")], ["n0"], axis=-1, **eps)
        for n in range(self.layers):
            found = self.product(self.attention(normal, n), f"o{n}", self.width)
            x, normal = self.skipped(x, found, f"a{n}", **eps)
            x, normal = self.skipped(x, self.mlp(normal, n), f"m{n}", **eps)
        self.weight("head.weight", self.width, VOCABULARY)
        self.add("MatMul", [normal, "head.weight"], ["logits"])
        return self.whole(opset)

    def skipped(self, x, found, name, **attrs):
        op = f"Skip{self.norm}LayerNormalization"
        outputs = [f"{name}.normal", "", "", f"{name}.sum"]
        self.ours(op, [x, found, *self.gamma(f"{name}.g")], outputs, **attrs)
        return outputs[3], outputs[0]

    def constants(self):
        angles = np.arange(MOST)[:, None] / 10 ** (np.arange(self.half) / self.half)
        self.weights |= {"cos": np.cos(angles).astype(F32), "sin": np.sin(angles).astype(F32)}
        self.weights |= {"one": np.asarray([1]), "place": np.asarray(1)}
        self.add("ReduceSum", ["attention_mask", "one"], ["sum"], keepdims=0)
        self.add("Sub", ["sum", "one"], ["last"])
        self.add("Cast", ["last"], ["seqlens"], to=TensorProto.INT32)
        self.add("Shape", ["attention_mask"], ["shape"])
        self.add("Gather", ["shape", "place"], ["total64"], axis=0)
        self.add("Cast", ["total64"], ["total"], to=TensorProto.INT32)

    def attention(self, x, n):
        counts = [self.heads, self.shared, self.shared]
        if self.is_packed:
            parts = [self.product(x, f"qkv{n}", sum(counts) * self.depth), "", ""]
        else:
            parts = [
                self.product(x, f"{side}{n}", count * self.depth)
                for side, count in zip("qkv", counts, strict=True)
            ]
        norms = []
        if self.head_norm:
            norms = [f"{side}{n}.gamma" for side in "qk"]
            self.weights |= {
                name: self.rng.uniform(0.5, 2, self.depth).astype(F32) for name in norms
            }
        if self.head_norm == "apart":
            parts[:2] = [self.of_heads(x, gamma) for x, gamma in zip(parts, norms, strict=False)]
            norms = []
        past = [f"past_key_values.{n}.{side}" for side in ("key", "value")]
        tables = ["cos", "sin"] if self.attrs["do_rotary"] else ["", ""]
        self.ours(
            "GroupQueryAttention", [*parts, *past, "seqlens", "total", *tables, "", "", "",
                                    *(["", "", *norms] if norms else [])],
            [f"attention{n}", f"present.{n}.key", f"present.{n}.value"],
            num_heads=self.heads, kv_num_heads=self.shared, **self.attrs,
        )  # fmt: skip
        return f"attention{n}"

    def of_heads(self, x, gamma):
        """A norm of each head, between reshapes."""
        self.weights |= {"to heads": np.asarray([0, -1, self.depth])}
        heads = self.add("Reshape", [x, "to heads"], [f"{x}.heads"])
        normal = self.add("SimplifiedLayerNormalization", [heads, gamma], [f"{x}.normal"],
                          axis=-1, epsilon=1e-5)  # fmt: skip
        units = self.weights[x.replace(".out", ".weight")].shape[1]
        self.weights[f"{x}.back"] = np.asarray([0, -1, units])
        return self.add("Reshape", [normal, f"{x}.back"], [f"{x}.again"])

    def mlp(self, x, n):
        gate, up = (self.product(x, f"{side}{n}", 2 * self.width) for side in ("gate", "up"))
        self.add("Sigmoid", [gate], [f"sigmoid{n}"])
        self.add("Mul", [gate, f"sigmoid{n}"], [f"silu{n}"])
        self.add("Mul", [f"silu{n}", up], [f"gated{n}"])
        return self.product(f"gated{n}", f"down{n}", self.width, 2 * self.width)

    def whole(self, opset):
        value, batch = helper.make_tensor_value_info, self.batch
        cache = {"past_key_values": "past_sequence_length", "present": "total_sequence_length"}
        states = {
            side: [
                value(f"{side}.{n}.{kind}", TensorProto.FLOAT,
                      [batch, self.shared, length, "kv_cache_dim"])
                for n in range(self.layers) for kind in ("key", "value")
            ]
            for side, length in cache.items()
        }  # fmt: skip
        whole = {"input_ids": "sequence_length", "attention_mask": "total_sequence_length"}
        inputs = [value(n, TensorProto.INT64, [batch, size]) for n, size in whole.items()]
        logits = value("logits", TensorProto.FLOAT, [batch, "sequence_length", VOCABULARY])
        graph = helper.make_graph(
            self.nodes, "decoder", [*inputs, *states["past_key_values"]],
            [logits, *states["present"]],
            [numpy_helper.from_array(a, n) for n, a in self.weights.items()],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def inputs(self, length, past, seed=0, batch=1):
        """Random tokens over a random past, by name."""
        rng = np.random.default_rng(seed)
        shape = (batch, self.shared, past, self.depth)
        names = [f"past_key_values.{n}.{s}" for n in range(self.layers) for s in ("key", "value")]
        return {
            "input_ids": rng.integers(0, VOCABULARY, (batch, length)),
            "attention_mask": np.ones((batch, past + length), np.int64),
            **{name: rng.standard_normal(shape).astype(F32) for name in names},
        }
