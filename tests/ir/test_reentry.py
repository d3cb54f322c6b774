# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The printed output of a stage goes on to the same machine code, and the same header of the artifact."""

from __future__ import annotations

import functools
import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export

import shlo_disc
import shlo_disc.numpy as disc_numpy
from shlo_disc.driver.artifact_header import artifact_of
from shlo_disc.driver.compiler import STAGES, Compilation, import_stage, run_pipeline
from shlo_disc.driver.stage_text import stage_text
from shlo_disc.errors import ProgramError
from shlo_disc.options import Options
from shlo_disc.runtime import Artifact

PRINTED = STAGES[: STAGES.index("codegen")]
MODELS = ("bert", "seq2seq", "dien", "asr", "crnn", "gpt2", "gpt2_decode", "mlp_mixer", "vit", "resnet50")
QUICK = ("bert",)


def compiled(program: Any, options: Options | None = None) -> Compilation:
    return run_pipeline(import_stage(program, "cpu", options or Options(), resume=True))


@functools.cache
def example(name: str) -> Compilation:
    model = importlib.import_module(f"examples.{name}")
    return compiled(model.export(model.SMALL))


def _without_digest(artifact: Artifact) -> bytes:
    assert artifact.object.count(artifact.header_digest()) == 1
    return artifact.object.replace(artifact.header_digest(), bytes(32))


def check(whole: Artifact, text: str, stage: str, options: Options | None = None) -> None:
    """Up to the import, source lines in messages are those of locations, which text is without; digests are of both."""
    resumed = artifact_of(compiled(text, options))
    assert _without_digest(resumed) == _without_digest(whole)
    messages = {"checks", "segments"} if stage == "import" else set()
    assert messages or resumed.object == whole.object
    ours, theirs = ({k: v for k, v in a.header.items() if k not in messages} for a in (resumed, whole))
    assert ours == theirs


@pytest.mark.parametrize("stage", PRINTED)
@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in MODELS])
def test_examples_go_on(name: str, stage: str) -> None:
    whole = example(name)
    check(artifact_of(whole), stage_text(whole, stage), stage)


def _of_many_kinds(q: Any, k: Any, v: Any, table: Any, rows: Any, updates: Any) -> Any:
    causal = jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool))
    scores = jnp.where(causal, jnp.einsum("bqd,bkd->bqk", q, k), -1e9)
    changed = jax.lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c @ c.T @ c), table)
    return {
        "attention": jax.nn.softmax(scores) @ v,
        "gemm": jax.nn.softmax(jax.nn.relu(table @ table.T)),
        "scattered": table.at[rows].add(updates),
        "transformed": [jnp.fft.rfft(table), jnp.sort(table, 0), jnp.cumsum(table, 0)],
        "loop": changed,
    }


@functools.cache
def many_kinds() -> Compilation:
    scope = export.SymbolicScope(["mod(s, 4) == 2"])

    def spec(shape: str, dtype: type = jnp.float32) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), dtype)

    arguments = [*[spec("b, s, 16")] * 3, spec("s, 8"), spec("4", jnp.int32), spec("4, 8")]
    return compiled(export.export(jax.jit(_of_many_kinds))(*arguments), Options(hints={"s": 130}))


@pytest.mark.parametrize("stage", PRINTED)
def test_a_program_of_many_kinds_goes_on(stage: str) -> None:
    """Constraints, hints after `annotate`, and a calling convention with dictionaries are in the text."""
    whole, hints = many_kinds(), {"s": 130} if stage == "import" else {}
    check(artifact_of(whole), stage_text(whole, stage), stage, Options(hints=hints))


def positions(x: Any) -> Any:
    return disc_numpy.nonzero(x > 0)[0] * 2


def halved(x: Any) -> Any:
    """Sizes that each iteration reads."""

    def step(number: Any, x: Any) -> Any:
        at = disc_numpy.flatnonzero(x > number)
        return x.at[at].set(x[at] / 2)

    return jax.lax.fori_loop(0, 3, step, x)


@pytest.mark.parametrize("stage", PRINTED)
@pytest.mark.parametrize("function", [positions, halved])
def test_sizes_from_data_go_on(function: Callable[..., Any], stage: str) -> None:
    executable = shlo_disc.compile(function, args=[("n", "float32")])
    check(executable.artifact, executable.as_text(stage), stage)


def test_another_process_goes_on(tmp_path: Path) -> None:
    """`opt` takes what `opt` printed."""
    whole = many_kinds()
    file = tmp_path / "fused.mlir"
    file.write_text(stage_text(whole, "fuse"))
    command = [sys.executable, "-m", "shlo_disc", "opt", str(file), "--stage", "plan"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == stage_text(whole, "plan").strip()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('disc.stage = "fuse"', 'disc.stage = "codegen"', "no program goes on after the stage 'codegen'"),
        ('disc.stage = "fuse"', "disc.stage = 4", "expected a stage as disc.stage"),
        ('"disc.signature"() {', '"disc.signature"() {mood = "good", ', "there is no mood"),
        ('in_tree = "', 'in_tree = "{', "is no pytree"),
    ],
)
def test_text_that_no_stage_has_printed(old: str, new: str, message: str) -> None:
    text = stage_text(many_kinds(), "fuse")
    assert old in text
    with pytest.raises(ProgramError, match=message):
        compiled(text.replace(old, new, 1))


def test_nothing_runs_what_a_stage_has_printed() -> None:
    """It says where buffers lie, which a program from outside must not."""
    with pytest.raises(ProgramError, match="`python -m shlo_disc opt` takes it"):
        shlo_disc.compile(stage_text(many_kinds(), "plan"))


def test_a_plan_that_is_wrong_does_not_go_on() -> None:
    text, count = re.subn(r"disc.arenas = \[[^\]]*\]", "disc.arenas = [64]", stage_text(many_kinds(), "plan"))
    assert count == 1
    with pytest.raises(ProgramError, match="not what the stage plan prints: .* is not proved to fit"):
        compiled(text)


def test_attributes_of_later_stages_are_none_of_a_program() -> None:
    """A program from outside has no library functions of ours, for one."""
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.add %x, %x {disc.segment = 1 : i64} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    with pytest.raises(ProgramError, match="disc.segment stands on"):
        shlo_disc.compile(text)
    text = text.replace("{disc.segment = 1 : i64}", "").replace(
        "-> tensor<4xf32> {", '-> tensor<4xf32> attributes {disc.fusion = #disc.fusion<"loop", {}>} {'
    )
    with pytest.raises(ProgramError, match="disc.fusion is of the stage fuse, which has not run"):
        shlo_disc.compile(text)
