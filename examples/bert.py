# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""BERT encoder (Devlin et al., 2018): post-normalised layers, exact GELU, padding mask.

`python -m examples.bert --write-mlir` writes the StableHLO text of the small configuration to examples/bert.mlir.
"""

from __future__ import annotations

import argparse
import functools
import re
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from examples.layers import Initializer, Params, attention, dense, gelu_exact, init_mlp, layer_norm, mlp
from examples.model import export_function, symbolic_sizes

DIMS = "b, s"


@dataclass(frozen=True)
class Config:
    """Sizes of the encoder. `max_length` bounds the symbol s."""

    layers: int
    width: int
    heads: int
    hidden: int
    vocabulary: int
    max_length: int = 512
    segments: int = 2
    epsilon: float = 1e-12


BASE = Config(layers=12, width=768, heads=12, hidden=3072, vocabulary=30522)
SMALL = Config(layers=2, width=64, heads=4, hidden=128, vocabulary=211, max_length=48)


def init(config: Config, seed: int | None = 0) -> Params:
    """Random weights from `seed`; 109 million numbers for BASE."""
    draw = Initializer(seed)
    return {
        "token": draw.normal(config.vocabulary, config.width),
        "position": draw.normal(config.max_length, config.width),
        "segment": draw.normal(config.segments, config.width),
        "norm": draw.norm(config.width),
        "layers": [_init_layer(draw, config) for _ in range(config.layers)],
    }


def _init_layer(draw: Initializer, config: Config) -> Params:
    width = config.width
    return {
        "query": draw.dense(width, width),
        "key": draw.dense(width, width),
        "value": draw.dense(width, width),
        "output": draw.dense(width, width),
        "attention_norm": draw.norm(width),
        "mlp": init_mlp(draw, width, config.hidden),
        "mlp_norm": draw.norm(width),
    }


def forward(params: Params, tokens: jax.Array, segments: jax.Array, mask: jax.Array, *, config: Config) -> jax.Array:
    """Hidden states [b, s, width] of tokens [b, s] and segments [b, s]; mask [b, s] is 1 for a token, 0 for padding."""
    length = tokens.shape[1]
    x = params["token"][tokens] + params["position"][:length] + params["segment"][segments]
    x = layer_norm(params["norm"], x, config.epsilon)
    bias = (1.0 - mask.astype(jnp.float32))[:, None, None, :] * np.float32(-1e9)
    for layer in params["layers"]:
        x = _layer(layer, x, bias, config)
    return x


def _layer(params: Params, x: jax.Array, bias: jax.Array, config: Config) -> jax.Array:
    query, key, value = (dense(params[name], x) for name in ("query", "key", "value"))
    attended = dense(params["output"], attention(query, key, value, config.heads, bias))
    x = layer_norm(params["attention_norm"], x + attended, config.epsilon)
    return layer_norm(params["mlp_norm"], x + mlp(params["mlp"], x, gelu_exact), config.epsilon)


def make_inputs(config: Config, b: int, s: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random tokens, segments and a padding mask that keeps at least one token of each row; all int32 [b, s]."""
    random = np.random.default_rng(seed)
    tokens = random.integers(0, config.vocabulary, (b, s), dtype=np.int32)
    segments = random.integers(0, config.segments, (b, s), dtype=np.int32)
    kept = random.integers(1, s + 1, (b, 1))
    return tokens, segments, (np.arange(s)[None, :] < kept).astype(np.int32)


def limits(config: Config) -> tuple[int, int]:
    """The largest b and s to try; s may not grow further, b may."""
    return 8, config.max_length


def export(config: Config, dims: str = DIMS) -> jax.export.Exported:
    """The program for symbolic (b, s), or for fixed sizes such as dims="2, 7"."""
    shape = symbolic_sizes(dims, [f"s <= {config.max_length}"])
    inputs = [jax.ShapeDtypeStruct(shape, jnp.int32)] * 3
    return export_function(functools.partial(forward, config=config), init(config, None), inputs)


def write_mlir(path: Path) -> int:
    """Writes the StableHLO text of `SMALL` without source locations (they hold absolute paths); returns its bytes."""
    plain = r"[^()\"]|\"[^\"]*\""
    text = re.sub(rf" loc\((?:{plain}|\((?:{plain})*\))*\)", "", export(SMALL).mlir_module())
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#loc"))
    path.write_text(text + "\n")
    return len(text) + 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write-mlir", action="store_true", help="write examples/bert.mlir")
    if parser.parse_args().write_mlir:
        print(write_mlir(Path(__file__).with_suffix(".mlir")), "bytes")
