# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types of the public functions as a checker sees them: checked in `test_installed.py`, and never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

import jax
from jax import export

import shlo_disc
from shlo_disc.api.filtered import FilteredJit
from shlo_disc.api.jit import Jitted
from shlo_disc.api.lowered import Lowered, Traced
from shlo_disc.driver.executable import Executable
from shlo_disc.report.explanation import Explanation
from shlo_disc.torch import ExportedExecutable


class ExportedProgram:
    """With the attributes of PyTorch's that are asked for."""

    graph_signature: Any
    range_constraints: dict[str, str]


def compiled(exported: export.Exported, torch_program: ExportedProgram) -> None:
    """Types of `compile`'s results."""
    assert_type(shlo_disc.compile("module {}"), Executable)
    assert_type(shlo_disc.compile(Path("model.mlir"), target="cuda"), Executable)
    assert_type(shlo_disc.compile(b"module {}", options=shlo_disc.Options(threads=1)), Executable)
    assert_type(shlo_disc.compile(exported), Executable)
    assert_type(shlo_disc.compile(jax.nn.softmax, args=(("b, s", "float32"),)), Executable)
    assert_type(shlo_disc.compile(jax.jit(len), args=(("b",),), constraints=("b <= 4",)), Executable)
    assert_type(shlo_disc.compile(torch_program), ExportedExecutable)
    assert_type(shlo_disc.compile("module {}").explain(b=2), Explanation)


@shlo_disc.jit
def plain(x: jax.Array) -> jax.Array:
    """Decorated."""
    return x


@shlo_disc.jit(dynamic="b", static_argnames=("n",))
def chosen(x: jax.Array, n: int) -> jax.Array:
    """Decorated, with choices."""
    return x * n


@shlo_disc.jit(filter=True)
def filtered(model: Any, x: jax.Array) -> Any:
    """Decorated, for models."""
    return model(x)


def jitted(x: jax.Array) -> None:
    """Types of `jit`'s results."""
    assert_type(plain, Jitted)
    assert_type(chosen, Jitted)
    assert_type(shlo_disc.jit(jax.nn.softmax, dynamic="b, s"), Jitted)
    assert_type(plain.trace(x), Traced)
    assert_type(chosen.lower(x, n=2), Lowered)
    assert_type(plain.lower(x).compile(), Executable)
    assert_type(plain.executable, Executable)
    assert_type(filtered, FilteredJit)
    assert_type(shlo_disc.jit(jax.nn.softmax, filter=True), FilteredJit)
    assert_type(filtered.lower(None, x), Lowered)
