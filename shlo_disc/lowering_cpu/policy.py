# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The policy for CPUs: the transformations that pay on them."""

from __future__ import annotations

from shlo_disc.shape_dialect.policy import Policy

CPU_POLICY = Policy(
    kernel_instructions=1024,
    selected=64,
    has_gemm_epilogues=True,
    has_library_products=False,
    horizontal_gemms=8,  # as in runtime/native/kernels/gemm.h
    gathered_weights=1 << 16,
    gemm_columns=32,
    winograd_channels=16,  # as in runtime/native/kernels/winograd.cpp
    grouped_features=4,
    depthwise_features=8,
    attention_operands=16,
    attention_row_sizes=56,  # a row kernel's arguments have a place of 256 words in the runtime
    online_attention_depth=0,
    rounded_products=frozenset(),
    has_plain_products=False,
    recurrence_weights=5 << 18,  # they stay in a core's second-level cache
    recurrence_row=1 << 15,
    transposed_weights=1 << 18,
    has_column_tiles=False,
    split_results=0,
    split_elements=0,
    blocks=0,
    part_rows=0,
    part_columns=0,
    tile_columns=0,
    few_queries=0,
    part_keys=0,
    product_tile=0,
    few_rows=0,
    part_depth=0,
    depth_parts=0,
    flat_collectives=False,
    plain_transforms=False,
    reads_pieces=True,
    packs_weights=True,
    own_workspaces=False,
    patch_features=0,
    vector_bits=512,  # a backend has its processor's
    bf16_tiles=False,  # as this
    shared_kernels=4,
)
