"""Words of 32 bits: the operands of a CPU's products of bytes, in the place of floats.

A word is four bytes where the CPU sums four products at once, or where weights have 7 bits, so that
two products fit 16; two levels of 16 bits elsewhere (Machine.products). A kernel's plan, loops and
tiles are those of floats over so many times less depth; only what is read and how it is multiplied
differ. A word of levels counts them from 0 to 255, or, where the CPU multiplies bytes with signs
alone, from -128 on; one of weights from -128 to 127. What is stored otherwise is moved by 128, and
its zero point with it.
Weights of -255 to 255 are multiplied two at a time on every CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...codegen.info.ops import Ops, Packing
from ...machine import Machine
from ...tvm import te, tir
from ...tvm.own_ops import BYTES, BYTES_OF_7, LEAST_OF, LEVELS_OF, PAIRS
from ...tvm.types import PrimExpr, Tensor
from ..steps.tensors import View

BYTE = ("int8", "uint8")
WIDE = "int16"  # of weights from -255 to 255
WORDS = (LEVELS_OF[PAIRS], LEVELS_OF[BYTES])  # levels of one
PRODUCTS = ("conv2d", "dense")
_MOST = 1 << 30  # of a sum, and of its correction by a zero point: together they fit int32


def machine_of_words(cpu: Machine, products: str) -> Machine:
    """A machine as its products of words are: in one instruction with their sum or not, and with
    fewer registers.
    """
    made = cpu.product(products)
    fused, registers = not made.apart, cpu.vector_registers - made.held
    return replace(cpu, fused=fused, vector_registers=registers)


def words_of(count: int, word: int) -> int:
    """Words of so many levels that these fill."""
    return -(-count // word)


def most_products(dtype: str) -> int:
    """Of one sum, by the weight's dtype."""
    return _MOST // (255 * (255 if dtype == WIDE else 128))


def weight_of(ops: Ops) -> tuple[Packing, str]:
    """How the weight comes, and its dtype: it is what one of the ops dequantises, or, of integers,
    what the product reads.
    """
    read = [(ops.packing(v, 0), v.inputs[0][1]) for v in ops.of("dequantize")]
    read += [(ops.packing(v, 1), v.inputs[1][1]) for kind in PRODUCTS for v in ops.of(kind)]
    return next(found for found in read if found[0].arg == "weight")


def usual_products(packing: Packing, cpu: Machine) -> str:
    """The kind of products by which a CPU multiplies a weight that is packed for it."""
    return cpu.products_of_7_bits if packing.seven_bits else cpu.products


def products_as_packed(ops: Ops, cpu: Machine, inputs: int, axis: int = 1) -> str:
    """The kind of products: of a weight that was packed, perhaps for another CPU, as its words are,
    along an axis. Two inputs are one word of two everywhere: packed words of either length would
    look alike.
    """
    packing, dtype = weight_of(ops)
    if inputs <= min(WORDS) or dtype == WIDE:
        return PAIRS
    own = usual_products(packing, cpu)
    if packing.shape is None:
        return own
    depth = packing.shape[axis] - (axis == 1)  # the sums lie behind the inputs
    word = WORDS[words_of(inputs, WORDS[0]) != depth]
    return own if LEVELS_OF[own] == word else products_of_words(word, packing.seven_bits)


def products_of_words(word: int, seven_bits: bool = False) -> str:
    """The kind that multiplies words of so many levels on any CPU."""
    if word == LEVELS_OF[PAIRS]:
        return PAIRS
    return BYTES_OF_7 if seven_bits else BYTES


def counted(level: PrimExpr, dtype: str, products: str) -> PrimExpr:
    """A stored level as int32, as words of a kind count it."""
    return level.astype("int32") + (LEAST_OF[products] + (128 if dtype == "int8" else 0))


def signed(level: PrimExpr, dtype: str) -> PrimExpr:
    """A stored weight as int32 from -128 to 127."""
    return level.astype("int32") - (128 if dtype == "uint8" else 0)


def word_of(levels: Sequence[PrimExpr]) -> PrimExpr:
    """Two or four of int32 in one, the first one lowest."""
    bits = 32 // len(levels)
    found = levels[0] & ((1 << bits) - 1)
    for i, level in enumerate(levels[1:], 1):
        found = found | ((level & ((1 << bits) - 1)) << (bits * i))
    return found


def all_alike(level: PrimExpr, word: int) -> PrimExpr:
    """A word of one byte: unsigned, for TVM folds no constant that leaves int32."""
    ones = {2: 0x00010001, 4: 0x01010101}[word]
    if isinstance(level, tir.IntImm):  # 0.27 reinterprets no zero
        alike = int(level) % 256 * ones
        return tir.const(alike - (alike >> 31 << 32), "int32")
    return tir.reinterpret("int32", (level & 255).astype("uint32") * tir.const(ones, "uint32"))


def only(tensor: Tensor) -> PrimExpr:
    """The element of a tensor of one."""
    return tensor(*(0 for _ in tensor.shape))


def of_axis(factor: Tensor, at: PrimExpr) -> PrimExpr:
    """A scale of all, or of each output."""
    is_one = all(int(extent) == 1 for extent in factor.shape)
    return only(factor) if is_one else factor(at)


@dataclass(frozen=True)
class Scaled:
    """What is made of the sums of an output: the scales of both operands, and a bias."""

    x_scale: Tensor
    w_scale: Tensor
    bias: Tensor | None

    def __call__(self, total: PrimExpr, output: PrimExpr) -> PrimExpr:
        """Of an exact sum, in int32 or in a float."""
        value = total.astype("float32") * (only(self.x_scale) * of_axis(self.w_scale, output))
        return value if self.bias is None else value + self.bias(output)


class Words:
    """Levels along one axis as words, in parts of their own: a tensor that is not computed yet, as
    codegen/elementwise.py has them. After the last level of a part comes that one again; a weight
    is zero there.
    """

    dtype = "int32"

    def __init__(self, x: Tensor, axis: int, products: str, parts: int = 1, name: str = "") -> None:
        self.x, self.axis, self.products = x, axis, products
        self.name = name or f"{x.op.name}_words"
        self.word = word = LEVELS_OF[products]
        self.size = int(x.shape[axis]) // parts
        self.each = words_of(self.size, word)
        self.shape = tuple(
            parts * self.each if n == axis else extent for n, extent in enumerate(x.shape)
        )
        self.staged: Tensor | None = None

    def __call__(self, *index: PrimExpr) -> PrimExpr:
        at = index[self.axis]
        part, own = tir.floordiv(at, self.each), tir.floormod(at, self.each)

        def read(place: PrimExpr) -> PrimExpr:
            return self.x(*index[: self.axis], part * self.size + place, *index[self.axis + 1 :])

        return self.made([self.element(read, own * self.word + i) for i in range(self.word)])

    def element(self, read: Callable[[PrimExpr], PrimExpr], place: PrimExpr) -> PrimExpr:
        """What a word has of a place in a part."""
        if self.size % self.word:
            place = tir.Min(place, self.size - 1)
        return counted(read(place), self.x.dtype, self.products)

    def made(self, elements: Sequence[PrimExpr]) -> PrimExpr:
        """A word of its elements."""
        return word_of(elements)

    def stage(self) -> Tensor:
        """A stage of its own, for a compute that reads a word often."""
        if self.staged is None:
            self.staged = te.compute(self.shape, self, name=self.name)
        return self.staged


def pairs_of(x: Tensor, zero: PrimExpr) -> View:
    """Levels of an image [N, C, H, W] less their zero point, two channels a word of which sums and
    differences can be taken: the upper one times 2**16, and the lower one, which may be negative.
    After the last channel comes that one again; a weight is zero there.
    """
    images, channels, *window = x.shape

    def word(n: PrimExpr, c: PrimExpr, *rest: PrimExpr) -> PrimExpr:
        def level(i: int) -> PrimExpr:
            at = tir.Min(c * 2 + i, channels - 1) if channels % 2 else c * 2 + i
            return x(n, at, *rest).astype("int32") - zero

        return level(0) + level(1) * (1 << 16)

    return View((images, words_of(int(channels), 2), *window), "int32", word)


def weight_words(weight: Tensor, word: int, axis: int = 1) -> Tensor:
    """[O, I, ...] of bytes -> [O, I / word, ...] of words along an axis, zeros after its last."""
    shape, size = list(weight.shape), int(weight.shape[axis])
    shape[axis] = words_of(size, word)

    def element(*index: PrimExpr) -> PrimExpr:
        def level(n: int) -> PrimExpr:
            at = index[axis] * word + n
            value = signed(weight(*index[:axis], at, *index[axis + 1 :]), weight.dtype)
            # No Select: TVM drops a minimum in its index that the condition implies, and reads on.
            return value if size % word == 0 else tir.if_then_else(at < size, value, 0)

        return word_of([level(n) for n in range(word)])

    return te.compute(tuple(shape), element, name=f"{weight.op.name}_words")


def weight_sums(weight: Tensor) -> Tensor:
    """[O]: of the signed bytes of each output, what a zero point is multiplied by."""
    outputs, *inner = weight.shape
    axes = [te.reduce_axis((0, extent), name=f"k{n}") for n, extent in enumerate(inner)]
    return te.compute(
        (outputs,),
        lambda o: te.sum(signed(weight(o, *axes), weight.dtype), axis=axes),
        name=f"{weight.op.name}_sums",
    )
