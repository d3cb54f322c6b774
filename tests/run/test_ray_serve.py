# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example of replicas of Ray Serve: one of them compiles."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray.serve", reason="pip install 'ray[serve]'", exc_type=ImportError)

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_one_replica_compiles(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o400)
    stated = {"SHLO_DISC_CACHE_STORE": str(tmp_path / "store"), "SHLO_DISC_CACHE_KEY_FILE": str(key)}
    environment = (
        os.environ | stated | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "RAY_USAGE_STATS_ENABLED": "0"}
    )
    command = [sys.executable, "-m", "examples.ray.serve"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    one, several = (line for line in done.stdout.splitlines() if "replicas; compiled" in line)
    assert one.endswith("[(1, 0)]")
    assert several.startswith("3 ") and several.count("(0, 1)") >= 1 and several.count("(1, ") <= 1
