# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The other side of `benchmarks.serving`: a model of Triton's Python backend that pads to powers of two for jax.jit.

The `model.py` that `benchmarks.serving` writes into a model repository imports it. Requests that come together become
one call, of the next power of two above the longest sequence and above the number of rows. All these programs are
compiled before the first request.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from examples import bert


def up(count: int) -> int:
    """The next power of two."""
    return 1 << (count - 1).bit_length()


class TritonPythonModel:
    """The class that the server looks for, with its names of methods."""

    def initialize(self, args: dict[str, str]) -> None:
        """Compile for all buckets up to the largest batch and length."""
        config = json.loads(args["model_config"])
        stated = json.loads(config["parameters"]["config"]["string_value"])
        self.config = bert.Config(**stated)
        params = jax.tree.map(jnp.asarray, bert.init(self.config))
        self.function = jax.jit(functools.partial(bert.forward, params, config=self.config))
        rows, length = up(config["max_batch_size"]), up(self.config.max_length)
        for b in (1 << i for i in range(rows.bit_length())):
            for s in (1 << i for i in range(3, length.bit_length())):
                self._call([np.zeros((b, min(s, self.config.max_length)), np.int32)] * 3)

    def _call(self, arrays: list[np.ndarray]) -> np.ndarray:
        return np.asarray(self.function(*arrays))

    def execute(self, requests: list[Any]) -> list[Any]:
        """One call for all requests, which are cut out of its results."""
        import triton_python_backend_utils as server

        names = ("tokens", "segments", "mask")
        # By DLPack, as the server's extension modules know no sizes of NumPy 2's element types.
        given = [[np.from_dlpack(server.get_input_tensor_by_name(r, name)) for name in names] for r in requests]
        rows = sum(len(arrays[0]) for arrays in given)
        length = min(max(8, up(max(arrays[0].shape[1] for arrays in given))), self.config.max_length)
        padded = [np.zeros((up(rows), length), np.int32) for _ in names]
        start = 0
        for arrays in given:
            b, s = arrays[0].shape
            for into, array in zip(padded, arrays, strict=True):
                into[start : start + b, :s] = array
            start += b
        found, start, answers = self._call(padded), 0, []
        for arrays in given:
            b, s = arrays[0].shape
            output = server.Tensor.from_dlpack("result", found[start : start + b, :s].copy())
            answers.append(server.InferenceResponse(output_tensors=[output]))
            start += b
        return answers
