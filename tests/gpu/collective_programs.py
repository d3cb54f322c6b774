# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of one collective among several devices, on any element type, and what calls them on mock GPUs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import shlo_disc
from shlo_disc.runtime import Client, LoadedExecutable
from tests.gpu import mock_nccl
from tests.gpu.checks import TARGET
from tests.gpu.emulated import install
from tests.gpu.mock_driver import mock_driver
from tests.op_programs.program import region

_FIRST = 2000
"""GPUs that no other test has."""

_ordinals = itertools.count(_FIRST)

PAIRS = [[0, 1], [2, 3]]
CROSSED = [[3, 0], [1, 2]]
ALL = [[0, 1, 2, 3]]


def groups_text(groups: Sequence[Sequence[int]]) -> str:
    """The attribute's value; shorter groups are filled up."""
    width = max(map(len, groups))
    rows = [[*group, *[-1] * (width - len(group))] for group in groups]
    return f"dense<{rows}> : tensor<{len(rows)}x{width}xi64>"


def module(types: tuple[str, str], body: str, devices: int = 4) -> str:
    """A program of replicas that computes %r of %x."""
    return f"""module attributes {{mhlo.num_replicas = {devices} : i32}} {{
  func.func @main(%x: {types[0]}) -> {types[1]} {{
    %r = {body} : ({types[0]}) -> {types[1]}
    return %r : {types[1]} }} }}"""


def collective(
    op: str, t: str, groups: Sequence[Sequence[int]], axis: int = 0, to: int = 1, by: str = "add", devices: int = 4
) -> str:
    """One of `op` over arrays of [n, 4]; all_to_all cuts along `axis` and joins along `to`."""
    x, members, g = f"tensor<?x4x{t}>", len(groups[0]), groups_text(groups)
    wide, narrow = 4 * members, 4 // members
    changed = {
        "all_gather": x if axis == 0 else f"tensor<?x{wide}x{t}>",
        "reduce_scatter": x if axis == 0 else f"tensor<?x{narrow}x{t}>",
        "all_to_all": f"tensor<?x{4 if axis == to else wide if to else narrow}x{t}>",
    }
    attributes = {
        "all_reduce": f"replica_groups = {g}",
        "all_gather": f"all_gather_dim = {axis} : i64, replica_groups = {g}",
        "reduce_scatter": f"scatter_dimension = {axis} : i64, replica_groups = {g}",
        "all_to_all": f"split_dimension = {axis} : i64, concat_dimension = {to} : i64, split_count = {members} : i64, "
        f"replica_groups = {g}",
        "collective_broadcast": f"replica_groups = {g}",
        "collective_permute": f"source_target_pairs = {g}",
    }
    body = region(by, t) if op in ("all_reduce", "reduce_scatter") else ""
    return module((x, changed.get(op, x)), f'"stablehlo.{op}"(%x) <{{{attributes[op]}}}> {body}', devices)


def gpus(count: int) -> list[int]:
    """So many that have done nothing yet."""
    return [next(_ordinals) for _ in range(count)]


def on_gpus(text: str, devices: int = 4, ordinals: Sequence[int] = range(_FIRST - 8, _FIRST)) -> LoadedExecutable:
    """A program for several mock GPUs, which exchange arrays by the mock of NCCL."""
    executable = shlo_disc.compile(text, target=TARGET, options=shlo_disc.Options(replicas=devices))
    return load(executable, ordinals[:devices])


def load(executable: shlo_disc.Executable, ordinals: Sequence[int]) -> LoadedExecutable:
    """The same for one that is compiled."""
    mock_driver()
    install(executable)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shlo_disc.runtime.executable.nccl_names", lambda: [str(mock_nccl.library())])
        return Client.of_gpu(list(ordinals), uses_libraries=False).load(executable.artifact)


def on_cpus(text: str, shards: Sequence[np.ndarray]) -> list[Any]:
    """The results of the same program on processors."""
    executable = shlo_disc.compile(text, options=shlo_disc.Options(replicas=len(shards), output="numpy"))
    return executable.execute_sharded([[shard] for shard in shards])


__all__ = ["ALL", "CROSSED", "PAIRS", "collective", "gpus", "load", "module", "on_cpus", "on_gpus"]
