# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for the plugin without Python."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

TANH = """
func.func @main(%x: tensor<{n}x3xf32>) -> tensor<{n}x3xf32> {{
  %0 = stablehlo.tanh %x : tensor<{n}x3xf32>
  return %0 : tensor<{n}x3xf32>
}}
"""


def softmax(x: jax.Array) -> jax.Array:
    """Its constants are an array, of which the table compares a digest, and a number that changes with the size."""
    return jax.nn.softmax(x + jnp.asarray([0.5, 1.5, -2.0])) * (1 / (x.shape[0] + 0.3))


def wanted(x: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jit(softmax)(x))


def dynamic_softmax() -> bytes:
    """The function exported with a symbol, as a portable artifact."""
    b = export.symbolic_shape("b, 3")
    exported = export.export(jax.jit(softmax), platforms=["cpu"])(jax.ShapeDtypeStruct(b, np.float32))
    return bytes(exported.mlir_module_serialized)
