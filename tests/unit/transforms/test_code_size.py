# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code of a program is bounded by a constant times its ops: counted in ops of the lowered module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import export

from benchmarks import compile_programs as programs
from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.lowering_cpu.policy import CPU_POLICY
from shlo_disc.options import Options
from shlo_disc.shape_dialect.dialect.fusion import is_fusion
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.code_size import total_code_size
from shlo_disc.transforms.decisions import OUTCOMES

Function = Callable[[jax.Array], jax.Array]


def compiled(function: Function, shape: str = "b, d", last: str = "host") -> Compilation:
    """A float32 function after a stage."""
    spec = jax.ShapeDtypeStruct(export.symbolic_shape(shape), jnp.float32)
    program = export.export(jax.jit(function))(spec)
    return run_pipeline(import_stage(program, "cpu", Options(), None, None, ()), last=last)


def op_names(function: Function, shape: str = "b, d") -> Counter[str]:
    """The ops of the lowered module, and the functions it defines."""
    module = compiled(function, shape).module
    assert module is not None
    found: Counter[str] = Counter()

    def visit(op: ir.Operation) -> ir.WalkResult:
        found[op.name] += 1
        if op.name == "func.func":
            found[ir.StringAttr(op.attributes["sym_name"]).value] += 1
        if op.name == "func.call":
            found["call of " + ir.FlatSymbolRefAttr(op.attributes["callee"]).value] += 1
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def code_sizes(function: Function, shape: str = "b, d") -> list[int]:
    """The instructions of each fusion, with calls."""
    module = compiled(function, shape, last="fuse").module
    assert module is not None
    fusions = [op for op in module.body.operations if isinstance(op, func.FuncOp) and is_fusion(op)]
    return [total_code_size(f.entry_block.operations, outlined=True) for f in fusions]


def doubled(count: int) -> Function:
    """Each step reads the one before at two places."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(count):
            x = jnp.concatenate([x + i, x * 2])
        return x

    return function


@pytest.mark.parametrize(
    ("make", "shape", "most"),
    [
        (programs.chain, "b, d", 20),
        (programs.steps, "b, d", 40),
        (lambda n: programs.sum_of(jnp.tanh, n), "b, d", 40),
        pytest.param(programs.runge_kutta, "b, d", 400, marks=pytest.mark.slow),
        (programs.rolled, "n", 400),
        (lambda n: programs.softmaxes(n // 10), "b, d", 100),
        (lambda n: lambda x: jnp.concatenate([x * (1.0 + i) for i in range(n)], 1), "b, d", 60),
        (lambda n: lambda x: jnp.concatenate([x[:, i % 7 :] for i in range(n)], 1), "b, 64", 60),
        (lambda n: doubled(n // 10), "b, d", 400),
    ],
)
def test_code_grows_with_the_ops(make: Callable[[int], Function], shape: str, most: int) -> None:
    few, many = (sum(op_names(make(count), shape).values()) for count in (40, 120))
    assert many - few <= 80 * most


def test_a_function_is_written_once_for_a_type() -> None:
    found = op_names(programs.steps(40))
    defined = [name for name in found if name.startswith("sin_")]
    assert len(defined) == 1
    assert found[defined[0]] == 1
    assert found["call of " + defined[0]] == 40


def test_few_functions_stay_inline() -> None:
    found = op_names(lambda x: jnp.tanh(x) + jnp.exp(x) * jnp.sin(x))
    assert not [name for name in found if name.startswith(("call of sin_", "call of exp_", "call of tanh_"))]


@pytest.mark.parametrize(
    ("function", "shape", "condition"),
    [
        (programs.chain(1500), "b, d", "elementwise-fusion.joined-is-short"),
        (programs.sum_of(jnp.exp, 100), "b, d", "merge-fusions.merged-is-short"),
        (lambda x: programs.chain(600)(x).sum(-1), "b, d", "row-reduce-fusion.reduced-is-short"),
        (doubled(12), "b, d", "absorb-producer.absorbed-is-short"),
    ],
)
def test_a_fusion_is_split_before_it_becomes_too_long(function: Function, shape: str, condition: str) -> None:
    before = OUTCOMES[condition, False]
    sizes = code_sizes(function, shape)
    assert OUTCOMES[condition, False] > before
    assert len(sizes) > 1
    assert max(sizes) <= CPU_POLICY.kernel_instructions
