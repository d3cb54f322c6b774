# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled programs in files: written whole or not at all, read without the compiler, and refused when damaged."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ArtifactError
from shlo_disc.runtime import Artifact, Client

TABLE = np.arange(4096, dtype=np.float32)


def score(x: jax.Array) -> dict[str, jax.Array]:
    return {"scores": jax.nn.softmax(x @ jnp.ones((8, 4))), "table": TABLE[: x.shape[1]] + x}


@pytest.fixture(scope="module")
def executable() -> shlo_disc.Executable:
    made: shlo_disc.Executable = shlo_disc.compile(score, args=(("b, 8", "float32"),))
    return made


@pytest.fixture
def saved(executable: shlo_disc.Executable, tmp_path: Path) -> Path:
    path = tmp_path / "score.shlodisc"
    executable.save(path)
    return path


def test_what_is_saved_is_loaded(executable: shlo_disc.Executable, saved: Path) -> None:
    program = shlo_disc.load(saved, trust=True)
    for b in (1, 7, 64):
        x = np.random.default_rng(b).standard_normal((b, 8)).astype(np.float32)
        found, wanted = program(x), executable(x)
        assert list(found) == ["scores", "table"]
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array)


def test_neither_jax_nor_mlir_is_needed(saved: Path) -> None:
    script = f"""
import sys
sys.modules.update(dict.fromkeys(["jax", "jaxlib", "torch_mlir", "llvmlite", "scipy", "torch"]))
import numpy as np
import shlo_disc
print(shlo_disc.load({str(saved)!r}, trust=True)(np.zeros((3, 8), np.float32))["scores"].sum())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "3.0\n"), done.stderr


def test_two_saves_write_the_same_bytes(executable: shlo_disc.Executable, saved: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    executable.save(str(other))
    assert other.read_bytes() == saved.read_bytes() == executable.artifact.serialize()


def test_a_file_is_not_trusted_by_itself(saved: Path) -> None:
    with pytest.raises(ArtifactError, match="pass trust=True if you know who made it"):
        shlo_disc.load(saved)
    assert Artifact.open(saved).header["name"] == "score"


@pytest.mark.parametrize("cut", [0, 1, 40, -1])
def test_a_part_of_a_file_is_refused(saved: Path, cut: int) -> None:
    saved.write_bytes(saved.read_bytes()[:cut])
    with pytest.raises(ArtifactError, match="truncated|is empty"):
        shlo_disc.load(saved, trust=True)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        shlo_disc.load(tmp_path / "none")
    with pytest.raises(ArtifactError, match="not a shlo_disc artifact"):
        shlo_disc.load(__file__, trust=True)


def test_a_program_goes_on_when_its_file_is_written_anew(executable: shlo_disc.Executable, saved: Path) -> None:
    program, x = shlo_disc.load(saved, trust=True), np.ones((2, 8), np.float32)
    wanted = program(x)["table"]
    shlo_disc.compile(jnp.negative, args=(("n", "int32"),)).save(saved)
    np.testing.assert_array_equal(program(x)["table"], wanted)
    np.testing.assert_array_equal(shlo_disc.load(saved, trust=True)(np.arange(3, dtype=np.int32)), [0, -1, -2])
    saved.unlink()
    np.testing.assert_array_equal(program(x)["table"], wanted)


def test_a_failed_save_leaves_what_was_there(
    executable: shlo_disc.Executable, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        executable.save(saved)
    assert saved.read_bytes() == before and list(saved.parent.iterdir()) == [saved]


def test_who_may_read_a_file_is_as_for_others(executable: shlo_disc.Executable, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    executable.save(tmp_path / "saved")
    assert (tmp_path / "saved").stat().st_mode == plain.stat().st_mode


def test_a_copy_is_the_program_itself(executable: shlo_disc.Executable) -> None:
    assert copy.copy(executable) is executable and copy.deepcopy([executable])[0] is executable


def test_a_program_for_gpus_without_one(tmp_path: Path) -> None:
    shlo_disc.compile(jnp.negative, target="cuda:sm_90", args=(("n", "float32"),)).save(tmp_path / "gpu")
    with pytest.raises(ArtifactError, match="pass trust=True"):
        shlo_disc.load(tmp_path / "gpu")


# ---- constants as products read them ---------------------------------------------------------------------------------


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32) / 8


FIRST, SECOND, HALVES = weights(64, 40), weights(40, 48), weights(40, 64).astype(jnp.bfloat16)


def layers(w: jax.Array, x: jax.Array) -> tuple[jax.Array, ...]:
    """Weights that only products read, once or twice, one that other ops read, too, and one that is an argument."""
    y = jnp.tanh(x @ FIRST)
    return y @ SECOND + SECOND[0], (y.astype(jnp.bfloat16) @ HALVES).astype(jnp.float32) @ w, x @ FIRST


LAYERS = (weights(64, 32), ("b, 64", "float32"))
SIZES = (1, 2, 7, 64)


def same_as(wanted: shlo_disc.Executable, *programs: Any) -> None:
    """With the argument that is a weight given each time, and bound."""
    for b in SIZES:
        x = weights(b, 64)
        for program in programs:
            found = (*program(LAYERS[0], x), *program.bind(LAYERS[0])(x))
            for got, want in zip(found, (*wanted(LAYERS[0], x), *wanted.bind(LAYERS[0])(x)), strict=True):
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3", ("x86-64-v3", "x86-64-v4", "sapphirerapids")], ids=str)
def test_packed_constants(cpu: Any, tmp_path: Path) -> None:
    options = shlo_disc.Options(cpu=cpu)
    executable, path = shlo_disc.compile(layers, args=LAYERS, options=options), tmp_path / "packed.disc"
    executable.save(path, prepack=True)
    artifact = executable.artifact.prepacked()
    assert path.read_bytes() == artifact.serialize() == artifact.prepacked().serialize()
    for plain, level in zip(executable.artifact.levels(), artifact.levels(), strict=True):
        assert len(level.packed) >= 4 * (FIRST.size + SECOND.size) + 2 * HALVES.size
        assert len(level.constants) < len(plain.constants) - FIRST.nbytes
    same_as(executable, shlo_disc.load(path, trust=True))


@pytest.mark.parametrize("shift", [0, 1, 8])
def test_packed_constants_that_are_no_file(shift: int) -> None:
    """Bytes that lie anywhere, and memory between guard pages, where all is copied."""
    executable = shlo_disc.compile(layers, args=LAYERS)
    data = bytes(shift) + executable.artifact.prepacked().serialize()
    artifact = Artifact.deserialize(memoryview(data)[shift:], trust=True)
    same_as(executable, Client().load(artifact), Client(guard_pages=True).load(artifact))


def test_programs_without_packed_constants_are_left_as_they_are(executable: shlo_disc.Executable) -> None:
    assert executable.artifact.prepacked().serialize() == executable.artifact.serialize()


def test_packed_constants_that_do_not_fit() -> None:
    artifact = shlo_disc.compile(layers, args=LAYERS).artifact.prepacked()
    others = {"absent": b"", "short": bytes(artifact.packed)[:-64], "long": bytes(artifact.packed) + bytes(64)}
    for packed in others.values():
        wrong = Artifact(artifact.header, {**artifact.sections, "packed": packed})
        with pytest.raises(ArtifactError, match="the section of packed constants does not fit the program"):
            Client().load(wrong)
    huge = [{**row, "k": 1 << 40, "n": 1 << 40} for row in artifact.header["packs"]]
    for sizes in (huge, [{**row, "k": 1 << 30} for row in artifact.header["packs"]]):
        with pytest.raises(ArtifactError, match="a packed form reads beyond its array|does not fit the program"):
            Client().load(Artifact({**artifact.header, "packs": sizes}, artifact.sections))
    unsaid = {name: value for name, value in artifact.header.items() if name != "prepacked"}
    with pytest.raises(ArtifactError, match="a packed form reads beyond its array"):
        Client().load(Artifact(unsaid, artifact.sections))
