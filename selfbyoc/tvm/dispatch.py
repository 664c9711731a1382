"""A PrimFunc that hands its arguments to one of several: which one, the sizes say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from . import GENERATION, SBlock, dtype_of, param_buffers, structural_equal, tir, tvm
from .rewrite import sequence, substitute
from .symbolic import rooted, symbols, with_assertions, within_32_bits
from .types import Buffer, PrimExpr, PrimFunc, Stmt

if GENERATION == "relax":
    from tvm.ir import PointerType
    from tvm.tirx.op import buffer_data

    _LAST = []
else:
    # 0.17 takes the last argument of call_cpacked for the resource handle of the C runtime.
    _LAST = [tir.reinterpret("handle", tir.const(0, "uint64"))]

_ZERO = tir.IntImm("int32", 0)


@dataclass(frozen=True)
class Callee:
    """A function that an entry calls: by which shapes it knows the parameters, None: by the
    caller's; and how many images it takes at a time, or each core at once, in rounds of so many.
    """

    name: str
    shapes: Sequence[Sequence[Any]] | None = None
    images: int = 0
    side_by_side: int = 0


@dataclass(frozen=True)
class Images:
    """How many there are, the first extent of all parameters that have any; and the variable of
    how many are left, that the choice of a function may depend on.
    """

    count: PrimExpr
    left: PrimExpr


def entry(
    signature: PrimFunc,
    callees: Sequence[Callee],
    which: PrimExpr,
    checks: Iterable[tuple[PrimExpr, str]] = (),
    within: Mapping[str, tuple[int, int | None]] = MappingProxyType({}),
    images: Images | None = None,
) -> PrimFunc:
    """A PrimFunc with the parameters of `signature` that hands them to one of the callees: to that
    of the number `which`, to none where it is -1. Where there are `images`, to one after the other,
    until none is left. It raises an InputError where one of the `checks` does not hold, or a size
    is not `within` its least and largest one: of others there may be no function.

    Functions of one module, not branches of one function: TVM's passes take much longer for a body
    as large as all of them (CompactBufferAllocation, of 13 kernels: 9 s).
    """
    # In memory, where passes leave it alone: of a name's value they make a part of each condition.
    chosen = tir.decl_buffer((1,), "int32", "kernel", scope="local")
    done = tir.decl_buffer((1,), "int32", "images_done", scope="local")
    if images is not None:
        which = substitute(which, {images.left: images.count - _value(done)})
    signature = _with_addresses(signature)
    turn = [_stored(chosen, which)]
    for number, callee in enumerate(callees):
        call = _call(signature, callee, images, done)
        turn.append(tir.IfThenElse(_value(chosen) == number, call, None))
    local = [chosen]
    if images is not None:
        turn.append(tir.IfThenElse(_value(chosen) < 0, _stored(done, images.count), None))
        turn = [_stored(done, _ZERO), tir.While(_value(done) < images.count, sequence(turn))]
        local = [chosen, done]
    body = with_assertions([*checks, *_promised(signature, within)], sequence(turn))
    func = signature.with_body(rooted(SBlock([], [], [], "root", body, alloc_buffers=local)))
    return func if images is None else within_32_bits(func)


def _with_addresses(signature: PrimFunc) -> PrimFunc:
    """The same without what is known of weights of bfloat16. 0.27 hands these on as integers of 16
    bits where the CPU has no arithmetic of theirs, which the callee refuses; of an address it
    knows nothing, and each callee checks what it is given.
    """
    if GENERATION == "relay":
        return signature
    params = [
        tir.Var(str(buffer.name), "handle") if _is_closed_bfloat16(buffer) else param
        for param, buffer in zip(signature.params, param_buffers(signature), strict=True)
    ]
    return tir.PrimFunc(params, signature.body, signature.ret_type, attrs=signature.attrs)


def _is_closed_bfloat16(buffer: Buffer) -> bool:
    closed = all(isinstance(extent, tir.IntImm) for extent in getattr(buffer, "shape", ()))
    return str(getattr(buffer, "dtype", "")) == "bfloat16" and closed


def _value(buffer: Buffer) -> PrimExpr:
    return tir.BufferLoad(buffer, [_ZERO])


def _stored(buffer: Buffer, value: PrimExpr) -> Stmt:
    return tir.BufferStore(buffer, value, [_ZERO])


def _call(signature: PrimFunc, callee: Callee, images: Images | None, done: Buffer) -> Stmt:
    """A call with all parameters; of images from the first that is not done."""
    if images is None:
        return _with_args(signature, callee, None, None)
    taken: Any = callee.images
    if not callee.side_by_side:
        call = _with_args(signature, callee, images, _value(done))
    else:
        taken = tir.floordiv(images.count - _value(done), callee.side_by_side) * callee.side_by_side
        image = tir.Var("image", dtype_of(images.count))
        call = _with_args(signature, callee, images, _value(done) + image)
        call = tir.For(image, _ZERO, taken, tir.ForKind.PARALLEL, call)
    return sequence([call, _stored(done, _value(done) + taken)])


def _with_args(
    signature: PrimFunc, callee: Callee, images: Images | None, first: PrimExpr | None
) -> Stmt:
    args = list(signature.params)
    for place, shape in enumerate(callee.shapes or ()):
        buffer = param_buffers(signature)[place]
        if not hasattr(buffer, "shape"):  # an address
            continue
        if images is not None and _is_counted(buffer, images):
            args[place] = _part(buffer, shape, first)
        elif not structural_equal(list(buffer.shape), list(shape)):
            args[place] = _reshaped(buffer, shape)
    return tir.Evaluate(tir.call_cpacked(callee.name, *args, *_LAST))


def _is_counted(buffer: Buffer, images: Images) -> bool:
    return len(buffer.shape) > 0 and bool(buffer.shape[0].same_as(images.count))


def _promised(
    signature: PrimFunc, within: Mapping[str, tuple[int, int | None]]
) -> list[tuple[PrimExpr, str]]:
    """Whether each size is in its range, and what to say else."""
    found: list[tuple[Any, str]] = []
    for name, size in symbols(signature).items():
        least, most = within.get(name, (0, None))
        if least:
            found.append((size >= least, f"size {name}: expected at least {least}"))
        if most is not None:
            found.append((size <= most, f"size {name}: expected at most {most}"))
    return found


def _reshaped(buffer: PrimExpr, shape: Sequence[PrimExpr]) -> PrimExpr:
    """An array of the same memory by another shape, as an argument of a call."""
    if GENERATION == "relay":
        return tir.decl_buffer(list(shape), buffer.dtype, data=buffer.data)
    # As call_cpacked does it for a buffer; but one that no statement declares is none on 0.27.
    return _array(buffer_data(buffer), shape, buffer.ty.dtype)


def _part(buffer: Buffer, shape: Sequence[PrimExpr], first: PrimExpr) -> PrimExpr:
    """An array of the same memory from an index of the first axis on."""
    start = tir.BufferLoad(buffer, [first, *[_ZERO] * (len(buffer.shape) - 1)])
    prefix = "tir" if GENERATION == "relay" else "tirx"
    data = tir.call_intrin("handle", f"{prefix}.address_of", start)
    return _array(data, shape, buffer.dtype if GENERATION == "relay" else buffer.ty.dtype)


def _array(data: PrimExpr, shape: Sequence[PrimExpr], dtype: str) -> PrimExpr:
    parts = [0, len(shape), tir.const(0, dtype), 0]
    if GENERATION == "relay":
        extents = tir.call_intrin("handle", "tir.tvm_stack_make_shape", *shape)
        return tir.call_intrin("handle", "tir.tvm_stack_make_array", data, extents, *parts)
    extents = tvm.ir.Call(
        "tirx.tvm_stack_make_shape", list(shape), ret_ty=PointerType(tvm.ir.PrimType("int64"))
    )
    array = tvm.ir.Op.get("tirx.tvm_stack_make_array")
    return tvm.ir.Call(array, [data, extents, *parts], ret_ty="handle")
