# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc replay` compiles and compares what SHLO_DISC_RECORD has written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .executable import run

SOURCE = """
import jax, jax.numpy as jnp, numpy as np
import shlo_disc

table = np.arange(300, dtype=np.float32)
step = jax.jit(lambda x, i: jnp.tanh(x) * jnp.asarray(table)[i] + x.sum())
for size in (3, 4, 5):
    step(np.ones(size, np.float32), np.int32(7))
for kind in ("uint32", "uint8", "int8", "bool", "complex64", "float16", "bfloat16", "float8_e5m2"):
    jax.jit(lambda x: x[::-1])(jnp.ones(3, kind))
jax.random.normal(jax.random.PRNGKey(0), (3,))
shlo_disc.compile(lambda x: jax.nn.softmax(x @ x.T), args=(("b, 8", "float32"),))
"""


@pytest.mark.slow
def test_what_was_recorded_is_replayed(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    environment = {**os.environ, "JAX_PLATFORMS": "shlo_disc,cpu", "SHLO_DISC_RECORD": str(folder)}
    subprocess.run([sys.executable, "-c", SOURCE], env=environment, check=True, timeout=300)
    status, out, err = run("replay", "--json", folder)
    rows = json.loads(out)["programs"]
    assert status == 0, (rows, err)
    hows = sorted(row["how"] for row in rows if row["name"].startswith("jit__lambda"))
    assert {row["outcome"] for row in rows} == {"right"} and {"compiled", "compiled_symbolic", "instance"} <= set(hows)


def test_a_folder_without_programs(tmp_path: Path) -> None:
    status, _, err = run("replay", tmp_path)
    assert status == 1 and "has no recorded programs" in err
