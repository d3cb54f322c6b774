# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A recurrent network trained with Equinox and Optax on batches of changing sizes.

`pip install -e '.[examples]'` in the clone; `JAX_PLATFORMS=shlo_disc,cpu python -m examples.train_equinox --check`.
The network learns the stride of each sequence. A function of NumPy counts what it gets right (`jax.pure_callback`),
`io_callback` writes that down, and half way the model goes through a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.experimental import io_callback

from examples.training import VOCABULARY, main, sequences

CLASSES = 5


class Recurrent(eqx.Module):
    """A GRU over the tokens of a sequence, and a layer on its last state."""

    embedding: eqx.nn.Embedding
    cell: eqx.nn.GRUCell
    head: eqx.nn.Linear

    def __init__(self, key: jax.Array, width: int = 56):
        keys = jax.random.split(key, 3)
        self.embedding = eqx.nn.Embedding(VOCABULARY, width, key=keys[0])
        self.cell = eqx.nn.GRUCell(width, width, key=keys[1])
        self.head = eqx.nn.Linear(width, CLASSES, key=keys[2])

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """tokens: [s] i32; returns logits [CLASSES]."""
        rows = jax.vmap(self.embedding)(tokens)
        state, _ = jax.lax.scan(lambda h, row: (self.cell(row, h), None), jnp.zeros(self.cell.hidden_size), rows)
        return self.head(state)


OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))


@eqx.filter_jit(donate="all")
def train_step(model: Recurrent, state: Any, tokens: jax.Array, labels: jax.Array) -> tuple[Recurrent, Any, jax.Array]:
    """One step of the optimizer, and the loss before it."""

    def loss(model: Recurrent) -> tuple[jax.Array, jax.Array]:
        logits = jax.vmap(model)(tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), logits

    (value, logits), gradients = eqx.filter_value_and_grad(loss, has_aux=True)(model)
    right = jax.pure_callback(_right, jax.ShapeDtypeStruct(labels.shape, jnp.bool_), logits, labels)
    io_callback(RIGHT.append, None, right.mean(), ordered=True)
    updates, state = OPTIMIZER.update(gradients, state)
    return eqx.apply_updates(model, updates), state, value


RIGHT: list[Any] = []
"""The part of each batch that the network had right."""


def _right(logits: Any, labels: Any) -> np.ndarray:
    return np.asarray(np.argmax(logits, axis=-1) == labels)


@eqx.filter_jit
def make_model(key: jax.Array) -> tuple[Recurrent, Any]:
    """A new model and the state of its optimizer."""
    model = Recurrent(key)
    return model, OPTIMIZER.init(eqx.filter(model, eqx.is_array))


def train(steps: int, directory: Path) -> list[float]:
    """Train on the default device; half way model and state are written down, and read again into others."""
    RIGHT.clear()
    (model, state), losses = make_model(jax.random.key(0)), []
    for number, tokens in enumerate(sequences(steps)):
        if number == steps // 2:
            eqx.tree_serialise_leaves(directory / "model.eqx", (model, state))
            model, state = eqx.tree_deserialise_leaves(directory / "model.eqx", make_model(jax.random.key(1)))
        labels = (tokens[:, 1] - tokens[:, 0]) % VOCABULARY
        model, state, loss = train_step(model, state, jnp.asarray(tokens), jnp.asarray(labels))
        losses.append(float(loss))
    jax.effects_barrier()
    assert len(RIGHT) == steps
    return losses


if __name__ == "__main__":
    main(train)
