# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops over sliding windows: convolutions, pooling, cumulative ops, normalisation of batches."""

from __future__ import annotations

from shlo_disc.registry.dtypes import ALL, COMPLEX, FLOAT, NARROW_FLOAT
from shlo_disc.registry.row import refused

_NONE = "this op has no lowering"

ROWS = (
    *refused("convolution dynamic_conv", ALL, _NONE, "express it as a dot over patches"),
    *refused("reduce_window select_and_scatter", ALL, _NONE),
    *refused("batch_norm_grad batch_norm_inference batch_norm_training", FLOAT | NARROW_FLOAT | COMPLEX, _NONE),
)
