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
from shlo_disc.runtime import Artifact

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
    with pytest.raises(ArtifactError, match="truncated"):
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
