# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replicas of Ray Serve that share compiled programs: `python -m examples.ray.serve` with `pip install 'ray[serve]'`.

SHLO_DISC_CACHE_STORE and SHLO_DISC_CACHE_KEY_FILE are set where Ray is started on each machine.
"""

from __future__ import annotations

import tempfile
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ray import serve

import shlo_disc


def model(weights: jax.Array, x: jax.Array) -> jax.Array:
    """Class probabilities, f32[b, 4], of a batch f32[b, 16]."""
    return jax.nn.softmax(jnp.tanh(x @ weights), axis=-1)


class Model:
    """A replica. Its directory stands for the disk of its machine: replicas have nothing but the store in common."""

    def __init__(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        options = shlo_disc.Options(cache_dir=self.directory.name)
        shapes = (("16, 4", "float32"), ("b, 16", "float32"))
        self.executable = shlo_disc.compile(model, args=shapes, options=options)
        self.bound = self.executable.bind(np.ones((16, 4), np.float32) / 16)

    def __call__(self, x: np.ndarray) -> dict[str, Any]:
        """The answer to a batch, and how many programs this replica has compiled for all sizes of batches."""
        y = np.asarray(self.bound(x))
        return {"y": y, "replica": id(self), "compiled": self.executable.compile_count, **shlo_disc.cache_stats()}


def main() -> None:
    """Start one replica, which compiles, then two more, which do not."""
    for replicas in (1, 3):
        deployment = serve.deployment(Model, name="model", num_replicas=replicas, ray_actor_options={"num_cpus": 0})
        handle = serve.run(deployment.bind())
        answers = [handle.remote(np.ones((b, 16), np.float32)) for b in range(1, 13)]
        found = {answer["replica"]: (answer["compiled"], answer["hits"]) for answer in (a.result() for a in answers)}
        print(replicas, "replicas; compiled and taken from the store by each:", sorted(found.values(), reverse=True))
    serve.shutdown()


if __name__ == "__main__":
    main()
