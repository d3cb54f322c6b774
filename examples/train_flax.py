# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A causal transformer trained with Flax and Optax on batches of changing sizes, under plain `jax.jit`.

`pip install -e '.[examples]'` in the clone; `JAX_PLATFORMS=shlo_disc,cpu python -m examples.train_flax --check`.
Dropout draws from `jax.random`, the state is donated, a callback reports the norm of the gradients, and half way the
state goes through a checkpoint of Orbax.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint as ocp
from flax.training.train_state import TrainState

from examples.training import VOCABULARY, main, sequences


class Block(nn.Module):
    """Attention and a perceptron, each behind a normalisation and added to its input."""

    width: int
    heads: int

    @nn.compact
    def __call__(self, x: jax.Array, mask: jax.Array, is_training: bool) -> jax.Array:
        """x: [b, s, width]; mask: [b, 1, s, s]."""
        attention = nn.MultiHeadDotProductAttention(self.heads, dropout_rate=0.1, deterministic=not is_training)
        x = x + attention(nn.LayerNorm()(x), mask=mask)
        hidden = nn.gelu(nn.Dense(4 * self.width)(nn.LayerNorm()(x)))
        return x + nn.Dropout(0.1, deterministic=not is_training)(nn.Dense(self.width)(hidden))


class Transformer(nn.Module):
    """Predicts the next token of each prefix."""

    width: int = 72
    heads: int = 4
    layers: int = 1
    max_length: int = 128

    @nn.compact
    def __call__(self, tokens: jax.Array, is_training: bool) -> jax.Array:
        """tokens: [b, s] i32; returns logits [b, s, VOCABULARY]."""
        positions = nn.Embed(self.max_length, self.width)(jnp.arange(tokens.shape[1]))
        x = nn.Embed(VOCABULARY, self.width)(tokens) + positions
        mask = nn.make_causal_mask(tokens)
        for _ in range(self.layers):
            x = Block(self.width, self.heads)(x, mask, is_training)
        return nn.Dense(VOCABULARY)(nn.LayerNorm()(x))


@partial(jax.jit, donate_argnums=0)
def train_step(state: TrainState, tokens: jax.Array, key: jax.Array) -> tuple[TrainState, jax.Array]:
    """One step of the optimizer, and the loss before it."""

    def loss(params: Any) -> jax.Array:
        dropout = {"dropout": jax.random.fold_in(key, state.step)}
        logits = state.apply_fn({"params": params}, tokens[:, :-1], True, rngs=dropout)
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    value, gradients = jax.value_and_grad(loss)(state.params)
    jax.debug.callback(_report, optax.global_norm(gradients))
    return state.apply_gradients(grads=gradients), value


def _report(norm: Any) -> None:
    if not norm < 1e3:
        raise ArithmeticError(f"the gradients have the norm {norm}")


def make_state(steps: int) -> TrainState:
    """A new model and its optimizer."""
    model = Transformer()
    schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-3, max(1, steps // 10), steps)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))

    @jax.jit
    def start(key: jax.Array) -> TrainState:
        params = model.init(key, jnp.zeros((1, 8), jnp.int32), False)["params"]
        return TrainState.create(apply_fn=model.apply, params=params, tx=optimizer)

    return start(jax.random.key(0))


def train(steps: int, directory: Path) -> list[float]:
    """Train on the default device; half way the state is written down, and read again into another one."""
    state, losses, key = make_state(steps), [], jax.random.key(1)
    for number, tokens in enumerate(sequences(steps)):
        if number == steps // 2:
            with ocp.StandardCheckpointer() as checkpointer:
                checkpointer.save(directory.resolve() / "state", state)
                checkpointer.wait_until_finished()
                state = checkpointer.restore(directory.resolve() / "state", make_state(steps))
        state, loss = train_step(state, tokens, key)
        losses.append(float(loss))
    return losses


if __name__ == "__main__":
    main(train)
