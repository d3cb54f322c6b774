# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compile cache: artifacts by what they were compiled from, objects by their LLVM IR. Without MLIR and LLVM.

Directories of this machine, and a store that machines share behind them.
"""

from __future__ import annotations

from .code import open_code_cache
from .key import cache_key, without_places
from .shared import cache_stats
from .store import CacheWarning, CompileCache, open_cache
from .tuning import TunedMachine, TuningRecord, TuningRecords, recorded_schedules

__all__ = [
    "CacheWarning", "CompileCache", "TunedMachine", "TuningRecord", "TuningRecords", "cache_key", "cache_stats",
    "open_cache", "open_code_cache", "recorded_schedules", "without_places",
]  # fmt: skip
