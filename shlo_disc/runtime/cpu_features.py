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
    return frozenset(_first_processor("flags").split())


@functools.cache
def processor_name() -> str:
    """The name of the first processor in /proc/cpuinfo, such as "AMD EPYC 9R14"; "" where it has none."""
    return _first_processor("model name")


def host_level() -> str:
    """The highest of the levels in `Options.cpu` that this processor has, or "x86-64"."""
    flags = host_flags()
    levels = {"sapphirerapids": "amx_tile", "x86-64-v4": "avx512f", "x86-64-v3": "avx2"}
    return next((level for level, flag in levels.items() if flag in flags), "x86-64")


def _first_processor(key: str) -> str:
    """A line of /proc/cpuinfo; "" where there is none."""
    for line in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""


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


KERNEL_FEATURES = (
    "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "avx", "f16c", "fma", "avx2", "bmi", "bmi2", "lzcnt",
    "movbe", "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "avx512vnni", "avx512vbmi", "avx512vbmi2",
    "avx512bitalg", "avx512vpopcntdq", "avx512ifma", "avx512bf16", "avx512fp16", "avxvnni", "amx-tile", "amx-int8",
    "amx-bf16", "amx-fp16",
)  # fmt: skip
"""Features that change the code generated for kernels, by LLVM's names; the others (paging, crypto, ...) would only tie
code to one machine."""


def usable_features() -> tuple[str, ...]:
    """Return the part of `KERNEL_FEATURES` that this processor has: machines with the same ones run the same code."""
    missing = frozenset(missing_features(KERNEL_FEATURES))
    return tuple(name for name in KERNEL_FEATURES if name not in missing)


def missing_features(features: Iterable[str]) -> list[str]:
    """Those of the required `features` (LLVM's names, an optional leading "+") that this processor lacks, sorted.

    Names with a leading "-" mean code that avoids the feature, so they ask for nothing. Neither do system, hint and key
    instructions, which numeric code never contains.
    """
    return _native.missing_features(list(features))
