# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.op_programs` prints how many pairs of an op and an element type are lowered for GPUs."""

from __future__ import annotations

from tests.op_programs import row_of, table_pairs


def main() -> None:
    """Print how many pairs are lowered for GPUs."""
    found = list(table_pairs())
    lowered = [(op, t) for op, t in found if t in row_of(op).on_gpus]
    share = 100 * len(lowered) / len(found)
    print(f"{len(lowered)} of {len(found)} pairs of an op and an element type ({share:.1f}%) are lowered for GPUs")


if __name__ == "__main__":
    main()
