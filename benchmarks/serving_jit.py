# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The other side of `benchmarks.serving`: models of Triton's Python backend that pad to powers of two for jax.jit.

The `model.py` that `benchmarks.serving` writes into a model repository imports one. Requests that come together become
one call, of the next power of two above the longest sequence and above the number of rows. All these programs are
compiled before the first request.
"""

from __future__ import annotations

import functools
import itertools
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import padded_decode
from examples import bert, gpt2

_SHORTEST = 8  # of a bucket's lengths


def up(count: int) -> int:
    """The next power of two."""
    return 1 << (count - 1).bit_length()


def _buckets(rows: int, longest: int) -> list[tuple[int, int]]:
    """Numbers of rows and lengths of all programs for up to `rows` rows."""
    batches = [1 << i for i in range(up(rows).bit_length())]
    lengths = {min(1 << i, longest) for i in range(_SHORTEST.bit_length() - 1, up(longest).bit_length())}
    return list(itertools.product(batches, sorted(lengths)))


def _stated(args: dict[str, str]) -> tuple[dict[str, Any], int]:
    """The sizes of the model, and the most rows of a call, of a configuration."""
    config = json.loads(args["model_config"])
    return json.loads(config["parameters"]["config"]["string_value"]), int(config["max_batch_size"])


def _inputs(requests: list[Any], names: list[str]) -> list[list[np.ndarray]]:
    """The arrays of each request.

    By DLPack, as the server's extension modules know no sizes of NumPy 2's element types.
    """
    import triton_python_backend_utils as server

    return [[np.from_dlpack(server.get_input_tensor_by_name(r, name)) for name in names] for r in requests]


def _response(outputs: dict[str, np.ndarray]) -> Any:
    import triton_python_backend_utils as server

    tensors = [
        server.Tensor.from_dlpack(name, np.require(array, requirements=("C", "W"))) for name, array in outputs.items()
    ]
    return server.InferenceResponse(output_tensors=tensors)


class Bert:
    """Tokens, segments and masks [b, s] in, vectors [b, s, width] out; with the server's names of methods."""

    def initialize(self, args: dict[str, str]) -> None:
        """Compile for all buckets."""
        stated, rows = _stated(args)
        self.config = bert.Config(**stated)
        params = jax.tree.map(jnp.asarray, bert.init(self.config))
        self.function = jax.jit(functools.partial(bert.forward, params, config=self.config))
        for sizes in _buckets(rows, self.config.max_length):
            jax.block_until_ready(self.function(*[np.zeros(sizes, np.int32)] * 3))

    def execute(self, requests: list[Any]) -> list[Any]:
        """One call for all requests, which are cut out of its results."""
        given = _inputs(requests, ["tokens", "segments", "mask"])
        rows = up(sum(len(arrays[0]) for arrays in given))
        longest = max(arrays[0].shape[1] for arrays in given)
        length = min(max(_SHORTEST, up(longest)), self.config.max_length)
        columns = [padded_decode.padded(list(column), rows, length) for column in zip(*given, strict=True)]
        found, start, answers = np.asarray(self.function(*columns)), 0, []
        for tokens, *_ in given:
            b, s = tokens.shape
            answers.append(_response({"result": found[start : start + b, :s]}))
            start += b
        return answers


class Decode:
    """A token [b, 1] and keys and values [b, c, width] in, logits and the grown keys and values out."""

    def initialize(self, args: dict[str, str]) -> None:
        """Compile for all buckets."""
        stated, rows = _stated(args)
        self.config = gpt2.Config(**stated)
        self.names = [f"[{i}][{j}]" for i in range(self.config.layers) for j in range(2)]
        params = jax.tree.map(jnp.asarray, gpt2.init(self.config))
        self.function = jax.jit(functools.partial(padded_decode.forward, params, config=self.config))
        for b, c in _buckets(rows, self.config.max_length - 1):
            pair = (np.zeros((b, c, self.config.width), np.float32),) * 2
            none = np.zeros(b, np.int32)
            jax.block_until_ready(self.function(none, none, [pair] * self.config.layers))

    def execute(self, requests: list[Any]) -> list[Any]:
        """One call for all requests, whose new keys and values are put behind their own."""
        given = _inputs(requests, ["token", *(f"cache{name}" for name in self.names)])
        rows = up(sum(len(arrays[0]) for arrays in given))
        longest = max(arrays[1].shape[1] for arrays in given)
        length = min(max(_SHORTEST, up(longest)), self.config.max_length - 1)
        tokens, *parts = (list(column) for column in zip(*given, strict=True))
        cache = [padded_decode.padded(part, rows, length) for part in parts]
        lengths = np.zeros(rows, np.int32)
        known = [part.shape[1] for part in parts[0] for _ in range(len(part))]
        lengths[: len(known)] = known
        pairs = list(zip(cache[::2], cache[1::2], strict=True))
        logits, own = jax.device_get(self.function(padded_decode.padded(tokens, rows, 1)[:, 0], lengths, pairs))
        new, start, answers = [part for pair in own for part in pair], 0, []
        for token, *before in given:
            own_rows = slice(start, start + len(token))
            grown = (np.concatenate([old, part[own_rows]], axis=1) for old, part in zip(before, new, strict=True))
            named = {f"result[1]{name}": part for name, part in zip(self.names, grown, strict=True)}
            answers.append(_response({"result[0]": logits[own_rows], **named}))
            start += len(token)
        return answers


__all__ = ["Bert", "Decode", "up"]
