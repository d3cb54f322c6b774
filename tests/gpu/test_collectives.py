# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of several GPUs, over mocks of the driver and of NCCL: each row of the table of ops that is a collective.

Results are those of the program for processors, which tests/pjrt/test_devices.py compares with XLA's, and of NumPy.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import shlo_disc
from shlo_disc.errors import ArtifactError, CustomCallError, DeviceError, UnsupportedError
from shlo_disc.runtime import Client, cuda_libraries
from shlo_disc.shape_dialect.dtypes import BY_MLIR, numpy_dtype
from shlo_disc.shape_dialect.ops import TABLE
from tests.gpu import mock_nccl as mocks
from tests.gpu.checks import TARGET
from tests.gpu.collective_programs import ALL, CROSSED, PAIRS, collective, gpus, load, on_cpus, on_gpus
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_driver import MockDriver
from tests.gpu.mock_nccl import MockNccl
from tests.run.op_check import assert_same

pytestmark = needs_mock_driver

CIRCLE = [[0, 2], [2, 3], [3, 1], [1, 0]]

OPS = ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "reduce_scatter")
ROWS = [(op, t) for op in OPS for t in sorted(TABLE[f"stablehlo.{op}"].on_gpus)]


@pytest.fixture
def nccl(driver: MockDriver) -> Iterator[MockNccl]:
    """The library, whose caller must make no mistake."""
    found = mocks.mock_nccl()
    found.mistakes.clear()
    found.calls.clear()
    yield found
    assert found.mistakes == []
    found.fails.clear()


def shards_of(t: str, n: int, count: int = 4) -> list[np.ndarray]:
    """Whole numbers near zero, so that sums are exact in any order."""
    rng, kind = np.random.default_rng([n, count]), numpy_dtype(BY_MLIR[t])
    if t == "f8E8M0FNU":
        return [np.exp2(rng.integers(0, 3, (n, 4))).astype(kind) for _ in range(count)]
    low, high = (0, 2) if t == "i1" or t.startswith("ui") or t in ("i2", "i4") else (-3, 4)
    found = [rng.integers(low, high, (n, 4)) for _ in range(count)]
    if t.startswith("complex"):
        return [(a + 1j * rng.integers(low, high, (n, 4))).astype(kind) for a in found]
    return [a.astype(kind) for a in found]


def comparable(array: Any) -> np.ndarray:
    found = np.asarray(array)
    return found.astype(np.float32) if found.dtype.kind not in "biufc" or found.dtype.itemsize == 1 else found


def same_as_cpus(text: str, t: str, sizes: tuple[int, ...], devices: int = 4) -> None:
    run = on_gpus(text, devices)
    for n in sizes:
        shards = shards_of(t, n, devices)
        wanted = on_cpus(text, shards)
        for got, want in zip(run.execute_sharded([[shard] for shard in shards], output="numpy"), wanted, strict=True):
            assert_same(comparable(got), comparable(want))


def test_every_row_is_here() -> None:
    assert len(ROWS) == sum(len(TABLE[f"stablehlo.{op}"].dtypes) for op in OPS) > 150


@pytest.mark.parametrize(("op", "t"), ROWS, ids=[f"{op}-{t}" for op, t in ROWS])
def test_row(nccl: MockNccl, op: str, t: str) -> None:
    if op == "collective_permute":
        same_as_cpus(collective(op, t, [[0, 1], [2, 0]], devices=3), t, (2,), 3)
    else:
        same_as_cpus(collective(op, t, [[1, 0]], devices=2), t, (2,), 2)


LAYOUTS = {
    "all_gather": [(0, 0), (1, 0)],
    "all_reduce": [(0, 0)],
    "all_to_all": [(0, 0), (0, 1), (1, 0), (1, 1)],
    "collective_broadcast": [(0, 0)],
    "collective_permute": [(0, 0)],
    "reduce_scatter": [(0, 0), (1, 0)],
}


@pytest.mark.parametrize(("op", "axis", "to"), [(op, *axes) for op, many in LAYOUTS.items() for axes in many])
def test_sizes_and_axes(nccl: MockNccl, op: str, axis: int, to: int) -> None:
    cuts = op in ("all_to_all", "reduce_scatter") and axis == 0
    for groups in (PAIRS, CROSSED, ALL) if op != "collective_permute" else (PAIRS, CIRCLE):
        sizes = tuple(n * len(groups[0]) for n in (0, 1, 5)) if cuts else (0, 1, 7, 67)
        same_as_cpus(collective(op, "f32", groups, axis, to), "f32", sizes)


REDUCTIONS = [(by, t) for by in ("multiply", "maximum", "minimum") for t in ("f16", "f32", "i8", "ui64", "i1")]
REDUCTIONS += [(by, t) for by in ("and", "or", "xor") for t in ("i1", "i32")]
REDUCTIONS += [("multiply", "complex<f32>"), ("multiply", "complex<f64>")]


@pytest.mark.parametrize("op", ["all_reduce", "reduce_scatter"])
@pytest.mark.parametrize(("by", "t"), REDUCTIONS)
def test_reductions(nccl: MockNccl, op: str, by: str, t: str) -> None:
    same_as_cpus(collective(op, t, CROSSED, 1, by=by), t, (3,))


@pytest.mark.parametrize("by", ["maximum", "minimum"])
def test_not_a_number_stays(nccl: MockNccl, by: str) -> None:
    """NCCL's maximum and minimum of floats pass over NaN: they are not used."""
    run = on_gpus(collective("all_reduce", "f32", [[0, 1]], by=by, devices=2), 2)
    shards = [np.array([[np.nan, 1, -np.inf, 0]], np.float32), np.array([[1, np.nan, 2, -1]], np.float32)]
    wanted = (np.maximum if by == "maximum" else np.minimum)(*shards)
    for got in run.execute_sharded([[shard] for shard in shards]):
        np.testing.assert_array_equal(got, wanted)


def test_groups_of_several_sizes(nccl: MockNccl) -> None:
    """One of a single member is a copy; who is in none is given zeros, or no such program is there."""
    same_as_cpus(collective("all_reduce", "f32", [[2, 0, 1], [3]]), "f32", (0, 5))
    same_as_cpus(collective("collective_broadcast", "f32", [[1, 0]]), "f32", (5,))
    same_as_cpus(collective("collective_broadcast", "f32", [[3], [1]]), "f32", (5,))
    same_as_cpus(collective("collective_permute", "f32", [[1, 1], [2, 0]]), "f32", (5,))
    same_as_cpus(collective("collective_permute", "f32", [[2, 2]]), "f32", (5,))
    with pytest.raises(UnsupportedError, match="all_reduce.*different sizes"):
        shlo_disc.compile(
            collective("all_reduce", "f32", [[2, 0, 1], [3]], by="maximum"),
            target=TARGET,
            options=shlo_disc.Options(replicas=4),
        )


IDENTIFIERS = """module attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<f32>) -> (tensor<ui32>, tensor<ui32>) {
    %p = stablehlo.partition_id : tensor<ui32>
    %r = stablehlo.replica_id : tensor<ui32>
    return %p, %r : tensor<ui32>, tensor<ui32> } }"""


def test_identifiers(nccl: MockNccl) -> None:
    found = on_gpus(IDENTIFIERS).execute_sharded([[np.float32(0)]] * 4)
    assert [(int(p), int(r)) for p, r in found] == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_like_xla(nccl: MockNccl) -> None:
    """JAX's collectives along a mapped axis, by XLA, and the same in StableHLO."""
    shards = np.stack(shards_of("f32", 4))
    wanted = {
        collective("all_reduce", "f32", ALL): lambda x: lax.psum(x, "i"),
        collective("all_reduce", "f32", ALL, by="minimum"): lambda x: lax.pmin(x, "i"),
        collective("all_gather", "f32", ALL, 1): lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
        collective("reduce_scatter", "f32", ALL, 1): lambda x: lax.psum_scatter(
            x, "i", scatter_dimension=1, tiled=True
        ),
        collective("all_to_all", "f32", ALL, 0, 1): lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True),
        collective("collective_permute", "f32", CIRCLE): lambda x: lax.ppermute(x, "i", CIRCLE),
    }
    for text, function in wanted.items():
        found = on_gpus(text).execute_sharded([[shard] for shard in shards])
        assert_same(np.stack(found), np.asarray(jax.vmap(function, axis_name="i")(shards)))


SUMS_IN_A_LOOP = """module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?xf32>, %n: tensor<i32>) -> tensor<?xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<?xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %s = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %t = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %t : tensor<f32> }) : (tensor<?xf32>) -> tensor<?xf32>
      stablehlo.return %j, %s : tensor<i32>, tensor<?xf32>
    }
    return %r#1 : tensor<?xf32> } }"""


def test_loops(nccl: MockNccl) -> None:
    """Devices that go through a loop as often; those that do not are told so, and the next call is right again."""
    run = on_gpus(SUMS_IN_A_LOOP, 2, gpus(2))
    shards = [np.arange(3, dtype=np.float32), np.ones(3, np.float32)]

    def called(*trips: int) -> list[Any]:
        return run.execute_sharded([[shard, np.int32(n)] for shard, n in zip(shards, trips, strict=True)])

    for got in called(3, 3):
        np.testing.assert_array_equal(got, (shards[0] + shards[1]) * 4)
    with pytest.raises(CustomCallError, match="all_reduce .*wait for others that do not come"):
        called(3, 2)
    np.testing.assert_array_equal(called(1, 1)[1], shards[0] + shards[1])
    assert nccl.calls.count("ncclCommInitAll") == 2 and nccl.calls.count("ncclCommAbort") == 2


def add(devices: int = 2) -> str:
    return collective("all_reduce", "f32", [list(range(devices))], devices=devices)


def test_communicators_are_kept(nccl: MockNccl) -> None:
    """By the GPUs, for all programs; `trim` destroys them."""
    ordinals, x = gpus(2), np.ones((2, 4), np.float32)
    gathers = collective("all_gather", "f32", [[0, 1]], devices=2)
    for run in (on_gpus(add(), 2, ordinals), on_gpus(gathers, 2, ordinals)):
        for _ in range(2):
            run.execute_sharded([[x], [x]])
    assert nccl.calls.count("ncclCommInitAll") == 1
    live = nccl.live
    Client.of_gpu(ordinals).trim()
    assert live > 0 == nccl.live
    np.testing.assert_array_equal(run.execute_sharded([[x], [x]])[0], np.ones((4, 4)))


def test_results_lie_on_their_gpus(nccl: MockNccl) -> None:
    run = on_gpus(add(), 2, gpus(2))
    places = run.devices()[::-1]
    shards = [[np.full((1, 4), k, np.float32)] for k in (1, 2)]
    results = run.execute_sharded(shards, devices=places, output="buffer")
    assert [r.device.id for r in results] == [1, 0]
    np.testing.assert_array_equal(run.execute_sharded([[r] for r in results], devices=places)[0], np.full((1, 4), 6))
    with pytest.raises(ValueError, match="different GPUs"):
        run.execute_sharded(shards, devices=[places[0], places[0]])
    with pytest.raises(ValueError, match="several different ones"):
        Client.of_gpu([3, 3])


def test_what_fails_is_named(nccl: MockNccl) -> None:
    run, x = on_gpus(add(), 2, gpus(2)), np.ones((1, 4), np.float32)
    for function in ("ncclCommInitAll", "ncclAllReduce"):
        nccl.fails[function] = mocks.SYSTEM
        with pytest.raises(DeviceError, match="unhandled system error"):
            run.execute_sharded([[x], [x]])
        np.testing.assert_array_equal(run.execute_sharded([[x], [x]])[0], 2 * x)
    nccl.fails["ncclAllReduce"] = mocks.SYSTEM
    with pytest.raises(DeviceError, match=r"give all_reduce \(line 3\) to GPU"):
        run.execute_sharded([[x], [x]])
    run.execute_sharded([[x], [x]])
    nccl.cliques[-1].error = mocks.REMOTE
    with pytest.raises(DeviceError, match="remote process exited"):
        run.execute_sharded([[x], [x]])
    np.testing.assert_array_equal(run.execute_sharded([[x], [x]])[1], 2 * x)


def test_wrong_calls(nccl: MockNccl) -> None:
    run, x = on_gpus(add(), 2, gpus(2)), np.ones((1, 4), np.float32)
    with pytest.raises(CustomCallError, match="several devices"):
        run(x)
    with pytest.raises(CustomCallError, match="arrays of"):
        run.execute_sharded([[x], [np.ones((2, 4), np.float32)]])
    with pytest.raises(ValueError, match="runs on 2 devices"):
        run.execute_sharded([[x]])
    np.testing.assert_array_equal(run.execute_sharded([[x], [x]])[1], 2 * x)


def test_artifacts(nccl: MockNccl) -> None:
    """They are read back; calls that the runtime does not know are refused."""
    executable = shlo_disc.compile(add(), target=TARGET, options=shlo_disc.Options(replicas=2))
    (call,) = executable.artifact.header["calls"]
    assert (call["target"], call["where"], call["groups"]) == ("collective_all_reduce", "line 3", [[0, 1]])
    run = load(executable, gpus(2))
    again = Client.of_gpu(gpus(2), uses_libraries=False).load(run.serialize(), trust=True)
    assert again.fingerprint == run.fingerprint
    for name, value in (("target", "collective_dance"), ("attributes", {"reduction": 2}), ("groups", [[]])):
        before, call[name] = call[name], value
        with pytest.raises(ArtifactError):
            Client.of_gpu(gpus(2), uses_libraries=False).load(executable.artifact)
        call[name] = before


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_libraries, "_path_of", lambda name: f"/opt/{name}.so")
    assert cuda_libraries.nccl_names() == ["/opt/nccl.so", "libnccl.so.2"]


@pytest.mark.parametrize(("names", "told"), [([], "not installed"), (["libm.so.6"], "has no ncclGetVersion")])
def test_without_the_library(names: list[str], told: str) -> None:
    """In a process of its own, for one opens the library once."""
    code = f"from shlo_disc.runtime import _native; _native.open_nccl({names})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "DeviceError" in found.stderr and told in found.stderr and "nvidia-nccl-cu13" in found.stderr
