# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The definition of an op: all that is true of it whatever the stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.dynamic_forms import DynamicForm
from shlo_disc.shape_dialect.ops.index_maps import IndexMap
from shlo_disc.shape_dialect.ops.propagation import SizeRule
from shlo_disc.shape_dialect.ops.size_relations import RelationRule
from shlo_disc.shape_dialect.ops.values import ValueRule
from shlo_disc.shape_dialect.symbolic.expr import Expr

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

MapRule = Callable[[ir.OpView], IndexMap]
FlopsRule = Callable[[ir.OpView], Expr]
WindowRule = Callable[[ir.OpView], Dims]
Check = Callable[[ir.OpView], str | None]
"""The reason that an op cannot be compiled as it stands; None where it can."""


def no_flops(_: ir.OpView) -> Expr:
    """The arithmetic of an op that moves elements."""
    return Expr.const(0)


def flops_per_element(op: ir.OpView) -> Expr:
    """One operation for each element of the first result."""
    if not op.results or not isinstance(op.results[0].type, ir.RankedTensorType):
        return Expr.const(0)
    return product(dims_of(op.results[0]))


@dataclass(frozen=True)
class OpDef:
    """One op.

    lowering: a key of `LOWERINGS`, or "" when the op is refused for every element type, for `reason`.
    dtypes: the element types of operands and results that are compiled.
    spec: the element types that the StableHLO specification allows; what it has beyond `dtypes` is refused.
    check: what patterns and rules take for granted, and MLIR does not verify, of an op of supported element types.
    infer: the sizes of the results, and the relations that a valid program has where the op stands.
    relate: the sizes that are the same, or computed from others, when a static program is made symbolic.
    dynamic_form: what the op becomes where sizes that it states are symbols.
    index_map: which elements of which operands the elements of the result are, of an op that only moves them.
    values: the elements of the result, where those of the operands are sizes.
    is_elementwise: an element of the result needs the elements of the operands at its own index, and nothing else.
    is_generator: the elements follow from attributes and sizes alone, and no tensor is read.
    window: the sizes that the first operand has at least wherever the op runs, of an op that reads a part of it.
    size_operands: the operands whose elements are sizes.
    flops: the arithmetic of one run.
    cost: the rough work for an element of the result where a kernel computes it, in simple vector ops.
    code: instructions for one vector of the result, roughly: those of `lowering_cpu/vector_math` on f32.
    code_of_each: `code` counts once for each operand behind the first.
    is_function: `code` can be a call of a function of `vector_math`.
    sizes: which sizes are served: "any", or what has to be static.
    reason, instead: why it is refused, and what the user can do.
    tests: the test file that compares it with XLA and the reference interpreter.
    gpu_dtypes: those of `dtypes` that are compiled for NVIDIA GPUs; None: all, but none of an op of a library.
    """

    name: str
    lowering: str
    dtypes: frozenset[str]
    spec: frozenset[str]
    check: Check | None = None
    infer: SizeRule | None = None
    relate: RelationRule | None = None
    dynamic_form: DynamicForm | None = None
    index_map: MapRule | None = None
    values: ValueRule | None = None
    is_elementwise: bool = False
    is_generator: bool = False
    window: WindowRule | None = None
    size_operands: tuple[int, ...] = ()
    flops: FlopsRule = flops_per_element
    cost: int = 1
    code: int = 1
    code_of_each: bool = False
    is_function: bool = False
    sizes: str = "any"
    reason: str = "this op has no lowering"
    instead: str = ""
    tests: str = ""
    gpu_dtypes: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if self.lowering and self.lowering not in LOWERINGS:
            raise ValueError(f"{self.name}: {self.lowering!r} is no way of lowering")

    @property
    def generates_code(self) -> bool:
        """Tells whether kernels compute anything for the op: none do for constants, sizes and views."""
        return self.code > 0

    @property
    def on_gpus(self) -> frozenset[str]:
        """The element types that are compiled for NVIDIA GPUs."""
        if self.gpu_dtypes is not None:
            return self.gpu_dtypes
        return frozenset() if self.lowering in ("", "library") else self.dtypes


def define(
    lowering: str,
    names: str,
    dtypes: Iterable[str],
    *,
    spec: Iterable[str] | None = None,
    gpu: Iterable[str] | None = None,
    **traits: Any,
) -> tuple[OpDef, ...]:
    """StableHLO ops (`names`: separated by spaces) of which the same is true; `traits`: fields of `OpDef`."""
    lowered = frozenset(dtypes)
    allowed = lowered if spec is None else frozenset(spec)
    on_gpus = None if gpu is None else frozenset(gpu)
    return tuple(
        OpDef(f"stablehlo.{name}", lowering, lowered, allowed, gpu_dtypes=on_gpus, **traits) for name in names.split()
    )


def refuse(
    names: str, spec: Iterable[str], reason: str, instead: str = "", tests: str = "", **traits: Any
) -> tuple[OpDef, ...]:
    """StableHLO ops that are refused; `traits`: fields of `OpDef`."""
    allowed = frozenset(spec)
    return tuple(
        OpDef(f"stablehlo.{name}", "", frozenset(), allowed, reason=reason, instead=instead, tests=tests, **traits)
        for name in names.split()
    )


__all__ = [
    "LOWERINGS", "Check", "FlopsRule", "MapRule", "OpDef", "WindowRule", "define", "flops_per_element", "no_flops",
    "refuse",
]  # fmt: skip
