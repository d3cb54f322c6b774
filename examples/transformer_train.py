# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One training step's loss and gradients of a two-layer causal transformer, for any batch and sequence length."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from examples.layers import Initializer, Params, attention, causal_bias, dense, gelu_tanh, init_mlp, layer_norm, mlp
from examples.model import export_function, symbolic_sizes

DIMS = "b, s"


@dataclass(frozen=True)
class Config:
    """Sizes of the transformer. `max_length` bounds the symbol s."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    max_length: int
    epsilon: float = 1e-5


BASE = Config(layers=2, width=256, heads=4, vocabulary=8192, max_length=256)
SMALL = Config(layers=2, width=32, heads=2, vocabulary=61, max_length=24)


def init(config: Config, seed: int | None = 0) -> Params:
    """Random weights from `seed`; 6 million numbers for BASE."""
    draw = Initializer(seed)
    return {
        "token": draw.normal(config.vocabulary, config.width),
        "position": draw.normal(config.max_length, config.width),
        "layers": [_init_layer(draw, config.width) for _ in range(config.layers)],
        "norm": draw.norm(config.width),
        "head": draw.dense(config.width, config.vocabulary),
    }


def _init_layer(draw: Initializer, width: int) -> Params:
    # Softmax ignores a shift of its row, so a key bias would only have rounding noise for a gradient: there is none.
    return {
        "attention_norm": draw.norm(width),
        "query": draw.dense(width, width),
        "key": draw.dense(width, width, bias=False),
        "value": draw.dense(width, width),
        "output": draw.dense(width, width),
        "mlp_norm": draw.norm(width),
        "mlp": init_mlp(draw, width, 4 * width),
    }


def loss(params: Params, tokens: jax.Array, targets: jax.Array, *, config: Config) -> jax.Array:
    """Mean cross-entropy in nats of the targets [b, s] after the tokens [b, s]; a scalar."""
    length = tokens.shape[1]
    x = params["token"][tokens] + params["position"][:length]
    bias = causal_bias(length)
    for layer in params["layers"]:
        x = _layer(layer, x, bias, config)
    logits = dense(params["head"], layer_norm(params["norm"], x, config.epsilon))
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits, axis=-1), targets[..., None], axis=-1)
    return -jnp.mean(chosen)


def _layer(params: Params, x: jax.Array, bias: jax.Array, config: Config) -> jax.Array:
    normed = layer_norm(params["attention_norm"], x, config.epsilon)
    query, key, value = (dense(params[name], normed) for name in ("query", "key", "value"))
    x = x + dense(params["output"], attention(query, key, value, config.heads, bias))
    return x + mlp(params["mlp"], layer_norm(params["mlp_norm"], x, config.epsilon), gelu_tanh)


def forward(params: Params, tokens: jax.Array, targets: jax.Array, *, config: Config) -> tuple[jax.Array, Params]:
    """The loss and its gradients, a pytree like `params`."""
    return jax.value_and_grad(functools.partial(loss, config=config))(params, tokens, targets)


def make_inputs(config: Config, b: int, s: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random int32 tokens [b, s] and the token that follows each of them."""
    text = np.random.default_rng(seed).integers(0, config.vocabulary, (b, s + 1), dtype=np.int32)
    return np.ascontiguousarray(text[:, :-1]), np.ascontiguousarray(text[:, 1:])


def limits(config: Config) -> tuple[int, int]:
    """The largest b and s to try; s may not grow further, b may."""
    return 8, config.max_length


def export(config: Config, dims: str = DIMS) -> jax.export.Exported:
    """The program for symbolic (b, s), or for fixed sizes such as dims="2, 7"."""
    shape = symbolic_sizes(dims, [f"s <= {config.max_length}"])
    inputs = [jax.ShapeDtypeStruct(shape, jnp.int32)] * 2
    return export_function(functools.partial(forward, config=config), init(config, None), inputs)
