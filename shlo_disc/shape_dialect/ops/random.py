# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.definition import OpDef, define, refuse
from shlo_disc.shape_dialect.ops.element_types import BOOL, FLOAT, INT
from shlo_disc.shape_dialect.ops.propagation import Propagation

_TESTS = "tests/run/test_ops_rng.py"
_BITS = INT | FLOAT


def _infer_rng_bit_generator(p: Propagation, op: ir.OpView) -> list[Dims]:
    return [dims_of(op.operands[0]), dims_of(op.results[1])]


def _infer_dynamic_rng_bit_generator(p: Propagation, op: ir.OpView) -> list[Dims]:
    return [dims_of(op.operands[0]), p.sizes(op.operands[1])]


OPS = (
    *define("expand", "rng_bit_generator", _BITS, infer=_infer_rng_bit_generator, tests=_TESTS),
    OpDef(
        "@stablehlo.dynamic_rng_bit_generator", "expand", _BITS, _BITS, infer=_infer_dynamic_rng_bit_generator,
        tests=_TESTS,
    ),
    *refuse("rng", BOOL | INT | FLOAT, "its state is hidden and differs from call to call", "use jax.random"),
)  # fmt: skip
