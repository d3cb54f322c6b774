# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of several segments, written by hand against the native interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shlo_disc.errors import ArtifactError, ShapeError
from shlo_disc.runtime import Artifact, Client
from tests.unit.runtime.programs import array, compile_ir, header, symbol

# The first x[0] elements of x[b]. Segment 0 copies x into its arena and reads n = x[0]; segment 1 copies n elements
# out of the arena of segment 0. Buffers: x, result, symbols (b, n), both arenas.
TAKE_IR = """
declare ptr @memcpy(ptr, ptr, i64)

define i64 @disc_plan(ptr %symbols, ptr %words) {
  %b = load i64, ptr %symbols
  %bytes = mul i64 %b, 8
  store i64 %bytes, ptr %words
  %w1 = getelementptr i64, ptr %words, i64 1
  store i64 %b, ptr %w1
  ret i64 0
}

define void @disc_run(ptr %rt, ptr %buffers, ptr %words, ptr %arena) {
  %bytes = load i64, ptr %words
  %x = load ptr, ptr %buffers
  %copied = call ptr @memcpy(ptr %arena, ptr %x, i64 %bytes)
  %n = load i64, ptr %x
  %tp = getelementptr ptr, ptr %buffers, i64 2
  %table = load ptr, ptr %tp
  %np = getelementptr i64, ptr %table, i64 1
  store i64 %n, ptr %np
  ret void
}

define i64 @disc_plan_1(ptr %symbols, ptr %words) {
  %b = load i64, ptr %symbols
  %np = getelementptr i64, ptr %symbols, i64 1
  %n = load i64, ptr %np
  store i64 16, ptr %words
  %w1 = getelementptr i64, ptr %words, i64 1
  store i64 %n, ptr %w1
  %large = icmp ugt i64 %n, %b
  %code = zext i1 %large to i64
  ret i64 %code
}

define void @disc_run_1(ptr %rt, ptr %buffers, ptr %words, ptr %arena) {
  %w1 = getelementptr i64, ptr %words, i64 1
  %n = load i64, ptr %w1
  %bytes = mul i64 %n, 8
  %rp = getelementptr ptr, ptr %buffers, i64 1
  %result = load ptr, ptr %rp
  %ap = getelementptr ptr, ptr %buffers, i64 3
  %first = load ptr, ptr %ap
  %copied = call ptr @memcpy(ptr %result, ptr %first, i64 %bytes)
  ret void
}
"""

LATER = {
    "checks": [{"kind": "data", "message": "n = {0} is too large.", "operands": [1]}],
    "plan_words": 2,
    "entry": {"plan": "disc_plan_1", "run": "disc_run_1"},
    "results_written": [0],
    "symbols_read": [{"name": "n"}],
}


def program(later: Any = None, **fields: Any) -> Artifact:
    """The program; `later` replaces fields of segment 1, the rest those of the header."""
    head = header(
        symbols=[symbol("b", 0, 0)],
        arguments=[array("args[0]", ["b"], "i64")],
        results=[array("result", ["n"], "i64")],
        plan_words=2,
        results_written=[],
        symbols_read=[],
        segments=[{**LATER, **(later or {})}],
    )
    return Artifact.of({**head, **fields}, compile_ir(TAKE_IR))


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(threads=1)


def test_each_segment_is_planned_with_what_the_one_before_has_read(client: Client) -> None:
    take = client.load(program())
    for n in (3, 1, 0, 5, 3):
        np.testing.assert_array_equal(take(np.array([n, 7, 8, 9, 10])), np.array([n, 7, 8, 9, 10])[:n])
    assert take.plan_cache()[0] == 1 + 4
    assert take.result_shapes(b=5, n=2) == ((2,),)
    assert take.memory(b=5, n=2).arena_bytes == 5 * 8 + 16
    with pytest.raises(ShapeError, match=r"variables \['b', 'n'\]"):
        take.result_shapes(b=5)


def test_a_refused_size_leaves_the_executable_usable(client: Client) -> None:
    take = client.load(program())
    device = client.devices()[0]
    before = device.memory_stats()["live_bytes"]
    for n in (6, -1, 2**63 - 1):
        with pytest.raises(ShapeError, match=f"n = {n} is too large"):
            take(np.array([n, 7, 8, 9, 10]))
    assert device.memory_stats()["live_bytes"] == before
    np.testing.assert_array_equal(take(np.array([2, 7])), [2, 7])


def test_a_failing_allocation_between_segments_leaves_the_executable_usable(client: Client) -> None:
    take = client.load(program())
    device = client.devices()[0]
    before = device.memory_stats()["live_bytes"]
    for allocation in (1, 2, 3):  # the arena, the result, the second arena
        client.native_device.fail_allocation(allocation)
        with pytest.raises(MemoryError):
            take(np.array([2, 7]))
        assert device.memory_stats()["live_bytes"] == before
    np.testing.assert_array_equal(take(np.array([2, 7])), [2, 7])


@pytest.mark.parametrize(
    "fields",
    [
        {"segments": 3},
        {"segments": []},
        {"segments": [3]},
        {"segments": [{}]},
        {"symbols_read": [{"name": "n"}]},
        {"results_written": [0]},
        {"results_written": [1]},
        {"results_written": ["0"]},
        {"later": {"results_written": []}},
        {"later": {"results_written": [0, 0]}},
        {"later": {"symbols_read": 1}},
        {"later": {"symbols_read": [{}]}},
        {"later": {"plan_words": 1}},
        {"later": {"checks": [{"kind": "data", "message": "", "operands": [2]}]}},
        {"later": {"entry": {"plan": "disc_plan_2", "run": "disc_run_1"}}},
    ],
)
def test_malformed_segments_are_refused(client: Client, fields: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError):
        client.load(program(**fields))
