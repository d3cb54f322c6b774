# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One module a family: `OPS` gives for each op the function that adds one to a program, or says that it cannot."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.builder import Builder
from tests.fuzz.families import contractions, control, dtypes, elementwise, gathers, movement, ordering, random, windows

OPS: dict[str, Callable[[Builder], bool]] = {
    **elementwise.OPS, **movement.OPS, **contractions.OPS, **gathers.OPS, **control.OPS, **ordering.OPS,
    **windows.OPS, **random.OPS, **dtypes.OPS,
}  # fmt: skip

_OLD = "an op of older versions, rewritten into newer ones that are generated"
_CALL = "jax.export's spelling of an op, with tests of its own"
_DEVICES = "needs several participants; see tests/pjrt/test_devices.py"

WITHOUT = {
    **dict.fromkeys(("broadcast", "torch_index_select", "dot", "einsum", "unary_einsum"), _OLD),
    **dict.fromkeys(("@ApproxTopK", "@stablehlo.dynamic_approx_top_k", "@stablehlo.dynamic_top_k"), _CALL),
    "@mhlo.topk": _CALL.replace("jax.export", "XLA"),
    **dict.fromkeys(("@stablehlo.dynamic_reduce_window", "@stablehlo.dynamic_rng_bit_generator"), _CALL),
    **dict.fromkeys(("batch_norm_grad", "batch_norm_training"), "a variance has no bound on its error in general"),
    **dict.fromkeys(
        ("cholesky", "triangular_solve"), "a random matrix may be near a singular one; see test_ops_linalg"
    ),
    **dict.fromkeys(
        ("uniform_dequantize", "uniform_quantize"), "XLA compiles no quantized types; see test_ops_quantized"
    ),
    **dict.fromkeys(
        ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "reduce_scatter"),
        _DEVICES,
    ),
    **dict.fromkeys(("partition_id", "replica_id"), _DEVICES),
    **dict.fromkeys(("disc.shape", "@shlo_disc.fft"), "of the compiler's own making"),
}
"""Ops that are compiled and not generated, and why. Those resolved while a program is read are not asked for."""
