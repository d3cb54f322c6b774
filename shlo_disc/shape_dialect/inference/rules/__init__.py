# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shape rules: the sizes of an op's results from its operands, and the equalities that the op implies.

One row an op in `RULES`, one module a family. A rule returns the sizes of every result; what it learns on the way (an
`add` proves its operands' sizes equal, a `dot_general` its contracted sizes) goes to `Propagation.equal`, which is how
facts flow backwards to the arguments.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.inference.propagation import Rule
from shlo_disc.shape_dialect.inference.rules import (
    collectives,
    contractions,
    data_movement,
    data_sizes,
    elementwise,
    fft,
    gathers,
    legacy,
    linear_algebra,
    random,
    sorting,
    windows,
)
from shlo_disc.shape_dialect.mlir import ir

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **data_movement.RULES,
    **gathers.RULES,
    **contractions.RULES,
    **fft.RULES,
    **linear_algebra.RULES,
    **windows.RULES,
    **random.RULES,
    **sorting.RULES,
    **legacy.RULES,
    **data_sizes.RULES,
    **collectives.RULES,
}


def rule_of(op: ir.OpView) -> Rule:
    """The rule of an op; that of a custom call goes by its target, as `@target`."""
    name = op.operation.name
    if name == "stablehlo.custom_call":
        target = "@" + ir.StringAttr(op.attributes["call_target_name"]).value
        return RULES.get(target, RULES[name])
    return RULES[name]


__all__ = ["RULES", "rule_of"]
