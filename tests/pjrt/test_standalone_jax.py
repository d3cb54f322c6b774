# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plugin without Python under a framework that was made for XLA's: JAX, which takes it as a platform of its own."""

from __future__ import annotations

from pathlib import Path

from tests.pjrt.plugin import run_python

SCRIPT = """
import sys
import jax, jax.numpy as jnp, numpy as np, shlo_disc
from jax._src import xla_bridge
from jax.sharding import Mesh, NamedSharding, PartitionSpec

options = {"device_count": 2, "compiler": sys.executable}
xla_bridge.register_plugin("alone", priority=500, library_path=shlo_disc.get_pjrt_plugin(), options=options)
assert [device.platform for device in jax.devices()] == ["shlo_disc"] * 2

def loss(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)

step, expected = jax.jit(jax.value_and_grad(loss)), jax.jit(jax.value_and_grad(loss), backend="cpu")
w = np.linspace(-1, 1, 4, dtype=np.float32)
for n in (1, 3, 5, 8, 64):
    x = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
    for found, wanted in zip(step(w, x), expected(w, x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)

sharding = NamedSharding(Mesh(np.array(jax.devices()), ("i",)), PartitionSpec("i"))
x = jax.device_put(np.arange(16, dtype=np.float32).reshape(8, 2), sharding)
np.testing.assert_array_equal(jax.jit(lambda x: (x * 2).sum(0))(x), [112, 128])

compiled = jax.jit(lambda x: x + 1).lower(np.ones(3, np.float32)).compile()
assert compiled.cost_analysis()["flops"] == 3
print("done")
"""


def test_jax_on_the_plugin_without_python(tmp_path: Path) -> None:
    """Shapes of a function, a program over two devices, whose shardings JAX sends as Shardy, and a count of flops."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = run_python("-W", "ignore", str(script), JAX_PLATFORMS="alone,cpu")
    assert done.stdout == "done\n", done.stderr[-4000:]


SMALL = """
import jax, jax.numpy as jnp, numpy as np, shlo_disc
from jax._src import xla_bridge

options = {"trusts_programs": 1, "interpreted_microseconds": 500, "compiler": "/there/is/none"}
xla_bridge.register_plugin("alone", priority=500, library_path=shlo_disc.get_pjrt_plugin(), options=options)
x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
np.testing.assert_allclose(jnp.sort(jnp.tanh(x @ x.T)), np.sort(np.tanh(x @ x.T)), rtol=1e-5)
try:
    jax.jit(lambda x: x @ x)(np.ones((500, 500), np.float32))
except jax.errors.JaxRuntimeError as error:
    print("compiler" in str(error))
"""


def test_small_programs_need_no_compiler(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SMALL)
    done = run_python("-W", "ignore", str(script), JAX_PLATFORMS="alone,cpu")
    assert done.stdout == "True\n", done.stderr[-4000:]
