# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables whose rows are looked up, and which products multiply by."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.families.family import family


@family("tied-table", "read-panels", "epilogue", "gemm")
def tied(b: Builder) -> Sequence[int]:
    """Rows of a table, what is computed of them, and the product with the table; perhaps more that reads it."""
    rows, columns = b.pick((130, 17), (65, 64), (64, 64), (40, 130), (9, 4))
    table = b.arg(rows, columns, fill="weight")
    count = b.dim("b")
    looked_up = b.arg(count, dtype="int32", fill=f"index:{rows}")
    axis = 0 if rows != columns else b.pick(0, 1)
    x = b("take", table, looked_up, axis=axis, mode=b.any(("clip", "fill")))
    x = b("transpose", x, perm=[1, 0]) if axis == 1 else x
    x = b.f(b.any(("tanh", "half", "neg")), x)
    x = b("along", x, f=b.any(("softmax", "normalize", "center")), axis=1) if b.flip(0.4) else x
    results = [b("einsum", x, table, spec="mk,nk->mn" if rows != columns else b.pick("mk,nk->mn", "mk,kn->mn"))]
    more = b.pick("nothing", "rows", "sum", "scaled", "same")
    if more == "rows":
        results.append(b("reduce", b("take", table, looked_up, axis=0, mode="clip"), f="sum", axis=0, keep=False))
    elif more == "sum":
        results.append(b("reduce", table, f="sum", axis=b.any((0, 1)), keep=False))
    elif more == "scaled":
        results.append(b.f("tanh", table))
    elif more == "same":
        results.append(table)
    return [b.f("tanh", results[0]) if b.flip(0.3) else results[0], *results[1:]]
