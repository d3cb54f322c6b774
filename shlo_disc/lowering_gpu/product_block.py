# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime's description of a matrix product: the words of a `DiscProduct`, field by field."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.lowering.host_llvm.blocks import Buffer, Entry, Word, kernel_arguments, laid_out, sizes_of_product
from shlo_disc.runtime import abi
from shlo_disc.shape_dialect.dialect.host import DeviceEpilogue, DeviceProduct
from shlo_disc.shape_dialect.symbolic.expr import ZERO, Expr

FORMATS = (
    ("f32", False), ("f64", False), ("f16", False), ("bf16", False), ("i8", False), ("f16", True), ("bf16", True),
    ("ui8", False), ("i32", False), ("ui32", False), ("tf32x3", False), ("narrow", False),
)  # fmt: skip
"""Element types, and whether sums are rounded to them, in the order of runtime/native/cuda/blas.cpp. The library takes
the first seven; f32 in three products of TF32 is one of the others, and so is a side of narrow integers that is not
written as floats."""

_LIBRARY_PRECISIONS = {"full": 0, "tf32": 2, "tf32x3": 0}
"""The words of precisions; 1 is that of earlier versions for what the client allows."""


def product_block(call: DeviceProduct, kernel: int, epilogue: int = -1) -> list[Entry]:
    """The words of a product, whose kernel is number `kernel` of the program's. Behind them are the parameters of that
    and of number `epilogue`, which does what follows, or of a kernel that has parts of the depth."""
    problem = call.problem
    element = "tf32x3" if call.precision == "tf32x3" else problem.element
    none = (Expr.const(1), ZERO, ZERO, ZERO)
    batch = [(axis.size, axis.lhs, axis.rhs, axis.result) for axis in problem.batch]
    batch += [none] * (abi.PRODUCT.fields["batch"].count - len(batch))
    entries: dict[str, Entry | Sequence[Entry]] = {
        "a": Buffer(0),
        "b": Buffer(1),
        "c": Buffer(2),
        **sizes_of_product(problem),
        "batch": [number for axis in batch for number in axis],
        "batch_rank": len(problem.batch),
        "format": _format(FORMATS.index((element, call.rounded)), call),
        "precision": _LIBRARY_PRECISIONS[call.precision],
        "kernel": kernel,
        "blocks": call.kernel.items,
    }
    args = kernel_arguments(call.kernel, call.kernel_operands)
    parts: dict[str, Entry | Sequence[Entry]] = {"parts": call.parts}
    if call.epilogue is None:
        if call.partials < 0 and not call.narrow:
            return laid_out(abi.PRODUCT, {**entries, **_NOTHING_FOLLOWS, **parts})
        own: dict[str, Entry | Sequence[Entry]] = {"args": Word(abi.PRODUCT.words), "words": len(args)}
        return [*laid_out(abi.PRODUCT, {**entries, **_NOTHING_FOLLOWS, **own, **parts}), *args]
    behind = kernel_arguments(call.epilogue.kernel, call.epilogue.operands)
    follows = _what_follows(call.epilogue, epilogue, call.problem.element, len(args), len(behind))
    return [*laid_out(abi.PRODUCT, {**entries, **follows, **parts}), *args, *behind]


def _format(written: int, call: DeviceProduct) -> Entry:
    """The format of sides that are `written` as floats, where they are."""
    return FORMATS.index(("narrow", False)) * (1 - call.written) + written * call.written


_NOTHING_FOLLOWS: dict[str, Entry | Sequence[Entry]] = {
    "args": Word(-1), "epilogue_args": Word(-1), "words": 0, "epilogue_words": 0, "epilogue": -1, "epilogue_blocks": 0,
    "library_result": Buffer(-1), "bias": Buffer(-1), "library_format": 0,
}  # fmt: skip


def _what_follows(
    epilogue: DeviceEpilogue, kernel: int, element: str, words: int, epilogue_words: int
) -> dict[str, Entry | Sequence[Entry]]:
    """The fields of an epilogue, whose parameters lie behind those of the product's kernel."""
    library = epilogue.library
    return {
        "args": Word(abi.PRODUCT.words),
        "epilogue_args": Word(abi.PRODUCT.words + words),
        "words": words,
        "epilogue_words": epilogue_words,
        "epilogue": kernel,
        "epilogue_blocks": epilogue.kernel.items,
        "library_result": Buffer(-1 if library is None else library.result),
        "bias": Buffer(-1 if library is None else library.bias),
        "library_format": 0 if library is None else FORMATS.index((element, library.rounded)),
    }
