# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the runtime is told of a matrix product: the words of a `DiscProduct`, field by field."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.lowering.host_llvm.blocks import Buffer, Entry, laid_out, sizes_of_product
from shlo_disc.runtime import abi
from shlo_disc.shape_dialect.dialect.host import PRECISIONS, DeviceProduct
from shlo_disc.shape_dialect.symbolic.expr import ZERO, Expr

FORMATS = (
    ("f32", False), ("f64", False), ("f16", False), ("bf16", False), ("i8", False), ("f16", True), ("bf16", True),
    ("ui8", False), ("i32", False), ("ui32", False),
)  # fmt: skip
"""Element types, and whether sums are rounded to them, in the order of runtime/native/cuda/blas.cpp."""


def product_block(call: DeviceProduct, kernel: int) -> list[Entry]:
    """The words of a product, whose kernel is number `kernel` of the program's."""
    problem = call.problem
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
        "format": FORMATS.index((problem.element, call.rounded)),
        "precision": PRECISIONS.index(call.precision),
        "kernel": kernel,
        "blocks": call.kernel.items,
    }
    return laid_out(abi.PRODUCT, entries)
