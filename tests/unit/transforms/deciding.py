# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The decisions of a compile, and the conditions of patterns that do not hold in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import export

from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.options import Options
from shlo_disc.transforms.decisions import OUTCOMES

Function = Callable[..., Any]


def compiled(function: Function, *shapes: str, last: str = "fuse", **options: Any) -> tuple[Compilation, set[str]]:
    """The compilation of a float32 function up to a stage, and the conditions that did not hold in it."""
    scope = export.SymbolicScope()
    specs = [jax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), jnp.float32) for s in shapes]
    program = export.export(jax.jit(function))(*specs)
    before = OUTCOMES.copy()
    done = run_pipeline(import_stage(program, "cpu", Options(**options)), last=last)
    return done, {name for (name, holds), count in (OUTCOMES - before).items() if count and not holds}


def taken(done: Compilation, pattern: str) -> int:
    """The number of times that a pattern was used."""
    return sum(d.pattern == pattern for decisions in done.decisions.values() for d in decisions.made)
