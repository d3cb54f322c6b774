# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The policy for GPUs. A product has its epilogue, or leaves it to a kernel behind a library's product."""

from __future__ import annotations

from shlo_disc.shape_dialect.policy import Policy

GPU_POLICY = Policy(
    kernel_instructions=1024,
    selected=64,
    has_gemm_epilogues=True,
    has_library_products=True,
    horizontal_gemms=1,
    gathered_weights=1 << 62,
    gemm_columns=1,
    winograd_channels=1 << 62,
    grouped_features=1 << 62,
    depthwise_features=1 << 62,
    attention_operands=16,
    attention_row_sizes=1 << 10,
    online_attention_depth=128,
    rounded_products=frozenset({"bf16", "f16"}),
    has_plain_products=True,
    recurrence_weights=1 << 18,  # a block reads them in each iteration
    recurrence_row=4 << 10,  # they have room in a block's shared memory, whatever their types
    transposed_weights=1 << 17,  # as many as a recurrence may have, of 16 bits
    has_column_tiles=True,
    split_results=1 << 12,
    split_elements=1 << 16,
    blocks=264,  # two on each multiprocessor of an H100 or H200
    part_rows=64,
    part_columns=1 << 12,
    tile_columns=32,
    few_queries=16,
    part_keys=128,
    product_tile=64,
    few_rows=16,
    part_depth=256,
    depth_parts=64,
    flat_collectives=True,
    plain_transforms=True,
    reads_pieces=False,  # data lies in the memory of the device
    packs_weights=False,
    own_workspaces=True,
    patch_features=16,
    vector_bits=0,
    bf16_tiles=False,
    shared_kernels=0,
)
