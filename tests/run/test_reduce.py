# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc reduce` makes programs small that fail by a planted fault."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export

import shlo_disc
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.tools.cli import main
from shlo_disc.tools.reduce.failing import CompilerFailure, Failure
from shlo_disc.tools.reduce.search import Reduced, reduce
from shlo_disc.tools.reduce.worker import assignments, pattern_of

CPU = shlo_disc.Options(opt_level=0, verify=False, threads=1)


def exported(function: Callable[..., Any], *shapes: str) -> str:
    scope = export.SymbolicScope()
    specs = [jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), jnp.float32) for shape in shapes]
    return str(export.export(jax.jit(function))(*specs).mlir_module())


def layers(x: Any, w: Any) -> Any:
    """Products, softmax, a loop, a branch and a sort."""
    for _ in range(2):
        h = jnp.tanh(x @ w)
        x = x + jax.nn.softmax(h @ h.T) @ h
    carried, _ = jax.lax.scan(lambda c, _: ((c[0] + 1, jnp.sin(c[1]) * c[0]), None), (1.0, x), None, length=3)
    branch = jax.lax.cond(x.sum() > 0, lambda y: jnp.exp(y) * 2, lambda y: jnp.sort(y, 0), x)
    return x, carried[1].sum(0), branch, jnp.sort(jnp.exp(x), 0)


LAYERS = exported(layers, "n, 16", "16, 16")


class Mentions:
    """Programs that mention some words fail."""

    def __init__(self, *words: str):
        self.words = words
        self.closed = False

    def failure(self, module: Any) -> Failure | None:
        text = str(module)
        return Failure("test", "", "") if all(word in text for word in self.words) else None

    def close(self) -> None:
        self.closed = True


def reduced(text: str | bytes, *words: str, **chosen: Any) -> Reduced:
    failing = Mentions(*words)
    found = reduce(text, failing, **chosen)
    assert failing.closed
    return found


# ---- the search ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "ops"),
    [
        (("stablehlo.sine",), 1),
        (("stablehlo.sort", "stablehlo.exponential"), 3),
        (("stablehlo.while", "stablehlo.sine"), 3),
        (("stablehlo.case",), 2),
        (("stablehlo.dot_general", "stablehlo.tanh"), 2),
    ],
)
def test_programs_become_as_small_as_they_can(words: tuple[str, ...], ops: int) -> None:
    found = reduced(LAYERS, *words)
    assert found.is_complete and found.ops <= ops < found.ops_before, found.text
    assert "?" not in found.text and "loc(" not in found.text and all(word in found.text for word in words)
    assert "x16" not in found.text and "jax." not in found.text
    assert "dense<true>" not in found.text or "while" not in found.text  # loops end
    shlo_disc.compile(found.text, options=CPU)


def test_symbols_stay_where_the_failure_needs_them() -> None:
    found = reduced(LAYERS, "dynamic_broadcast_in_dim")
    assert found.ops <= 1 and "?" in found.text, found.text


def test_constraints_and_functions_stay_where_they_are_needed() -> None:
    found = reduced(LAYERS, "shape_assertion")
    assert found.ops <= 3, found.text
    found = reduced(LAYERS, " call @", "stablehlo.add")
    assert found.text.count("func.func private") <= 3 and " call @" in found.text and found.ops <= 4, found.text


def test_constants_become_splats() -> None:
    text = """func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
  %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>
  %0 = stablehlo.add %x, %c : tensor<6xf32>
  return %0 : tensor<6xf32>
}"""
    found = reduced(text, "stablehlo.add", "stablehlo.constant")
    assert "dense<1.0" in found.text and "tensor<1xf32>" in found.text and found.ops == 2


def test_the_same_program_gives_the_same_small_one() -> None:
    first, second = (reduced(LAYERS, "stablehlo.sort", "stablehlo.exponential") for _ in range(2))
    assert (first.text, first.trials) == (second.text, second.trials)


def test_the_best_so_far_is_given_when_the_time_is_over() -> None:
    found = reduced(LAYERS, "stablehlo.sine", seconds=1e-9)
    assert not found.is_complete and found.ops == found.ops_before
    assert "stablehlo.sine" in found.text


def test_an_interrupted_search_gives_what_it_has() -> None:
    class Interrupted(Mentions):
        trials = 0

        def failure(self, module: Any) -> Failure | None:
            self.trials += 1
            if self.trials > 5:
                raise KeyboardInterrupt
            return super().failure(module)

    found = reduce(LAYERS, Interrupted("stablehlo.sine"))
    assert not found.is_complete and found.ops < found.ops_before and "stablehlo.sine" in found.text


def test_exports_are_programs() -> None:
    spec = jax.ShapeDtypeStruct(export.symbolic_shape("n, 4"), jnp.float32)
    data = bytes(export.export(jax.jit(lambda x: jnp.sin(x) @ jnp.tanh(x).T))(spec).serialize())
    assert reduced(data, "stablehlo.tanh").ops == 1


def test_programs_that_do_not_fail() -> None:
    with pytest.raises(shlo_disc.OptionError, match="the program does not fail: there is nothing to reduce"):
        reduced(LAYERS, "stablehlo.fft")


def test_symbols_without_a_name_get_the_sizes_of_others() -> None:
    assert list(assignments(["b", "s"], [{"b": 2, "s": 7}], [3])) == [{"b": 2, "s": 7}]
    assert list(assignments(["b", "arg1_d0"], [{"b": 2, "s": 7}], [3])) == [
        {"b": 2, "arg1_d0": 2},
        {"b": 2, "arg1_d0": 7},
    ]
    assert list(assignments(["b"], [], [3, 1])) == [{"b": 3}, {"b": 1}]


def test_failures_are_alike_by_their_words() -> None:
    a = shlo_disc.CompilerError("the stage fuse failed: 'f32' at %12 of tensor<3x4xf32>\nmore")
    b = shlo_disc.CompilerError("the stage fuse failed: 'bf16' at %7#1 of tensor<2xbf16>")
    assert pattern_of(a) == pattern_of(b) == "CompilerError: the stage fuse failed: _ at _ of tensor_"
    assert pattern_of(a) != pattern_of(shlo_disc.CompilerError("the stage plan failed: 'f32' at %12"))


# ---- planted faults --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_internal_error() -> None:
    def dense(x: Any, w: Any) -> Any:
        return x.sum(), jnp.tanh(jnp.sin(x) @ w) + x

    options = replace(CPU, hints={"n": 64})  # a symbol that goes
    failing = CompilerFailure(options, worker="tests.run.faults.failing_epilogues")
    found = reduce(exported(dense, "n, 8", "8, 8"), failing)
    assert found.failure.kind == "error" and "KeyError: 'tile'" in found.failure.text
    assert "stablehlo.dot_general" in found.text and found.ops <= 3, found.text


@pytest.mark.slow
def test_the_process_is_started_again_after_its_end() -> None:
    failing = CompilerFailure(CPU, worker="tests.run.faults.dying_sorts")
    bad = parsed("%0 = stablehlo.exponential %x : tensor<4xf32>\n  " + SORT.replace("(%x)", "(%0)"))
    try:
        assert failing.failure(bad) == Failure("crash", "SIGABRT", "SIGABRT: LLVM ERROR: Cannot select 0x1234")
        assert failing.failure(parsed(SORT)) is None
    finally:
        failing.close()


SORT = """%1 = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<4xf32>) -> tensor<4xf32>"""


def parsed(ops: str) -> Any:
    text = f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n  {ops}\n  return %1 : tensor<4xf32>\n}}\n"
    return ir.Module.parse(text, make_context()).operation


@pytest.mark.slow
def test_the_end_of_the_process() -> None:
    """Runs at least three processes."""

    def sorted_exponentials(x: Any) -> Any:
        return jnp.sort(jnp.exp(x) * 2), x + 1

    failing = CompilerFailure(CPU, worker="tests.run.faults.dying_sorts")
    found = reduce(exported(sorted_exponentials, "4"), failing)
    assert found.failure.kind == "crash" and found.failure.text == "SIGABRT: LLVM ERROR: Cannot select 0x1234"
    assert found.ops <= 3 and "stablehlo.sort" in found.text, found.text


@pytest.mark.slow
def test_wrong_results() -> None:
    def distances(x: Any) -> Any:
        n = (x * x).sum(1)
        d = n[:, None] + n[None, :] - 2 * (x @ x.T)
        far = d.max(1)
        return d, jnp.tanh(far - far.max()), jnp.sort(x, 0)

    failing = CompilerFailure(CPU, dims=[{"n": 1}, {"n": 3}], worker="tests.run.faults.wrong_reuse")
    found = reduce(exported(distances, "n, 5"), failing, sizes=[3])
    assert found.failure.kind == "wrong" and found.failure.text.startswith("result 0")
    assert found.ops <= 9, found.text


# ---- the command -----------------------------------------------------------------------------------------------------


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "shlo_disc", "reduce", *words], capture_output=True, text=True)


def test_the_command_writes_a_small_program(tmp_path: Path) -> None:
    big, small = tmp_path / "big.mlir", tmp_path / "small.mlir"
    big.write_text(LAYERS)
    script = tmp_path / "it fails.sh"
    script.write_text('#!/bin/sh\ngrep -q stablehlo.sine "$2" && grep -q stablehlo.exponential "$2"\n')
    script.chmod(0o755)
    done = run(str(big), "--test", f"'{script}' quietly", "-o", str(small), "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["complete"] and said["ops"] <= 3 and said["failure"]["kind"] == "test"
    assert small.read_text() == said["program"]
    assert small.read_text().startswith("// test: the command exits with 0\n")
    lines = done.stderr.splitlines()
    assert re.fullmatch(rf"{said['ops_before']} ops, 2 arguments; 1 programs tried in \d+\.\d s", lines[1])
    assert lines[-1].startswith(f"{said['ops']} ops, ")
    shlo_disc.compile(small)


def test_what_the_command_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "add.mlir"
    program.write_text("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n  return %x : tensor<?xf32>\n}\n")
    for words, status, message in (
        ((), 1, "the program does not fail: there is nothing to reduce"),
        (("--test", "false"), 1, "the program does not fail: there is nothing to reduce"),
        (("--test", str(tmp_path / "nowhere")), 2, "cannot be run: No such file or directory"),
        (
            ("--test", "true", "--check", "wrong"),
            2,
            "--test and --check are two ways to say what a failure is; use one",
        ),
        (("--seconds", "0"), 2, "--seconds and --time-limit must be positive"),
    ):
        assert main(["reduce", str(program), *words]) == status
        output = capsys.readouterr()
        assert message in output.err and not output.out
