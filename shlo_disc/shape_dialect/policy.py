# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parameters of a target that passes use: from where on something pays there, and how much its kernels take.

Programs compute the same whatever the numbers are.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Policy:
    """The numbers of a target.

    kernel_instructions: the longest that a kernel becomes by fusion, for one vector (or thread), with calls of the
        longer functions. selected: a longer beginning of a sorted axis is had by a sort, as selecting k of n elements
        takes up to k * n steps.
    has_gemm_epilogues: products are fused with what follows them. has_library_products: a library may compute a product
        by itself; then only loops follow products, plain ones, and the sums have a buffer to lie in. horizontal_gemms:
        products of one left-hand side that are worked on together, at most.
    gathered_weights: of a convolution whose windows are gathered as a product's rows, the fewest; with fewer features
        or shallower windows that takes too long. gemm_columns: features side by side in a product, the last of which
        may stand for nothing. winograd_channels: features of input and result from which Winograd's algorithm pays.
    grouped_features: output features of a group from which a convolution is worth a kernel of its own; it is better
        spread over the lanes of a loop below. depthwise_features: the same where each feature has windows of its own.
    attention_operands, attention_row_sizes: operands, and different sizes, of a row kernel that joins an attention.
    online_attention_depth: attentions go through rows in pieces, and take heads of at most so many elements; 0: rows
        are whole, and may be those of any row kernel.
    rounded_products: element types (MLIR's names) whose products write results of the same type, each sum rounded once.
    has_plain_products: axes of size 1 that one side of a product has alone are taken out of it.
    recurrence_weights: bytes of the matrices that states are multiplied by, which each thread reads in every iteration;
        recurrence_row: elements of one row of all values of an iteration together; both at most.
    transposed_weights: elements of a matrix that is transposed before a loop, at most.
    has_column_tiles: the kernel of a reduction down columns goes along several axes, in each of several blocks of rows,
        with several values, and computes what follows; else one value along all axes but the last.
    split_results: reductions to fewer results are done in parts, until they have so many; 0: none is. split_elements:
        the most that are reduced without.
    blocks: of threads that a device has at work; a reduction of fewer is split over as many, 0: none is. part_rows,
        part_columns: elements of each part, at least, down columns and along rows. tile_columns: columns of a block.
    few_queries: rows of one matrix of an attention up to which a block has a part of the keys for all of them, and no
        tile of rows; part_keys: keys of such a part, at least.
    product_tile: rows and columns of the tile of a product that a block computes; 0: products are no kernels.
        few_rows: of a product up to which a block has two tiles side by side, of these rows; part_depth: elements of
        the summed dimension of which a block has a part, at least; depth_parts: parts that one block adds up, at most.
    flat_collectives: collectives move whole arrays, one behind the other, and combine by sums and products, and
        integers by maxima and minima (`expand/flat_collectives.py`).
    plain_transforms: Fourier transforms are those of a library that does not divide inverse ones by the number of their
        elements.
    reads_pieces: products, attentions and library functions read pieces of arrays where they lie, also from places that
        data says.
    packs_weights: products read weights in packed forms, which are all that a call has of some.
    own_workspaces: library functions take their workspaces themselves, beside the arena.
    patch_features: convolutions with so many features of the result, and elements of a window of all features, are
        products of patches that are written out; 0: none is.
    vector_bits: of the widest registers that library functions may use; 0: the target has none of these for products
        of groups.
    bf16_tiles: products of bf16 are multiplied by tiles of matrices (AMX), which few library functions have.
    shared_kernels: fusions that differ in numbers alone from which they share a kernel; 0: none do.
    """

    kernel_instructions: int
    selected: int
    has_gemm_epilogues: bool
    has_library_products: bool
    horizontal_gemms: int
    gathered_weights: int
    gemm_columns: int
    winograd_channels: int
    grouped_features: int
    depthwise_features: int
    attention_operands: int
    attention_row_sizes: int
    online_attention_depth: int
    rounded_products: frozenset[str]
    has_plain_products: bool
    recurrence_weights: int
    recurrence_row: int
    transposed_weights: int
    has_column_tiles: bool
    split_results: int
    split_elements: int
    blocks: int
    part_rows: int
    part_columns: int
    tile_columns: int
    few_queries: int
    part_keys: int
    product_tile: int
    few_rows: int
    part_depth: int
    depth_parts: int
    flat_collectives: bool
    plain_transforms: bool
    reads_pieces: bool
    packs_weights: bool
    own_workspaces: bool
    patch_features: int
    vector_bits: int
    bf16_tiles: bool
    shared_kernels: int

    @property
    def merging_blocks(self) -> int:
        """The blocks over which what is merged in pairs is split: the largest power of two of `blocks`."""
        return 1 << self.blocks.bit_length() - 1 if self.blocks else 0
