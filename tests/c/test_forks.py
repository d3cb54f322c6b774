# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Children of fork, while other threads of the process call programs."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp

import shlo_disc

from .building import build_c, run


def test_children_find_no_lock_of_a_thread_that_is_gone(tmp_path: Path) -> None:
    shlo_disc.compile(lambda x: jnp.sort(2 * x), args=(("n", "float32"),)).save(tmp_path / "sorted.disc")
    assert run(build_c("forks.c", tmp_path), tmp_path / "sorted.disc", 1000) == b"0\n"
