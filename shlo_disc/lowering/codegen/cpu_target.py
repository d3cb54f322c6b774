# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The description of the processor that code is generated for."""

from __future__ import annotations

from dataclasses import dataclass

import llvmlite.binding as llvm

from shlo_disc.errors import CompilerError
from shlo_disc.runtime.cpu_features import KERNEL_FEATURES

_V3 = (
    "avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse3", "sse4.1", "sse4.2",
    "ssse3",
)  # fmt: skip
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_SAPPHIRE_RAPIDS = (
    *_V4, "avx512vnni", "avx512vbmi", "avx512vbmi2", "avx512bitalg", "avx512vpopcntdq", "avx512ifma", "avx512bf16",
    "avx512fp16", "avxvnni", "amx-tile", "amx-int8", "amx-bf16",
)  # fmt: skip
_LEVELS = {"x86-64-v3": _V3, "x86-64-v4": _V4, "sapphirerapids": _SAPPHIRE_RAPIDS}
_AVX512_BASE = frozenset(("avx512f", "avx512bw", "avx512dq", "avx512vl"))
_AVX2_BASE = frozenset(("avx2", "fma", "f16c"))


@dataclass(frozen=True)
class CpuTarget:
    """A processor: LLVM target triple, base CPU, features beyond the base (LLVM's names, sorted), vector width in bits.

    `vector_bits` is the width of the widest vector register (512, 256 or 128) and of what LLVM may use.
    """

    triple: str
    features: tuple[str, ...] = ()
    vector_bits: int = 128
    cpu: str = "x86-64"

    def __post_init__(self) -> None:
        if self.vector_bits not in (128, 256, 512):
            raise CompilerError(f"CpuTarget: vector_bits is {self.vector_bits}, expected 128, 256 or 512")

    @staticmethod
    def host() -> CpuTarget:
        """The processor of this process, as far as kernels can use it.

        The base is the architecture, never a model name: detection of names fails on processors newer than LLVM.
        """
        triple = llvm.get_process_triple()
        detected = llvm.get_host_cpu_features()
        if not triple.startswith("x86_64"):
            features = tuple(sorted(name for name, present in detected.items() if present))
            return CpuTarget(triple, features, 128, "generic")
        features = tuple(sorted(name for name in KERNEL_FEATURES if detected.get(name)))
        return CpuTarget(triple, features, vector_bits_of(features))

    @staticmethod
    def named(name: str) -> CpuTarget:
        """The processor that `Options.cpu` names: "host", or a level.

        "x86-64-v3" has AVX2, FMA and F16C, as every x86 server has since 2015; "x86-64-v4" AVX-512 besides, and
        "sapphirerapids" what Intel's servers have from that one on.
        """
        if name == "host":
            return CpuTarget.host()
        features = tuple(sorted(_LEVELS[name]))
        return CpuTarget("x86_64-unknown-linux-gnu", features, vector_bits_of(features))

    @property
    def feature_string(self) -> str:
        """The features as LLVM takes them: `+avx2,+fma`."""
        return ",".join("+" + name for name in self.features)


def vector_bits_of(features: tuple[str, ...]) -> int:
    """Width in bits of the widest vectors worth using with these x86 features."""
    present = frozenset(features)
    if present >= _AVX512_BASE:
        return 512
    return 256 if present >= _AVX2_BASE else 128
