# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that several tests of the backend serve."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import shlo_disc

Save = Callable[..., Path]


def attend(x: Any, mask: Any) -> dict[str, Any]:
    """Weights and sums of rows, of f32[b, s] and f32[b, s]."""
    return {"weights": jax.nn.softmax(x + mask, axis=-1), "sums": x.sum(-1), "twice": jnp.concatenate([x, x], axis=1)}


ATTEND_OUTPUTS = ("result['weights']", "result['sums']", "result['twice']")


@pytest.fixture(scope="module")
def save(tmp_path_factory: pytest.TempPathFactory) -> Save:
    """A function that compiles a program, and writes it to a model's folder, which it returns."""

    def saved(program: Any, *args: Any, file: str = "model.disc", **keywords: Any) -> Path:
        folder = tmp_path_factory.mktemp("model")
        (folder / "1").mkdir()
        shlo_disc.compile(program, args=args or None, **keywords).save(folder / "1" / file)
        return folder

    return saved


@pytest.fixture(scope="module")
def attending(save: Save) -> Path:
    """The folder of `attend`, with at most 512 columns and 16 rows."""
    return save(attend, ("b, s", "float32"), ("b, s", "float32"), constraints=["s <= 512", "b <= 16"])
