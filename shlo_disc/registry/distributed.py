# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that talk to other participants or to the host."""

from __future__ import annotations

from shlo_disc.registry.dtypes import ALL
from shlo_disc.registry.row import refused

_NONE = "collectives have no lowering"

ROWS = (
    *refused("all_gather all_reduce all_to_all collective_broadcast collective_permute reduce_scatter", ALL, _NONE),
    *refused("cross-replica-sum", ALL, "an op of older StableHLO versions", "use all_reduce"),
    *refused("partition_id replica_id", frozenset({"ui32"}), "this op has no lowering"),
    *refused("infeed outfeed recv send", ALL, "a compiled program has no channel to the host while it runs",
             "pass arguments and return results"),
)  # fmt: skip
