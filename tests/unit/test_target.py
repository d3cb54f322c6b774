# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of targets, and the GPUs that run their code."""

from __future__ import annotations

import pytest

from shlo_disc.errors import DiscError
from shlo_disc.options import CUDA_ARCHITECTURES, architecture_for, cuda_architecture, runs_on


def test_names() -> None:
    assert cuda_architecture("cpu") is None
    assert [cuda_architecture(f"cuda:{name}") for name in CUDA_ARCHITECTURES] == list(CUDA_ARCHITECTURES)
    for name in ("cuda:sm_70", "sm_90", "cuda:sm_90b", ""):
        with pytest.raises(DiscError, match="targets are 'cpu', 'cuda', 'cuda:sm_80', 'cuda:sm_90', 'cuda:sm_90a'"):
            cuda_architecture(name)
    with pytest.raises(DiscError, match="before a GPU is asked"):
        cuda_architecture("cuda")


@pytest.mark.parametrize(
    ("capability", "runs"),
    [
        ((7, 5), []),
        ((8, 0), ["sm_80"]),
        ((8, 9), ["sm_80"]),
        ((9, 0), ["sm_80", "sm_90", "sm_90a"]),
        ((10, 0), ["sm_80", "sm_90"]),
        ((12, 1), ["sm_80", "sm_90"]),
    ],
)
def test_code_runs_on_its_generation_and_later_ones_but_for_what_no_later_one_has(
    capability: tuple[int, int], runs: list[str]
) -> None:
    assert [name for name in CUDA_ARCHITECTURES if runs_on(name, capability)] == runs
    if runs:
        assert architecture_for(capability) == runs[-1]
    else:
        with pytest.raises(DiscError, match="the GPU is an sm_75; programs need an sm_80"):
            architecture_for(capability)


def test_an_architecture_of_three_digits() -> None:
    assert runs_on("sm_120", (12, 0)) and not runs_on("sm_120", (10, 3)) and not runs_on("sm_100a", (12, 0))
