# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that talk to other participants or to the host."""

from __future__ import annotations

from shlo_disc.shape_dialect.registry.dtypes import ALL
from shlo_disc.shape_dialect.registry.row import refused, rows

_TESTS = "tests/run/test_ops_distributed.py"
_DEVICES = "tests/pjrt/test_devices.py"

ROWS = (
    *rows(
        "library",
        "all_gather all_reduce all_to_all collective_broadcast collective_permute reduce_scatter",
        ALL,
        tests=_DEVICES,
        gpu=ALL,
    ),
    *rows("library", "partition_id replica_id", {"ui32"}, tests=_DEVICES, gpu={"ui32"}),
    *rows("import", "collective_reduce cross-replica-sum", ALL, tests=_TESTS),
    *rows("import", "async_done async_start", ALL, tests=_TESTS),
    *refused("infeed outfeed recv send", ALL, "a compiled program has no channel to the host while it runs",
             "pass arguments and return results"),
)  # fmt: skip
