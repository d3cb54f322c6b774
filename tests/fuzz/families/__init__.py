# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One module a family: `OPS` gives for each op the function that adds one to a program, or says that it cannot."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.builder import Builder
from tests.fuzz.families import contractions, control, dtypes, elementwise, gathers, movement, ordering, random, windows
from tests.op_programs import NOT_GENERATED

OPS: dict[str, Callable[[Builder], bool]] = {
    **elementwise.OPS, **movement.OPS, **contractions.OPS, **gathers.OPS, **control.OPS, **ordering.OPS,
    **windows.OPS, **random.OPS, **dtypes.OPS,
}  # fmt: skip

WITHOUT = {
    **NOT_GENERATED,
    **dict.fromkeys(("disc.shape", "@shlo_disc.fft", "@shlo_disc.ragged_dot"), "of the compiler's own making"),
    "@cpu_csr_sparse_dense_ffi": "JAX's call for sparse matrices, with tests of its own",
}
"""Ops that are compiled and not generated, and why. Those resolved while a program is read are not asked for."""
