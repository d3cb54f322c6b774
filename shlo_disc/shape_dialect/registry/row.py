# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One row of the table of ops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LOWERINGS = {
    "elementwise": "computed where its consumer needs it, in vector registers",
    "index": "the consumer reads the operand at another index; generates no code",
    "reduction": "computed inside the kernel of its fusion",
    "dot": "micro-kernels for f32, f64, f16, bf16, i32 and 8-bit integers; a loop kernel for other types and layouts",
    "kernel": "a separate generated kernel",
    "library": "a function of the native runtime, or of SciPy's LAPACK",
    "expand": "rewritten into other ops of this table",
    "shape": "computes a size, in the plan of the host program",
    "control": "a native loop or branch of the host program",
    "import": "resolved while the program is read",
    "order": "orders other ops; generates no code",
}
"""Ways in which an op can be lowered."""


@dataclass(frozen=True)
class Row:
    """One op.

    lowering: a key of `LOWERINGS`, or "" when the op is refused for every element type, for `reason`.
    dtypes: the element types of operands and results that are compiled.
    spec: the element types that the StableHLO specification allows; what it has beyond `dtypes` is refused.
    reason, instead: why that is so, and what the user can do.
    sizes: which sizes are served: "any", or what has to be static.
    tests: the test file that compares it with XLA and the reference interpreter.
    gpu_dtypes: those of `dtypes` that are compiled for NVIDIA GPUs; None: all, but none of an op of a library.
    """

    name: str
    lowering: str
    dtypes: frozenset[str]
    spec: frozenset[str]
    sizes: str = "any"
    reason: str = "this op has no lowering"
    instead: str = ""
    tests: str = ""
    gpu_dtypes: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if self.lowering and self.lowering not in LOWERINGS:
            raise ValueError(f"{self.name}: {self.lowering!r} is no way of lowering")

    @property
    def on_gpus(self) -> frozenset[str]:
        """The element types that are compiled for NVIDIA GPUs."""
        if self.gpu_dtypes is not None:
            return self.gpu_dtypes
        return frozenset() if self.lowering in ("", "library") else self.dtypes


def rows(
    lowering: str,
    names: str,
    dtypes: Iterable[str],
    *,
    spec: Iterable[str] | None = None,
    sizes: str = "any",
    tests: str = "",
    gpu: Iterable[str] | None = None,
) -> tuple[Row, ...]:
    """Rows of StableHLO ops (`names`: separated by spaces) that are lowered alike."""
    lowered = frozenset(dtypes)
    allowed = lowered if spec is None else frozenset(spec)
    on_gpus = None if gpu is None else frozenset(gpu)
    return tuple(
        Row(f"stablehlo.{n}", lowering, lowered, allowed, sizes, tests=tests, gpu_dtypes=on_gpus) for n in names.split()
    )


def refused(names: str, spec: Iterable[str], reason: str, instead: str = "", tests: str = "") -> tuple[Row, ...]:
    """Rows of StableHLO ops that are refused."""
    allowed = frozenset(spec)
    return tuple(
        Row(f"stablehlo.{n}", "", frozenset(), allowed, reason=reason, instead=instead, tests=tests)
        for n in names.split()
    )
