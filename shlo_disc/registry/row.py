# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One row of the table of ops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LOWERINGS = {
    "elementwise": "computed where its consumer needs it, in vector registers",
    "index": "the consumer reads the operand at another index; no code of its own",
    "reduction": "a fold inside the kernel of its fusion",
    "dot": "generated micro-kernels for f32 and f64, a loop kernel for other types and layouts",
    "kernel": "a generated kernel of its own",
    "library": "a function of the native runtime, or of SciPy's LAPACK",
    "expand": "rewritten into other ops of this table",
    "shape": "a size: computed by the host program's plan",
    "control": "a native loop or branch of the host program",
    "import": "resolved while the program is read",
    "order": "says what is computed after what; no code of its own",
}
"""How an op can be lowered."""


@dataclass(frozen=True)
class Row:
    """One op.

    lowering: a key of `LOWERINGS`, or "" when the op is refused for every element type, for `reason`.
    dtypes: the element types of operands and results that are compiled.
    spec: the element types that the StableHLO specification allows; what it has beyond `dtypes` is refused.
    reason, instead: why that is so, and what the user can do.
    sizes: which sizes are served: "any", or what has to be static.
    tests: the test file that compares it with XLA and the reference interpreter.
    """

    name: str
    lowering: str
    dtypes: frozenset[str]
    spec: frozenset[str]
    sizes: str = "any"
    reason: str = "this op has no lowering"
    instead: str = ""
    tests: str = ""

    def __post_init__(self) -> None:
        if self.lowering and self.lowering not in LOWERINGS:
            raise ValueError(f"{self.name}: {self.lowering!r} is no way of lowering")


def rows(
    lowering: str,
    names: str,
    dtypes: Iterable[str],
    *,
    spec: Iterable[str] | None = None,
    sizes: str = "any",
    tests: str = "",
) -> tuple[Row, ...]:
    """Rows of StableHLO ops (`names`: separated by spaces) that are lowered alike."""
    lowered = frozenset(dtypes)
    allowed = lowered if spec is None else frozenset(spec)
    return tuple(Row(f"stablehlo.{n}", lowering, lowered, allowed, sizes, tests=tests) for n in names.split())


def refused(names: str, spec: Iterable[str], reason: str, instead: str = "", tests: str = "") -> tuple[Row, ...]:
    """Rows of StableHLO ops that are refused."""
    allowed = frozenset(spec)
    return tuple(
        Row(f"stablehlo.{n}", "", frozenset(), allowed, reason=reason, instead=instead, tests=tests)
        for n in names.split()
    )
