# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`Options(isolate=True)`: what ends the compiler is an error of a compile, and of nothing else."""

from __future__ import annotations

import importlib
import json
import logging
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import shlo_disc
from shlo_disc.driver.isolated import client
from shlo_disc.driver.isolated.messages import program_message, read_program_message
from shlo_disc.errors import CompilerError, OptionError, ProgramError, ShapeError, UnsupportedError
from shlo_disc.importer.programs import DescribedProgram
from shlo_disc.options import KernelSchedule, Schedule
from shlo_disc.tools.cli import main
from tests.run.bad_programs import ADD
from tests.run.call_programs import steps

HERE = shlo_disc.Options(opt_level=0)
APART = replace(HERE, isolate=True)
Pair = namedtuple("Pair", "first second")


def layer(x: Any, pair: Any) -> Any:
    return {"y": jnp.tanh(x @ pair.first) + pair.second, "sum": x.sum()}


ARGUMENTS: Any = (("n, 8", "float32"), Pair(("8, 8", "float32"), ("8", "float32")))


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    client.close_processes()
    monkeypatch.setattr(client, "WORKER", "tests.run.faults.aborting_fusions")
    yield
    client.close_processes()


def named(name: str) -> str:
    return (
        f"module @{name} {{\n  func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {{\n"
        "    %0 = stablehlo.exponential %x : tensor<?xf32>\n    return %0 : tensor<?xf32>\n  }\n}\n"
    )


def same_apart(program: Any, *arguments: Any, **chosen: Any) -> Any:
    """An isolated executable that is the same, to the byte, as one that is compiled here."""
    here = shlo_disc.compile(program, options=HERE, **chosen)
    apart = shlo_disc.compile(program, options=APART, **chosen)
    assert apart.artifact.serialize() == here.artifact.serialize()
    for ours, theirs in zip(*(jax.tree.leaves(e(*arguments)) for e in (apart, here)), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    return apart


def test_functions_of_jax_with_trees_and_constraints() -> None:
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(shape, dtype=np.float32) for shape in ((3, 8), (8, 8), (8,)))
    apart = same_apart(layer, x, Pair(w, b), args=ARGUMENTS, constraints=["n <= 64"])
    assert apart(x, Pair(w, b))["y"].shape == (3, 8)
    assert apart.compile_count == 1 and list(apart.timings)[0] == "import" and "codegen" in apart.timings
    assert str(apart.signature).startswith("layer(args[0]: f32[n, 8], args[1].first: f32[8, 8]")
    assert "disc.symbol" in apart.as_text("annotate") and "define" in apart.as_text("llvm")
    assert [k.kind for k in apart.kernels] and "n" in apart.peak_memory_formula
    with pytest.raises(ShapeError, match=r"n <= 64|n<=64"):
        apart(np.zeros((65, 8), np.float32), Pair(w, b))


@pytest.mark.slow
def test_text_exports_and_several_platforms(tmp_path: Path) -> None:
    same_apart(ADD, steps(3), steps(3))
    path = tmp_path / "add.mlir"
    path.write_text(ADD)
    same_apart(path, steps(3), steps(3))
    exported = export.export(jax.jit(lambda x: jnp.sort(x) * 2), platforms=["cpu", "cuda"])(
        jax.ShapeDtypeStruct(export.symbolic_shape("n"), jnp.float32)
    )
    same_apart(exported, steps(5))
    same_apart(bytes(exported.serialize()), steps(5))


class Node:
    """A pytree that JSON cannot name."""

    def __init__(self, x: Any):
        self.x = x


jax.tree_util.register_pytree_node(Node, lambda node: ((node.x,), None), lambda _, children: Node(*children))


@pytest.mark.slow
def test_nodes_of_users() -> None:
    apart = shlo_disc.compile(lambda node: Node(node.x + 1), args=(Node(("n", "float32")),), options=APART)
    assert isinstance(apart(Node(steps(3))), Node)


@pytest.mark.slow
def test_sizes_that_are_data() -> None:
    from shlo_disc import numpy as snp

    same_apart(lambda x: x[snp.nonzero(x > 1)[0]], steps(5), args=(("n", "float32"),))


def test_errors_are_those_of_a_compile_here() -> None:
    for bad, kind in (("nothing", ProgramError), (ADD.replace("stablehlo.add", "stablehlo.infeed"), Exception)):
        with pytest.raises(kind) as here:
            shlo_disc.compile(bad, options=HERE)
        with pytest.raises(kind) as apart:
            shlo_disc.compile(bad, options=APART)
        assert (type(apart.value), str(apart.value)) == (type(here.value), str(here.value))


def test_unsupported_constructs_come_back() -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @nowhere(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
    with pytest.raises(UnsupportedError) as here:
        shlo_disc.compile(text, options=HERE)
    with pytest.raises(UnsupportedError) as apart:
        shlo_disc.compile(text, options=APART)
    assert apart.value.constructs == here.value.constructs and str(apart.value) == str(here.value)


@pytest.mark.usefixtures("faulty")
def test_an_abort_is_an_error_with_a_reproducer(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CompilerError) as caught:
        shlo_disc.compile(named("aborts"), options=APART)
    first, last = caught.value.message.splitlines()
    assert first == "the process that compiles ended with SIGABRT: LLVM ERROR: Cannot select 0x1234"
    command = shlex.split(last.removeprefix("To see it again: "))
    assert Path(command[4]).read_text() == named("aborts")
    assert main(command[3:]) == 0 and "llvm.func" in capsys.readouterr().out  # where no fault is planted
    well = shlo_disc.compile(named("is_well"), options=APART)
    np.testing.assert_allclose(well(steps(2)), np.exp(steps(2)), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("faulty")
def test_limits_and_other_faults(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(CompilerError, match=r"more than 1.5 s; Options\(compile_seconds=...\) allows more\nTo see it"):
        shlo_disc.compile(named("sleeps"), options=replace(APART, compile_seconds=1.5))
    with pytest.raises(CompilerError, match=r"more than 1024 MiB of memory; Options\(compile_bytes=...\) allows more"):
        shlo_disc.compile(named("takes_memory"), options=replace(APART, compile_bytes=1 << 30))
    with pytest.raises(CompilerError, match="the stage fuse failed: KeyError: 'tile'\nTo see it again: python"):
        shlo_disc.compile(named("fails"), options=replace(APART, strict=True))
    with caplog.at_level(logging.WARNING, "shlo_disc"):
        shlo_disc.compile(named("warns"), options=APART)
    assert "something was left out" in caplog.messages


@pytest.mark.slow
def test_many_threads_and_an_end_between_two_compiles() -> None:
    client.close_processes()
    found: list[Any] = []

    def work(number: int) -> None:
        program = named(f"program_{number}") if number % 2 else "nothing"
        try:
            found.append(shlo_disc.compile(program, options=APART)(steps(2)).tolist())
        except ProgramError as error:
            found.append(str(error))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({str(f) for f in found}) == 2 and len(found) == 4
    assert 1 <= len(client._idle) <= (os.cpu_count() or 1)
    for child in client._idle:
        assert child._process.is_started
        os.kill(child._process.pid, signal.SIGKILL)
        child._process.wait()
    shlo_disc.compile(named("after"), options=APART)


def test_programs_pass_as_data() -> None:
    """The program that is read is the one that was sent; nothing is made of it but data."""
    read = importlib.import_module("shlo_disc.importer.program").read(layer, ARGUMENTS)
    said, data = program_message(read, "cpu")
    again = read_program_message(json.loads(json.dumps(said)), data)
    assert isinstance(again, DescribedProgram)
    described = importlib.import_module("shlo_disc.importer.import_program").describe(read, ("cpu",))
    assert again.data == described.data and again.hidden == described.hidden
    assert replace(again.signature, in_tree=None, out_tree=None) == replace(
        described.signature, in_tree=None, out_tree=None
    )


def test_options_pass_as_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHLO_DISC_STRICT", "0")
    options = shlo_disc.Options(hints={"n": 5}, schedule=Schedule({"k": KernelSchedule(2)}), isolate=True)
    again = shlo_disc.Options.from_json(json.loads(json.dumps(options.to_json())))
    assert (again.hints, again.schedule, again.isolate, again.strict) == ({"n": 5}, options.schedule, True, False)
    with pytest.raises(OptionError, match="these are no options"):
        shlo_disc.Options.from_json({"threads": 1})


def test_options_that_do_not_fit() -> None:
    with pytest.raises(OptionError, match="compile_seconds and compile_bytes are limits of a process"):
        shlo_disc.Options(compile_seconds=1)
    for wrong in (0, -1.0, True, "1"):
        with pytest.raises(OptionError, match="compile_seconds must be a positive number or None"):
            shlo_disc.Options(isolate=True, compile_seconds=wrong)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="compile_bytes must be an integer of at least 1 or None"):
        shlo_disc.Options(isolate=True, compile_bytes=0)


@pytest.mark.slow
def test_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "exp.mlir"
    path.write_text(named("exp"))
    words = [sys.executable, "-m", "shlo_disc", "run", str(path), "--dims", "arg0_d0=2", "--isolate"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0 and "result: float32[2]" in done.stdout, done.stderr
    done = subprocess.run([*words, "--compile-seconds", "0.001"], capture_output=True, text=True)
    assert done.returncode == 1 and "compiling takes more than 0.001 s" in done.stderr
