# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of the plugin that call Python: each trace, and each process, has other numbers for its functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from shlo_disc.importer.entry_arguments import functions_as_arguments
from shlo_disc.importer.normalise import entry_function
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from tests.pjrt.plugin import run_python

CALLS = """
func.func @main(%x: tensor<3xf32>, %p: tensor<i1>) -> (tensor<3xf32>, tensor<3xf32>) {
  %y = "stablehlo.if"(%p) ({
    %n = stablehlo.constant dense<71> : tensor<i64>
    %a = stablehlo.custom_call @shlo_disc_python_callback(%n, %x) : (tensor<i64>, tensor<3xf32>) -> tensor<3xf32>
    stablehlo.return %a : tensor<3xf32>
  }, {
    %n = stablehlo.constant dense<9> : tensor<i64>
    %a = stablehlo.custom_call @shlo_disc_python_callback(%n, %x) : (tensor<i64>, tensor<3xf32>) -> tensor<3xf32>
    stablehlo.return %a : tensor<3xf32>
  }) : (tensor<i1>) -> tensor<3xf32>
  %n = stablehlo.constant dense<71> : tensor<i64>
  %z = stablehlo.custom_call @another(%n, %y) : (tensor<i64>, tensor<3xf32>) -> tensor<3xf32>
  return %y, %z : tensor<3xf32>, tensor<3xf32>
}
"""


def test_numbers_become_arguments() -> None:
    """Calls of Python alone get them, also in branches. A number that was not found stays, another may be unused."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(CALLS)
        functions_as_arguments(entry_function(module), (5, 71))
        module.operation.verify()
        lines = [line.strip() for line in str(module).splitlines() if "custom_call" in line]
    numbers = [line.split("(")[1].split(",")[0] for line in lines]
    assert numbers[0] == "%arg3" and all(not number.startswith("%arg") for number in numbers[1:])
    assert str(module).count("tensor<i64>") >= 2 and "%arg2: tensor<i64>, %arg3: tensor<i64>" in str(module)


PROGRAM = """
import sys
import jax, jax.numpy as jnp, numpy as np
from jax import lax

function = getattr(np, sys.argv[1])

@jax.jit
def program(x):
    called = lambda a: jax.pure_callback(function, jax.ShapeDtypeStruct(a.shape, a.dtype), a)
    positive = lax.cond(x.sum() > 0, called, lambda a: -called(a), x)
    return lax.fori_loop(0, 3, lambda _, a: 0.5 * called(a), positive)

for size in (3, 5, 7):
    x = np.linspace(-1, 2, size, dtype=np.float32)
    wanted = function(x)
    for _ in range(3):
        wanted = 0.5 * function(wanted)
    np.testing.assert_allclose(program(x), wanted, rtol=1e-6)
"""


@pytest.mark.slow
def test_another_process_finds_the_programs(tmp_path: Path) -> None:
    """Though its functions are others; with two the cache has nothing to add."""
    found = []
    for function in ("sin", "cos"):
        done = run_python("-c", PROGRAM, function, JAX_PLATFORMS="shlo_disc,cpu", SHLO_DISC_CACHE_DIR=str(tmp_path))
        assert done.returncode == 0, done.stderr
        found.append(sorted(path.name for path in tmp_path.glob("*.shlodisc")))
    assert found[0] == found[1] and len(found[0]) >= 2
