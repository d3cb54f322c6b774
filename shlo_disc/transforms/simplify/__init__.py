# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `simplify` stage: StableHLO to less StableHLO, using shape facts."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.mlir import ir, passmanager, rewrite
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.regions import entry_block, main_function
from shlo_disc.transforms import expand
from shlo_disc.transforms.decisions import Decisions
from shlo_disc.transforms.expand.complex_values import decompose
from shlo_disc.transforms.expand.quantized import remove_quantized_types
from shlo_disc.transforms.regions import close_regions
from shlo_disc.transforms.simplify import data_movement, dot, reduce
from shlo_disc.transforms.simplify.accumulated import hoist_accumulated_products
from shlo_disc.transforms.simplify.control_flow import hoist_invariants, simplify_control_flow
from shlo_disc.transforms.simplify.materialize_shapes import materialize_shapes
from shlo_disc.transforms.simplify.scanned import hoist_scanned_products
from shlo_disc.transforms.simplify.weights import turn_weights

CLEAN = "builtin.module(func.func(canonicalize{max-iterations=4},cse),symbol-dce)"

PATTERNS = [*data_movement.PATTERNS, *dot.PATTERNS, *reduce.PATTERNS]


def simplify(module: ir.Module, facts: Facts, decisions: Decisions) -> None:
    """Simplify an annotated module in place; what is moved out of loops, as often as `decisions` allow."""
    expand.expand(module)
    remove_quantized_types(module)
    materialize_shapes(module, facts)
    _apply(expand.BODIES, module)
    decompose(module)
    clean = passmanager.PassManager.parse(CLEAN)
    clean.run(module.operation)
    simplify_control_flow(entry_block(module))
    hoist_scanned_products(entry_block(module), decisions)
    _apply(expand.PATTERNS, module)
    _apply(PATTERNS, module)
    clean.run(module.operation)
    hoist_accumulated_products(entry_block(module), decisions)
    clean.run(module.operation)
    turn_weights(entry_block(module), decisions)
    hoist_invariants(entry_block(module), facts, decisions)
    close_regions(entry_block(module))


def _apply(rows: Sequence[tuple[str, data_movement.Pattern]], module: ir.Module) -> None:
    patterns = rewrite.RewritePatternSet()
    for name, pattern in rows:
        patterns.add(name, pattern)
    rewrite.apply_patterns_and_fold_greedily(main_function(module).operation, patterns.freeze())
