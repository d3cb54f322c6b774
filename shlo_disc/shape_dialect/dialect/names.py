# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of attributes that hold one number or text; the others are named where their contents are declared."""

from __future__ import annotations

STAGE = "disc.stage"
"""On a module: the last stage that has run."""

FLOPS = "disc.flops"
"""On a fused module: the floating-point operations of a call, a size."""

PARTICIPANTS = "disc.participants"
"""On a module: that it is compiled to run on all of its participants, and not for one that runs alone."""

LAYOUT = "disc.layout"
"""On arguments and results: the axis that each axis is to JAX, in an order other than row-major."""

MEMORY_LIMIT = "disc.memory_limit"
"""On a planned module: the bytes that a call may allocate, where they are limited."""

VARIANT = "disc.variant"
"""On a planned module whose calls take one of several variants: the number of the variant, a size."""

SEGMENT = "disc.segment"
"""On an op of a planned module that runs: the segment of the call that it runs in, where that is not the first."""

PRECISION = "disc.precision"
"""On a product of a program for GPUs: one of `PRECISIONS`. One without the attribute takes all bits of its sides."""

PANELS = "disc.panels"
"""On a call of a kernel: the numbers of its operands that it reads where they lie, or from a packed form."""

SEEN = "disc.seen"
"""On a comparison in the row kernel of an attention that has a causal mask: its axes of rows and of columns, and 1 or
0, what it is in all columns that the mask lets a row see."""

PRODUCTS = tuple(f"stablehlo.{name}" for name in ("convolution", "dot", "dot_general", "dynamic_conv", "einsum"))
"""The ops that are products."""
