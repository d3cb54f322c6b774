# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The targets of compiles: processors, and NVIDIA GPUs by their architectures."""

from __future__ import annotations

from shlo_disc.errors import DeviceError, OptionError

CPU = "cpu"
CUDA = "cuda"
"""The GPU that is found when a program is compiled, whatever its architecture is."""
CUDA_ARCHITECTURES = ("sm_80", "sm_90", "sm_90a")
"""Each can do what those before it can. An "a" stands for instructions that no later generation has."""
TARGETS = (CPU, CUDA, *(f"{CUDA}:{a}" for a in CUDA_ARCHITECTURES))

Capability = tuple[int, int]
"""A GPU's compute capability: (9, 0) for an H100."""


def jax_platforms(target: str) -> tuple[str, ...]:
    """The platforms of JAX whose programs are compiled for a target, best first; our plugin's are as the CPU's."""
    return ("cpu", "shlo_disc") if target == CPU else ("cuda", "cpu", "shlo_disc")


def check_target(target: str) -> None:
    """Raises OptionError listing the targets for any other name."""
    if target not in TARGETS:
        raise OptionError(f"unknown target {target!r}; targets are {', '.join(map(repr, TARGETS))}")


def cuda_architecture(target: str) -> str | None:
    """The NVIDIA architecture that a target names, e.g. "sm_90"; None for "cpu".

    Raises OptionError listing the targets for any other name.
    """
    check_target(target)
    if target == CUDA:
        raise OptionError("the target 'cuda' has no architecture before a GPU is asked for it")
    return None if target == CPU else target.removeprefix(f"{CUDA}:")


def runs_on(architecture: str, capability: Capability) -> bool:
    """Tells whether a GPU runs code for an architecture: "sm_90" for its generation and later, "sm_90a" for it alone.

    Raises ValueError for what is no architecture's name.
    """
    digits = architecture.removeprefix("sm_").removesuffix("a")
    wanted = int(digits[:-1]), int(digits[-1:])
    return capability == wanted if architecture.endswith("a") else capability >= wanted


def architecture_for(capability: Capability) -> str:
    """The best of the architectures that a GPU runs code for. Raises DeviceError for GPUs that are older than all."""
    found = [architecture for architecture in CUDA_ARCHITECTURES if runs_on(architecture, capability)]
    if not found:
        raise DeviceError(f"the GPU is an sm_{capability[0]}{capability[1]}; programs need an {CUDA_ARCHITECTURES[0]}")
    return found[-1]
