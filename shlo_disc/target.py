# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of targets, as `compile` takes them."""

from __future__ import annotations

from shlo_disc.errors import DiscError

CPU = "cpu"
CUDA_ARCHITECTURES = ("sm_80", "sm_90")
TARGETS = (CPU, *(f"cuda:{a}" for a in CUDA_ARCHITECTURES))


def jax_platforms(target: str) -> tuple[str, ...]:
    """The platforms of JAX whose programs are compiled for a target, best first; our plugin's are as the CPU's."""
    return ("cpu", "shlo_disc") if target == CPU else ("cuda", "cpu", "shlo_disc")


def cuda_architecture(target: str) -> str | None:
    """The NVIDIA architecture that a target names, e.g. "sm_90"; None for "cpu".

    Raises DiscError listing the targets for any other name.
    """
    if target not in TARGETS:
        raise DiscError(f"unknown target {target!r}; targets are {', '.join(map(repr, TARGETS))}")
    return None if target == CPU else target.removeprefix("cuda:")
