# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes with a cache directory each, as machines have, and one store: programs are compiled on one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shlo_disc.runtime.cpu_features import host_level

ROOT = Path(__file__).resolve().parents[2]

FUNCTION = """
import sys
import jax, jax.numpy as jnp, numpy as np
import shlo_disc
def f(x, w):
    return jnp.tanh(x @ w)
executable = shlo_disc.compile(f, args=(("b, 6", "float32"), ("6, 9", "float32")))
for b in (1, 3, 8, 17):
    x, w = np.full((b, 6), 0.1, np.float32), np.ones((6, 9), np.float32)
    np.testing.assert_allclose(executable(x, w), jax.jit(f)(x, w), rtol=1e-6)
from shlo_disc.driver.cache.shared import flush_stores
flush_stores()
counts = shlo_disc.cache_stats()
print(executable.compile_count, "llvmlite" in sys.modules, counts["hits"], counts["refused"], counts["failed"])
"""

PLUGIN = """
import jax, jax.numpy as jnp, numpy as np
import shlo_disc
f = jax.jit(lambda x: jnp.tanh(x) @ x.T)
for b in (3, 5, 8):
    x = np.full((b, 6), 0.1, np.float32)
    np.testing.assert_allclose(f(x), np.tanh(x) @ x.T, rtol=1e-5)
from shlo_disc.driver.cache.shared import flush_stores
flush_stores()
counts = shlo_disc.cache_stats()
print(counts["hits"], counts["misses"], counts["refused"], counts["failed"])
"""


class Fleet:
    """Machines in folders of `path`, with a key and a store."""

    def __init__(self, path: Path):
        self.path, self.store = path, path / "store"
        (path / "key").write_bytes(os.urandom(32))
        (path / "key").chmod(0o400)

    def run(self, machine: str, source: str = FUNCTION, **variables: str) -> tuple[list[str], str]:
        """The words that a process on a machine prints, and its errors. The program's path differs on each."""
        home = self.path / machine
        home.mkdir(exist_ok=True)
        script = home / f"{machine}_program.py"
        script.write_text(source)
        named = {name: value for name, value in os.environ.items() if not name.startswith("SHLO_DISC_")}
        stated = {"SHLO_DISC_CACHE_STORE": str(self.store), "SHLO_DISC_CACHE_KEY_FILE": str(self.path / "key")}
        environment = named | stated | {"XDG_CACHE_HOME": str(home), "PYTHONPATH": str(ROOT)} | variables
        command = [sys.executable, str(script)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, cwd=home)
        assert done.returncode == 0, done.stderr
        return done.stdout.split(), done.stderr

    def entries(self, kind: str) -> list[Path]:
        return sorted(self.store.glob(f"*{kind}"))


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def test_a_second_machine_compiles_nothing(fleet: Fleet) -> None:
    assert fleet.run("first")[0] == ["1", "True", "0", "0", "0"]
    (program,) = fleet.entries(".shlodisc")
    assert fleet.entries(".o")
    assert fleet.run("second") == (["0", "False", "1", "0", "0"], "")
    assert fleet.run("second")[0] == ["0", "False", "0", "0", "0"]  # from its own directory


@pytest.mark.slow
def test_a_changed_program_is_compiled_again(fleet: Fleet) -> None:
    fleet.run("first")
    (program,) = fleet.entries(".shlodisc")
    whole = program.read_bytes()
    program.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    words, errors = fleet.run("third")
    assert words[0] == "1" and words[3:] == ["1", "0"]
    assert errors.count("is refused") == 1 and program.name in errors
    assert fleet.run("fourth")[0] == ["0", "False", "1", "0", "0"]  # the third has replaced it


@pytest.mark.slow
def test_machines_with_other_keys_or_levels_share_nothing(fleet: Fleet) -> None:
    if host_level() == "x86-64-v3":
        pytest.skip("this processor has one level only")
    assert fleet.run("first", SHLO_DISC_CPU="x86-64-v4")[0][0] == "1"
    assert fleet.run("second", SHLO_DISC_CPU="x86-64-v3")[0] == ["1", "True", "0", "0", "0"]
    assert fleet.run("third", SHLO_DISC_CPU="x86-64-v3")[0][:3] == ["0", "False", "1"]
    key = fleet.path / "key"
    key.unlink()
    key.write_bytes(os.urandom(32))
    key.chmod(0o400)
    words, errors = fleet.run("fourth", SHLO_DISC_CPU="x86-64-v3")
    assert words[0] == "1" and int(words[3]) >= 1 and "is refused" in errors


def test_a_store_that_is_down_costs_a_warning(fleet: Fleet) -> None:
    words, errors = fleet.run("first", SHLO_DISC_CACHE_STORE=str(fleet.path / "unmounted" / "store"))
    assert words[0] == "1" and errors.count("cannot be used") == 1


@pytest.mark.slow
def test_the_plugin_shares_programs(fleet: Fleet) -> None:
    """Programs are found though their source lies in another folder."""
    plugin = {"JAX_PLATFORMS": "shlo_disc,cpu"}
    assert fleet.run("first", PLUGIN, **plugin)[0][0] == "0"
    words = fleet.run("second", PLUGIN, **plugin)[0]
    assert int(words[0]) >= 2 and words[1:] == ["0", "0", "0"]
