# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instruction sets of this processor."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

from . import _native


@functools.cache
def host_flags() -> frozenset[str]:
    """The flags of the first processor in /proc/cpuinfo: what both the processor and the kernel support."""
    for line in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            return frozenset(value.split())
    return frozenset()


_LEVELS = {
    "x86-64-v4": frozenset(("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")),
    "x86-64-v3": frozenset(("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")),
    "x86-64-v2": frozenset(("cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3")),
}
"""The levels of the x86-64 psABI, and what each adds, by LLVM's names."""


def level_of(features: Iterable[str]) -> tuple[str, list[str]]:
    """The highest level of x86-64 that these features (LLVM's names) make up, and those beyond it, sorted."""
    left, level = set(features), "x86-64"
    for name, added in reversed(_LEVELS.items()):
        if not added <= left:
            break
        left, level = left - added, name
    return level, sorted(left)


def missing_features(features: Iterable[str]) -> list[str]:
    """Those of the required `features` (LLVM's names, an optional leading "+") that this processor lacks, sorted.

    Names with a leading "-" mean code that avoids the feature, so they ask for nothing. Neither do system, hint and key
    instructions, which numeric code never contains.
    """
    return _native.missing_features(list(features))
