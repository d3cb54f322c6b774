# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmarks run: a small run from the command line, and PyTorch's models give JAX's numbers."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from benchmarks.backends import BACKENDS
from benchmarks.comparison.streams import STREAMS
from benchmarks.data import load
from benchmarks.works import all_works, find
from examples.model import relative_error


@pytest.mark.slow
def test_a_small_run_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    who = ["ours", "ours_static", "jit", "jit_buckets", "iree"]
    command = [sys.executable, "-m", "benchmarks", "increment", "--small", "--output", str(file), "--backends", *who]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    work = json.loads(file.read_text())["works"]["increment"]
    assert list(work["backends"]) == who
    absent = BACKENDS["iree"].missing()
    assert not absent or work["backends"]["iree"] == {"refused": f"{absent} is not installed"}
    for name in who[:4]:
        row = work["backends"][name]
        assert row["errors"] == [0.0] and row["warm_seconds"][0] > 0 and row["peak_bytes"] > 1 << 20
    assert "x + 1 on 8 floats" in done.stdout
    assert "<td" in file.with_suffix(".html").read_text()


def test_ours_on_pytorch_modules_from_the_command_line(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "out.json"
    who = ["jit", "ours_exported", "ours_backend"]
    works = ["increment", "softmax_gradient"]
    command = [sys.executable, "-m", "benchmarks", *works, "--small", "--output", str(file), "--backends", *who]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    plain, gradient = (json.loads(file.read_text())["works"][work]["backends"] for work in works)
    assert all(plain[name]["errors"] == [0.0] and plain[name]["compiles"] == 1 for name in who[1:])
    assert gradient["ours_exported"] == {"refused": "no gradients flow through an exported program"}
    assert max(gradient["ours_backend"]["errors"]) < 1e-5
    assert "### Compiles" in done.stdout


@pytest.mark.parametrize("name", ["dien", "seq2seq"])
def test_an_exported_model_gives_the_numbers_of_eager(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from benchmarks import torch_models
    from benchmarks.backends.ours_torch import Exported

    source = torch_models.find(name)
    if hasattr(source, "evolve"):
        monkeypatch.setattr(source, "evolve", source.evolve)  # which `prepare_export` replaces
    exported = Exported(find(name, small=True).write(tmp_path))
    exported.load()
    inputs = [exported.place(index) for index in range(len(exported.folder.shapes))]
    wanted = [exported.arrays(exported.model(*given)) for given in inputs]
    assert set(exported.prepare()) == {"export", "compile"}
    for given, want in zip(inputs, wanted, strict=True):
        got = exported.arrays(exported.call(given))
        assert jax.tree.structure(got) == jax.tree.structure(want)
        assert relative_error(got, want) < 1e-4
    assert exported.compiles() == 1


@pytest.mark.parametrize("name", [*all_works(), *STREAMS])
def test_a_pytorch_model_gives_the_numbers_of_jax(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from benchmarks.backends.pytorch import Eager

    work = find(name, small=True)
    eager = Eager(work.write(tmp_path))
    eager.load()
    eager.prepare()
    for index in range(len(work.shapes)):
        inputs = load(eager.folder.inputs(index))
        want: Any = jax.tree.map(np.asarray, jax.jit(work.function)(work.init(), *inputs))
        got = eager.arrays(eager.call(eager.place(index)))
        assert jax.tree.structure(got) == jax.tree.structure(want)
        assert relative_error(got, want) < 1e-4


@pytest.mark.slow
def test_a_small_comparison_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    who = ["ours", "ours_plugin", "jit", "jit_buckets", "iree"]
    arguments = ["mlp", "--small", "--rounds", "1", "--output", str(file), "--backends", *who]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.comparison", *arguments], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    absent = BACKENDS["iree"].missing()
    assert not absent or f"IREE is left out: {absent} is not installed" in done.stdout
    rows = json.loads(file.read_text())["mlp"]["backends"]
    assert [rows[name]["compiles"] for name in who[:4]] == [1, 2, 3, 3]
    assert max(rows[name]["error"] for name in who[:4]) < 1e-5


@pytest.mark.slow
def test_narrow_elements_from_the_command_line() -> None:
    command = [sys.executable, "-m", "benchmarks.narrow", "--small"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "geometric means: jit bf16 " in done.stdout


@pytest.mark.slow
def test_narrow_weights_from_the_command_line() -> None:
    command = [sys.executable, "-m", "benchmarks.narrow_weights", "--small"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "int4.T groups" in done.stdout and "(256, 96, 64)" in done.stdout


@pytest.mark.slow
def test_narrow_forms_from_the_command_line() -> None:
    command = [sys.executable, "-m", "benchmarks.narrow_forms", "--small", "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "NF4" in done.stdout and "pairs of columns" in done.stdout
