# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""BERT from a file: Python with everything installed, Python with NumPy alone, and C give the same bits."""

from __future__ import annotations

import pickle
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import shlo_disc
from examples import bert

from . import bare
from .building import build_c, run, scipy_blas

SCRIPT = """
import pickle, sys
import numpy as np
import shlo_disc
path, arguments, out = sys.argv[1:]
program = shlo_disc.load(path, trust=True)
assert not {"jax", "scipy", "torch_mlir", "llvmlite", "ml_dtypes"} & set(sys.modules)
with open(arguments, "rb") as file:
    args = pickle.load(file)
np.save(out, program(*args))
"""
"""In the bare environment."""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bare.make(tmp_path_factory.mktemp("bare"))


def stream(leaves: Sequence[np.ndarray]) -> bytes:
    """Arguments as `leaves.c` reads them."""
    return b"".join(np.array(leaf.shape, np.int64).tobytes() + np.ascontiguousarray(leaf).tobytes() for leaf in leaves)


@pytest.mark.parametrize("config", [bert.SMALL, pytest.param(bert.BASE, marks=pytest.mark.slow)], ids=["small", "base"])
def test_python_and_c_agree_in_every_bit(config: Any, python: Path, tmp_path: Path) -> None:
    executable = shlo_disc.compile(bert.export(config))
    path, params = tmp_path / "bert.disc", bert.init(config)
    executable.save(path)
    binary = build_c("leaves.c", tmp_path)
    for b, s in ((1, 1), (2, 7), (3, 41)):
        args = jax.tree.map(np.array, (params, *bert.make_inputs(config, b, s)))  # new ones: not packed, as in C
        leaves = jax.tree.leaves(args)
        wanted = np.asarray(executable(*args))
        found = run(binary, path, scipy_blas(), 1, data=stream(leaves))
        assert found == wanted.tobytes(), (b, s)
        (tmp_path / "arguments").write_bytes(pickle.dumps(args))
        command: list[Any] = [python, "-I", "-c", SCRIPT, path, tmp_path / "arguments", tmp_path / "out.npy"]
        subprocess.run(command, check=True)
        without = np.load(tmp_path / "out.npy")
        assert run(binary, path, "-", 1, data=stream(leaves)) == without.tobytes(), (b, s)
        np.testing.assert_allclose(without, wanted, rtol=1e-4, atol=1e-5)
