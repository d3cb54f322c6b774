# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which instruction sets this processor has."""

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


def missing_features(features: Iterable[str]) -> list[str]:
    """Those of the required `features` (LLVM's names, an optional leading "+") that this processor lacks, sorted.

    Names with a leading "-" mean code that avoids the feature, so they ask for nothing. Neither do system, hint and key
    instructions, which numeric code never contains.
    """
    return _native.missing_features(list(features))
