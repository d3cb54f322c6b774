# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`Executable.explain` and the steps' times it stands on."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ShapeError
from shlo_disc.lowering.launches import launches_in
from shlo_disc.report.explanation import missing_facts
from shlo_disc.report.work import work_of
from shlo_disc.shape_dialect.dialect.host import Guard
from shlo_disc.shape_dialect.mlir import func
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.tools.cli import main
from tests.run.op_check import compile_function


def layer(w: jax.Array, x: jax.Array) -> jax.Array:
    return jax.nn.softmax(jnp.tanh(x @ w), axis=-1)


@pytest.mark.slow
def test_a_product_and_its_row_reduction() -> None:
    executable = compile_function(layer, [("16, s", "float32"), ("b, 16", "float32")])
    found = executable.explain(b=5, s=33)
    assert [(k.name, k.kind) for k in found.kernels] == [tuple(k) for k in executable.kernels]
    (kernel,) = found.kernels
    assert kernel.flops == 2 * 5 * 33 * 16 + 5 * 33 * 6 + 5  # tanh, max, subtract, exp, sum, divide; max with -inf
    assert kernel.bytes_read == 4 * (16 * 33 + 5 * 16) and kernel.bytes_written == 4 * 5 * 33
    assert kernel.runs == 1 and kernel.seconds is not None and kernel.seconds > 0
    assert found.seconds == kernel.seconds
    assert kernel.is_below_estimate or kernel.share == kernel.estimated_seconds / kernel.seconds
    assert kernel.source.endswith(f"test_explain.py:{layer.__code__.co_firstlineno + 1}")
    assert "dot_general" in kernel.ops and "tanh" in kernel.ops


def test_guards_and_the_facts_that_would_decide_them() -> None:
    def f(x: jax.Array) -> jax.Array:
        return jax.nn.softmax(x, axis=-1) * 2

    v3 = shlo_disc.Options(cpu="x86-64-v3")  # vectors of 8 elements, two of which a row is cut into
    free = shlo_disc.compile(f, args=(("b, s", "float32"),), options=v3)
    for s, variant in ((32, "whole vectors"), (33, "a masked last vector")):
        (kernel,) = free.explain(b=2, s=s).kernels
        assert variant in kernel.variant and "one thread" in kernel.variant
        assert "mod(s, 16) == 0" in kernel.missing and "s <= 65536" in kernel.missing
    assert "computed again" in free.explain(b=2, s=65_537).kernels[0].variant
    assert "all threads" in free.explain(b=4000, s=128).kernels[0].variant
    constraints = ["mod(s, 16) == 0", "s <= 4096"]
    known = shlo_disc.compile(f, args=(("b, s", "float32"),), constraints=constraints, options=v3)
    assert known.explain(b=2, s=64).kernels[0].missing == ()


def test_ways_that_the_runtime_chooses() -> None:
    executable = compile_function(lambda w, x: x @ w, [("64, 64", "float32"), ("b, 64", "float32")])
    assert "packed before" in executable.explain(b=9).kernels[0].variant
    two = compile_function(lambda x, y: x @ y, [("b, 64", "float32"), ("64, b", "float32")])
    assert two.explain(b=1).kernels[0].variant == "matrix-vector"
    assert two.explain(b=40).kernels[0].variant.startswith("tiles")


def test_the_type_that_a_product_multiplies_sets_its_ceiling() -> None:
    def f(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.dot(x, w, preferred_element_type=jnp.float32)

    executable = compile_function(f, [("64, 64", "bfloat16"), ("b, 64", "bfloat16")])
    compilation = executable._at("plan")
    functions = {
        op.name.value: op for op in compilation.snapshots["plan"].body.operations if isinstance(op, func.FuncOp)
    }
    callee = launches_in(executable._at("host").snapshots["host"])[0].fusion
    assert work_of(functions[callee], functions).element == "bf16"
    assert all(k.estimated_seconds > 0 for k in executable.explain(b=9).kernels)


def test_steps_of_loops_and_branches() -> None:
    def f(x: jax.Array) -> jax.Array:
        y = jax.lax.fori_loop(0, 7, lambda i, v: jnp.sort(v, axis=1) * 2, x)
        return jax.lax.cond(y[0, 0] > -1, lambda v: jnp.sort(-v, axis=1), lambda v: jnp.cumsum(v, axis=1), y)

    found = compile_function(f, [("b, 5", "float32")]).explain(b=300)
    assert [k.runs for k in found.kernels if k.kind == "sort"] == [7, 1]
    assert [k.runs for k in found.kernels if k.kind == "scan"] == [0] and "not run" in str(found)


def test_a_step_that_the_program_runs_by_itself() -> None:
    found = compile_function(lambda x: jnp.max(x) + 1, [("b", "float32")]).explain(b=3)
    assert [k.seconds for k in found.kernels if k.runs is None] == [None] * len(found.kernels)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal on which tables have a line for each row."""
    monkeypatch.setenv("COLUMNS", "400")


def test_the_table_and_the_data() -> None:
    executable = compile_function(layer, [("16, s", "float32"), ("b, 16", "float32")])
    found = executable.explain(b=2, s=3)
    lines = str(found).splitlines()
    assert "b=2, s=3" in lines[0] and lines[2].split()[:2] == ["#", "kernel"] and len(lines) == 3 + len(found.kernels)
    assert json.loads(json.dumps(found.to_json()))["kernels"][0]["flops"] == found.kernels[0].flops
    assert found._repr_html_().count("<tr>") == 1 + len(found.kernels)
    assert repr(found) == str(found) and " us in 1 command; " in lines[0]


def test_a_share_over_all_is_no_share() -> None:
    """As of a kernel whose arguments stay in caches, where the estimate is of memory."""
    measured = compile_function(layer, [("16, s", "float32"), ("b, 16", "float32")]).explain(b=2, s=3)
    (kernel,) = measured.kernels
    slow, fast = (replace(kernel, estimated_seconds=1e-6, seconds=s) for s in (4e-6, 0.5e-6))
    assert (slow.share, slow.is_below_estimate) == (0.25, False)
    assert (fast.share, fast.is_below_estimate) == (None, True)
    found = replace(measured, kernels=(slow, fast))
    first, second, note = str(found).splitlines()[3:]
    assert first.split()[2:5] == ["4.0", "1.0", "25"] and second.split()[2:5] == ["0.5", "-", "-"]
    assert note.startswith("#1: faster than was estimated") and "stays in caches" in found._repr_html_()
    assert found.to_json()["kernels"][1]["share"] is None


def test_a_function_of_a_library_has_the_line_that_hands_it_over() -> None:
    program = shlo_disc.compile(jax.nn.softmax, args=(("b, s", "float32"),))
    line = sys._getframe().f_lineno - 1
    (kernel,) = program.explain(b=2, s=3).kernels
    assert kernel.source == f"{__file__}:{line}"
    assert {line for lines in program.source_lines().values() for line in lines} == {kernel.source}


def test_sizes_that_are_not_admissible() -> None:
    executable = compile_function(layer, [("16, s", "float32"), ("b, 16", "float32")], constraints=["s <= 9"])
    with pytest.raises(ShapeError, match="dimension variables"):
        executable.explain(b=2)
    with pytest.raises(ShapeError, match="s <= 9"):
        executable.explain(b=2, s=10)


def test_profiles_on_two_threads() -> None:
    executable = compile_function(layer, [("16, s", "float32"), ("b, 16", "float32")])
    w, found = np.ones((16, 8), np.float32), []

    def work() -> None:
        for _ in range(50):
            found.append(executable.loaded.profile((w, np.ones((4, 16), np.float32)))[0].calls)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 100


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(
        "func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {\n"
        "  %y = stablehlo.tanh %x : tensor<?x?xf32>\n  return %y : tensor<?x?xf32>\n}\n"
    )
    names = [s["name"] for s in shlo_disc.compile(path).artifact.header["symbols"]]
    dims = ",".join(f"{name}=3" for name in names)
    assert main(["explain", str(path), "--dims", dims]) == 0
    assert "loop_tanh" in capsys.readouterr().out
    assert main(["explain", str(path), "--dims", dims, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kernels"][0]["flops"] == 9


def test_what_no_symbol_decides_is_no_missing_fact() -> None:
    conditions = (Relation.eq(8, 0), Relation.eq(Expr.symbol("s") % 8, 0))
    large = Guard("all threads", "one thread", (Relation.gt(Expr.symbol("s"), 9),), of_size=True)
    assert missing_facts((Guard("whole vectors", "a masked last vector", conditions), large)) == ("mod(s, 8) == 0",)


def test_all_trips_of_a_loop_count() -> None:
    def steps(w: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 50, lambda _, h: jnp.sort(jnp.tanh(w @ h)), x)

    found = compile_function(steps, [("n, n", "float32"), ("n", "float32")]).explain(n=16)
    number, (product,) = next((i, [k]) for i, k in enumerate(found.kernels) if k.kind == "dot")
    assert product.runs == 50 and product.seconds is not None and found.seconds >= 50 * product.seconds
    assert product.flops is not None
    row = str(found).splitlines()[3 + number].split()
    assert "50" in row and f"{50 * product.flops / 1e6:.3f}" in row
