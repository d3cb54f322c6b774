# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops that a module may have after each stage, kernels aside, whose ops `codegen` checks.

What is StableHLO comes from the definitions of the ops: a stage is done when those that it rewrites are gone.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.host import RECORDS
from shlo_disc.shape_dialect.ops import TABLE


def _rows(*lowerings: str) -> frozenset[str]:
    """The ops that are lowered so; what begins with @ is the target of a custom call."""
    return frozenset(name for name, row in TABLE.items() if row.lowering in lowerings and name[0] != "@")


_FUNCTIONS = frozenset({"func.func", "func.return", "stablehlo.return", "stablehlo.custom_call"})
_BODIES = frozenset({"disc.bind", "disc.nonzero", "disc.shape"})
_DECLARED = frozenset({"disc.signature", "disc.symbol"})
_DERIVED = _DECLARED | {"disc.constraint", "disc.dim"}

_COMPUTED = _rows("control", "dot", "elementwise", "index", "kernel", "reduction")
"""Ops of StableHLO that kernels compute, and loops and branches."""

_IMPORTED = _COMPUTED | _rows("expand", "library", "order", "shape") | _FUNCTIONS | _BODIES
_SIMPLE = _COMPUTED | _FUNCTIONS | _BODIES | _DERIVED
_FUSED = _SIMPLE | {"func.call"}
_HOST = frozenset(
    {
        "arith.cmpi", "arith.constant", "arith.index_cast", "builtin.module", "func.func", "func.return", "gpu.module",
        "memref.global", "memref.load", "memref.view", "scf.condition", "scf.if", "scf.index_switch", "scf.while",
        "scf.yield",
    }
)  # fmt: skip

LEGAL: dict[str, frozenset[str]] = {
    "import": _IMPORTED | _DERIVED,
    "annotate": _IMPORTED | _DERIVED,
    "simplify": _SIMPLE | _rows("order"),
    "fuse": _FUSED,
    "plan": _FUSED | {"disc.piece"},
    "kernels": _FUSED | {"disc.piece", "builtin.module", "gpu.module"},
    "host": _HOST | _DERIVED | RECORDS.keys(),
}
"""The ops by stage. `codegen` ends with ops of the LLVM dialect alone, which it checks by itself."""


__all__ = ["LEGAL"]
