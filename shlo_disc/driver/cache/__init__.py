# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compile cache: artifacts by what they were compiled from, objects by their LLVM IR. Without MLIR and LLVM."""

from __future__ import annotations

from .code import open_code_cache
from .key import cache_key
from .store import CacheWarning, CompileCache, open_cache
from .tuning import TunedMachine, TuningRecord, TuningRecords, recorded_schedules

__all__ = [
    "CacheWarning", "CompileCache", "TunedMachine", "TuningRecord", "TuningRecords", "cache_key", "open_cache",
    "open_code_cache", "recorded_schedules",
]  # fmt: skip
