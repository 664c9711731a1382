"""OpenVINO: a stateful model whose caches are its own, as optimum-intel exports them; int8 and int4
are levels by groups with scales, as nncf writes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....common.optional import extra
from ....graph import HALVES
from .contender import GROUP, Job

_FILE = "model.xml"
_PAST = 7  # tokens of the caches that it is traced with


def write(job: Job) -> None:
    """Traced by PyTorch, then with caches that stay inside."""
    from .configs import read_model

    torch, openvino, model = extra("torch"), extra("openvino"), read_model(job.model)
    step = _step(torch, model)
    with torch.no_grad():
        ids = torch.zeros((1, 3), dtype=torch.int64)
        *_, key, value = step(ids, torch.ones_like(ids), ids)
        shape = (1, key.shape[1], _PAST, key.shape[3])
        count = 2 * model.config.num_hidden_layers
        mask = torch.ones((1, _PAST + 3), dtype=torch.int64)
        example = (ids, mask, _PAST + torch.arange(3)[None], *(torch.zeros(shape),) * count)
        made = openvino.convert_model(step, example_input=example)
    del value
    heads, depth = shape[1], shape[3]
    asked = ["input_ids", "attention_mask", "position_ids"]
    pasts = [f"past_key_values.{n // 2}.{'kv'[n % 2]}" for n in range(count)]
    for port, name in zip(made.inputs, [*asked, *pasts], strict=True):
        port.get_tensor().set_names({name})
        sizes = [-1, heads, -1, depth] if name in pasts else [-1, -1]
        port.get_node().set_partial_shape(openvino.PartialShape(sizes))
    presents = [name.replace("past_key_values", "present") for name in pasts]
    for port, name in zip(made.outputs, ["logits", *presents], strict=True):
        port.get_tensor().set_names({name})
    made.validate_nodes_and_infer_types()
    _make_stateful(openvino, made, dict(zip(pasts, presents, strict=True)))
    if job.weights in ("int8", "int4"):
        _compress(openvino, made, 8 if job.weights == "int8" else 4)
    openvino.save_model(made, job.files / _FILE, compress_to_fp16=job.weights in HALVES)


def _step(torch: Any, model: Any) -> Any:
    """The model as a function of tensors."""
    caches = extra("transformers").cache_utils

    class Step(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any, mask: Any, positions: Any, *past: Any) -> tuple[Any, ...]:
            cache = caches.DynamicCache()
            for keys, values in zip(past[::2], past[1::2], strict=True):
                layer = caches.DynamicLayer()  # `update` would put an empty tensor before them
                layer.keys, layer.values, layer.is_initialized = keys, values, True
                cache.layers.append(layer)
            found = self.model(
                input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache,
                use_cache=True, logits_to_keep=1,
            )  # fmt: skip
            layers = found.past_key_values.layers
            return (found.logits, *(x for layer in layers for x in (layer.keys, layer.values)))

    return Step().eval()


def _make_stateful(openvino: Any, model: Any, caches: dict[str, str]) -> None:
    """With `beam_idx` before each cache and empty caches at first: what the CPU plugin fuses."""
    from openvino._offline_transformations import apply_make_stateful_transformation

    op = openvino.opset13
    beams = op.parameter([-1], openvino.Type.i32, "beam_idx")
    beams.output(0).get_tensor().set_names({"beam_idx"})
    model.add_parameters([beams])
    for name in caches:
        port = model.input(name).get_node().output(0)
        readers = port.get_target_inputs()
        gathered = op.gather(port, beams, op.constant(0))
        for reader in readers:
            reader.replace_source_output(gathered.output(0))
    model.validate_nodes_and_infer_types()
    apply_make_stateful_transformation(model, caches)
    batch = op.gather(op.shape_of(model.input("input_ids")), op.constant([0]), op.constant(0))
    for node in model.get_ops():
        if node.get_type_name() == "ReadValue":
            _, heads, _, depth = (dim.min_length for dim in node.get_output_partial_shape(0))
            rest = [op.constant(np.array([n], "int64")) for n in (heads, 0, depth)]
            node.set_arguments(
                [op.broadcast(op.constant(np.float32(0)), op.concat([batch, *rest], 0))]
            )
    model.validate_nodes_and_infer_types()


def _compress(openvino: Any, model: Any, bits: int) -> None:
    """Matrices as symmetric levels and float16 scales of groups along what is summed."""
    op, low = openvino.opset13, -(1 << (bits - 1))
    kind = openvino.Type.i8 if bits == 8 else openvino.Type.i4
    for node in model.get_ordered_ops():
        if node.get_type_name() != "Constant" or node.get_element_type() != openvino.Type.f32:
            continue
        if len(node.shape) != 2 or node.shape[1] % GROUP or node.shape[0] < GROUP:
            continue
        groups = node.data.reshape(node.shape[0], -1, GROUP)
        place = np.abs(groups).argmax(2, keepdims=True)
        scale = (np.take_along_axis(groups, place, 2) / low).astype("float16")  # fills `low`
        scale[scale == 0] = 1
        levels = np.clip(np.rint(groups / scale.astype("float32")), low, -low - 1).astype("int8")
        whole = op.multiply(op.convert(op.constant(levels, dtype=kind), "f16"), op.constant(scale))
        flat = op.reshape(whole, op.constant(np.array(node.shape)), False)
        made = op.convert(flat, "f32")
        for reader in node.output(0).get_target_inputs():
            reader.replace_source_output(made.output(0))


def imports() -> None:
    """Its package."""
    extra("openvino")


class _Decoder:
    def __init__(self, job: Job) -> None:
        openvino = extra("openvino")
        settings: dict[str, Any] = {
            "INFERENCE_NUM_THREADS": job.threads, "PERFORMANCE_HINT": "LATENCY",
        }  # fmt: skip
        if job.weights in ("float32", "float16"):  # else what it does by itself: bfloat16, bytes
            settings |= {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
        core = openvino.Core()
        self._request = core.compile_model(
            str(job.files / _FILE), "CPU", settings
        ).create_infer_request()
        self._beam, self._length = np.zeros(1, "int32"), 0

    def feed(self, ids: np.ndarray) -> np.ndarray:
        end = self._length + len(ids)
        given = {
            "input_ids": ids[None], "attention_mask": np.ones((1, end), "int64"),
            "position_ids": np.arange(self._length, end)[None], "beam_idx": self._beam,
        }  # fmt: skip
        self._request.infer(given)
        self._length = end
        return self._request.get_output_tensor(0).data[0, -1].copy()

    def reset(self) -> None:
        self._request.reset_state()
        self._length = 0


def load(job: Job) -> _Decoder:
    """From its files."""
    return _Decoder(job)
