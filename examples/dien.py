# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A recommender after DIEN (Zhou et al., 2019): how likely is a user with this history to click on the target item?

A GRU runs over the history; attention between its states and the target scales the update gate of a second one, the
AUGRU, whose last state goes into the predictor. Both are scans over the symbolic length t; rows shorter than t stop at
their own length.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from examples.layers import Initializer, Params, dense, init_mlp, mlp
from examples.model import export_function, symbolic_sizes

DIMS = "b, t"


@dataclass(frozen=True)
class Config:
    """Sizes of the model. `max_length` is the longest history to try; the program takes any."""

    items: int
    categories: int
    width: int
    hidden: int
    max_length: int


BASE = Config(items=20000, categories=500, width=18, hidden=200, max_length=100)
SMALL = Config(items=101, categories=7, width=4, hidden=16, max_length=20)


def init(config: Config, seed: int | None = 0) -> Params:
    """Random weights from `seed`; an item and its category make a vector of 2 * width numbers."""
    draw = Initializer(seed)
    vector = 2 * config.width
    return {
        "item": draw.normal(config.items, config.width, scale=0.5),
        "category": draw.normal(config.categories, config.width, scale=0.5),
        "interest": _init_gru(draw, vector),
        "attention": draw.dense(vector, vector, bias=False),
        "evolution": _init_gru(draw, vector),
        "predictor": init_mlp(draw, 3 * vector, config.hidden) | {"down": draw.dense(config.hidden, 1)},
    }


def _init_gru(draw: Initializer, width: int) -> Params:
    return {"input": draw.dense(width, 3 * width), "state": draw.dense(width, 3 * width, bias=False)}


def gru_step(params: Params, state: jax.Array, inputs: jax.Array, attention: jax.Array | None = None) -> jax.Array:
    """The next state [b, d] from `inputs` [b, 3*d]; `attention` [b, 1] scales the update gate."""
    from_input, from_state = jnp.split(inputs, 3, axis=-1), jnp.split(dense(params["state"], state), 3, axis=-1)
    update = jax.nn.sigmoid(from_input[0] + from_state[0])
    reset = jax.nn.sigmoid(from_input[1] + from_state[1])
    candidate = jnp.tanh(from_input[2] + reset * from_state[2])
    if attention is not None:
        update = update * attention
    return (1.0 - update) * state + update * candidate


def embed(params: Params, items: jax.Array, categories: jax.Array) -> jax.Array:
    """Items and their categories, of any shape, as vectors along a new last axis."""
    return jnp.concatenate([params["item"][items], params["category"][categories]], axis=-1)


def interests(params: Params, history: jax.Array, mask: jax.Array) -> jax.Array:
    """The states [t, b, d] of the first GRU over a history [t, b, d]; `mask` [t, b, 1] says which steps are there."""

    def step(state: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        inputs, present = now
        state = jnp.where(present, gru_step(params, state, inputs), state)
        return state, state

    return jax.lax.scan(step, jnp.zeros_like(history[0]), (dense(params["input"], history), mask))[1]


def evolution(params: Params, states: jax.Array, weights: jax.Array) -> jax.Array:
    """The last state [b, d] of the AUGRU over `states` [t, b, d] with attention `weights` [t, b, 1]."""

    def step(state: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        inputs, weight = now
        return gru_step(params, state, inputs, weight), None

    return jax.lax.scan(step, jnp.zeros_like(states[0]), (dense(params["input"], states), weights))[0]


def logits(
    params: Params, items: jax.Array, categories: jax.Array, lengths: jax.Array, item: jax.Array, category: jax.Array
) -> jax.Array:
    """The log-odds [b] of a click on `item` [b] after the history [b, t], of which the first `lengths` [b] count."""
    target = embed(params, item, category)
    history = embed(params, items, categories).transpose(1, 0, 2)
    mask = (jnp.arange(items.shape[1])[:, None] < lengths[None, :])[..., None]
    states = interests(params["interest"], history, mask)
    scores = jnp.einsum("tbd,bd->tb", states, dense(params["attention"], target))[..., None]
    weights = jax.nn.softmax(jnp.where(mask, scores, np.float32(-1e9)), axis=0) * mask
    last = evolution(params["evolution"], states, weights)
    features = jnp.concatenate([last, target, jnp.sum(states * mask, axis=0)], axis=-1)
    return mlp(params["predictor"], features, jax.nn.relu)[:, 0]


def forward(params: Params, *inputs: jax.Array, config: Config) -> jax.Array:
    """The probability [b] of a click; the inputs are those of `make_inputs`."""
    return jax.nn.sigmoid(logits(params, *inputs))


def make_inputs(config: Config, b: int, t: int, *, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Random int32 items and categories [b, t], lengths of 1 to t [b], and a target item and category [b]."""
    random = np.random.default_rng(seed)

    def draw(least: int, most: int, *shape: int) -> np.ndarray:
        return random.integers(least, most, shape, dtype=np.int32)

    history = draw(0, config.items, b, t), draw(0, config.categories, b, t)
    return *history, draw(1, t + 1, b), draw(0, config.items, b), draw(0, config.categories, b)


def limits(config: Config) -> tuple[int, int]:
    """The largest b and t to try."""
    return 24, config.max_length


def input_specs(dims: str) -> list[jax.ShapeDtypeStruct]:
    """The inputs for symbolic (b, t), or for fixed sizes."""
    b, t = symbolic_sizes(dims)
    return [jax.ShapeDtypeStruct(shape, jnp.int32) for shape in ((b, t), (b, t), (b,), (b,), (b,))]


def export(config: Config, dims: str = DIMS) -> jax.export.Exported:
    """The program for symbolic (b, t), or for fixed sizes such as dims="2, 7"."""
    return export_function(functools.partial(forward, config=config), init(config, None), input_specs(dims))
