# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantized tensors."""

from __future__ import annotations

from shlo_disc.shape_dialect.ops.definition import define
from shlo_disc.shape_dialect.ops.element_types import FLOAT
from shlo_disc.shape_dialect.ops.propagation import same_shape
from shlo_disc.shape_dialect.ops.size_relations import all_alike

OPS = define(
    "expand", "uniform_dequantize uniform_quantize", FLOAT, infer=same_shape, relate=all_alike,
    tests="tests/run/test_ops_quantized.py",
)  # fmt: skip
