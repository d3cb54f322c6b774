# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which instruction sets this processor has, in LLVM's names."""

from __future__ import annotations

import ctypes
import functools
import platform
from collections.abc import Iterable
from pathlib import Path

# LLVM's name -> Linux's name in /proc/cpuinfo, where they differ by more than "." or "-" for "_".
_LINUX_NAMES = {
    "64bit": "lm",
    "bmi": "bmi1",
    "crc32": "sse4_2",
    "lzcnt": "abm",
    "pclmul": "pclmulqdq",
    "prfchw": "3dnowprefetch",
    "rdrnd": "rdrand",
    "sahf": "lahf_lm",
    "sha": "sha_ni",
    "sse3": "pni",
    "x87": "fpu",
    "avxvnni": "avx_vnni",
    "avxifma": "avx_ifma",
    "avxneconvert": "avx_ne_convert",
    "avxvnniint8": "avx_vnni_int8",
    "avxvnniint16": "avx_vnni_int16",
}
_AVX512 = ("bf16", "bitalg", "fp16", "vbmi2", "vnni", "vp2intersect", "vpopcntdq")
_LINUX_NAMES |= {f"avx512{part}": f"avx512_{part}" for part in _AVX512}

# System, hint and key instructions: numeric code never contains them, and Linux does not list all of them, so code that
# was compiled with them allowed runs without them.
_WITHOUT_EFFECT = frozenset(
    {
        "cldemote",
        "enqcmd",
        "hreset",
        "invpcid",
        "kl",
        "pconfig",
        "pku",
        "prefetchi",
        "ptwrite",
        "rdpru",
        "serialize",
        "sgx",
        "shstk",
        "tsxldtrk",
        "uintr",
        "usermsr",
        "waitpkg",
        "wbnoinvd",
        "widekl",
    }
)


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

    Names with a leading "-" mean code that avoids the feature, so they ask for nothing.
    """
    required = {name.removeprefix("+") for name in features if not name.startswith("-")}
    return sorted(name for name in required - _WITHOUT_EFFECT if not _has(name))


def _has(feature: str) -> bool:
    plain = feature.replace(".", "_").replace("-", "_")
    is_there = bool(host_flags() & {_LINUX_NAMES.get(feature, plain), plain})
    return is_there and (not feature.startswith("amx-") or may_use_tiles())


@functools.cache
def may_use_tiles() -> bool:
    """Asks Linux, once, for room for the tile registers of AMX in this process; whether it is granted."""
    if "amx_tile" not in host_flags():
        return False
    arch_prctl, request_permission, tile_data = (
        158,
        0x1023,
        18,
    )  # of x86-64: sys/syscall.h, asm/prctl.h, XFEATURE_XTILEDATA
    return ctypes.CDLL(None).syscall(*map(ctypes.c_long, (arch_prctl, request_permission, tile_data))) == 0


def host_architecture() -> str:
    """The first part of this machine's LLVM triple."""
    machine = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
