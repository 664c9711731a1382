"""A program of the vocabulary, built with the built-in composites and compared with NumPy."""

import numpy as np

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.kernels import kernels
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.runtime.tolerance import first_wrong, longest_reduction
from selfbyoc.tvm import make_target


def normal(*shape, dtype="float32", seed=0):
    """Random numbers of any dtype; integers between -9 and 9."""
    rng = np.random.default_rng([seed, *shape])
    values = rng.standard_normal(shape)
    return (values if "float" in dtype else np.clip(values * 3, -9, 9)).astype(dtype)


def taken(program, args, constants=None, **options):
    """How often each composite was taken of a program whose results are right, whoever computes
    them. `args` are its inputs, `constants` its weights.
    """
    arrays = {**args, **(constants or {})}
    types = {name: (a.shape, str(a.dtype)) for name, a in arrays.items()}
    mod = emit(program, types, constants)
    meaning = ir.read(emit(program, types)["main"])
    expected = evaluate(meaning, [arrays[v.name] for v in meaning.inputs])
    library = selfbyoc.build(mod, **options)
    found = library(**args)
    assert len(found) == len(expected)
    for output, wanted in zip(found, expected, strict=True):
        assert np.isfinite(wanted).all()
        wrong = first_wrong(output, wanted, str(output.dtype), longest_reduction(meaning))
        assert wrong is None, wrong
    return library.report.counts


def refusals(program, args, constants=None):
    """Why composites did not take what their patterns found, or what lies beside their kernels:
    {composite: reasons}.
    """
    arrays = {**args, **(constants or {})}
    types = {name: (a.shape, str(a.dtype)) for name, a in arrays.items()}
    parted = selfbyoc.partition_for_tefuse(emit(program, types, constants))
    refused = [r for r in selfbyoc.report(parted).records if r.status == "refused"]
    reasons: dict[str, list[str]] = {}
    for record in refused:
        reasons.setdefault(record.composite, []).append(record.reason)
    return {name: "; ".join(texts) for name, texts in reasons.items()}


def plans_of(program, args, weights, target):
    """The types of the plans of a program's convolutions."""
    types = {name: (a.shape, "float32") for name, a in (args | weights).items()}
    target = make_target(target)
    mod = selfbyoc.partition_for_tefuse(emit(program, types, weights), target=target)
    made = [kernel.schedule(target)[0].plan for kernel in kernels(mod)]
    return [type(plan) for plans in made for _, plan in plans.plans]


def normalised(x, gamma, beta, epsilon):
    """A layer_norm as ONNX's importers write it."""
    centred = op.subtract(x, op.mean(x, axis=-1, keepdims=True))
    variance = op.mean(op.multiply(centred, centred), axis=-1, keepdims=True)
    divided = op.divide(centred, op.sqrt(op.add(variance, epsilon)))
    return op.add(op.multiply(divided, gamma), beta)
