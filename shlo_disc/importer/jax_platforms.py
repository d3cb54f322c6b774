# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX's lowering of a function for the platform that it is compiled for."""

from __future__ import annotations

from typing import Any

from jax._src.interpreters import mlir
from jax._src.lax.lax import dot_general_p

from shlo_disc.importer import jax_fft, jax_ragged_dot, jax_tridiagonal
from shlo_disc.options import CPU, CUDA

RULES = (*jax_fft.RULES, *jax_ragged_dot.RULES, *jax_tridiagonal.RULES)
"""The primitives whose rules are ours on every platform, and the rules."""


def platform_of(target: str) -> str:
    """The platform of JAX that a function is exported for: that of a target."""
    return CPU if target == CPU else CUDA


def rules_for(platform: str) -> tuple[tuple[Any, Any], ...]:
    """The primitives whose rules are not those of JAX for a platform, and the rules.

    Linear algebra, random bits, transforms and exchanges are lowered for GPUs as for CPUs: what JAX makes of them for
    GPUs are calls of NVIDIA's libraries. Products have the rule for GPUs, which takes all algorithms.
    """
    if platform == CPU:
        return RULES
    return (*RULES, *((primitive, rule) for primitive, rule in _rules_of_cpu(platform) if primitive not in _OWN))


_OWN = {dot_general_p, *(primitive for primitive, _ in RULES)}


def _rules_of_cpu(platform: str) -> list[tuple[Any, Any]]:
    """The rules of CPUs for primitives that either of the platforms has a rule of its own for."""
    cpu, others = (mlir._platform_specific_lowerings[name] for name in (CPU, platform))
    rules = {**{primitive: mlir._lowerings.get(primitive) for primitive in others}, **cpu}
    return [(primitive, entry.rule) for primitive, entry in rules.items() if entry is not None]


__all__ = ["platform_of", "rules_for"]
