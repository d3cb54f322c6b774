# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of one participant, tuples, tokens and barriers vanish; what needs several participants is refused."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp
from jax.sharding import PartitionSpec

import shlo_disc
from shlo_disc.errors import UnsupportedError
from tests.run.op_check import assert_same, check, random_array

ADD = """({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  })"""

COLLECTIVES = {
    "all_reduce": f'"stablehlo.all_reduce"(%x) <{{replica_groups = GROUPS}}> {ADD}',
    "all_gather": '"stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = GROUPS}>',
    "reduce_scatter": f"""\"stablehlo.reduce_scatter\"(%x) <{{scatter_dimension = 0 : i64,
      replica_groups = GROUPS}}> {ADD}""",
    "all_to_all": """"stablehlo.all_to_all"(%x) <{split_dimension = 0 : i64, concat_dimension = 1 : i64,
      split_count = 1 : i64, replica_groups = GROUPS}>""",
    "collective_broadcast": '"stablehlo.collective_broadcast"(%x) <{replica_groups = GROUPS}>',
    "collective_permute": '"stablehlo.collective_permute"(%x) <{source_target_pairs = GROUPS}>',
    "collective_reduce": f'"stablehlo.collective_reduce"(%x) <{{replica_groups = GROUPS}}> {ADD}',
    "cross-replica-sum": '"stablehlo.cross-replica-sum"(%x) {replica_groups = GROUPS}',
}


def collective(name: str, groups: str, matrix: str = "tensor<?x?xf32>", module: str = "module") -> str:
    """A program of one collective over `groups`."""
    return f"""{module} {{ func.func @main(%x: {matrix}) -> {matrix} {{
      %r = {COLLECTIVES[name].replace("GROUPS", groups)} : ({matrix}) -> {matrix}
      return %r : {matrix} }} }}"""


@pytest.mark.parametrize("name", COLLECTIVES)
def test_one_participant(name: str) -> None:
    x = random_array((3, 17), "float32")
    groups = "dense<0> : tensor<1x2xi64>" if name == "collective_permute" else "dense<0> : tensor<1x1xi64>"
    for matrix in ("tensor<?x?xf32>", "tensor<3x17xf32>"):
        assert_same(shlo_disc.compile(collective(name, groups, matrix))(x), x)


def test_what_is_started_is_done() -> None:
    matrix = "tensor<?x?xf32>"
    text = f"""func.func @main(%x: {matrix}) -> {matrix} {{
      %y = stablehlo.negate %x : {matrix}
      %f = "stablehlo.async_start"(%y) ({{
        ^bb0(%c: {matrix}):
          %d = "stablehlo.all_reduce"(%c) <{{replica_groups = dense<0> : tensor<1x1xi64>}}> {ADD}
            : ({matrix}) -> {matrix}
          stablehlo.return %d : {matrix}
      }}) : ({matrix}) -> !stablehlo.future<{matrix}>
      %z = stablehlo.add %x, %x : {matrix}
      %r = "stablehlo.async_done"(%f) : (!stablehlo.future<{matrix}>) -> {matrix}
      %s = stablehlo.subtract %r, %z : {matrix}
      return %s : {matrix} }}"""
    x = random_array((3, 17), "float32")
    assert_same(shlo_disc.compile(text)(x), -x - 2 * x)
    with pytest.raises(UnsupportedError, match="2 participants"):
        shlo_disc.compile(text.replace("dense<0> : tensor<1x1xi64>", "dense<[[0, 1]]> : tensor<1x2xi64>"))


@pytest.mark.parametrize("name", sorted(COLLECTIVES.keys() - {"all_to_all"}))
def test_several_participants_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match="2 participants"):
        shlo_disc.compile(collective(name, "dense<[[0, 1]]> : tensor<1x2xi64>", "tensor<4x4xf32>"))


def test_modules_for_several_participants_are_refused() -> None:
    module = "module attributes {mhlo.num_partitions = 4 : i32}"
    text = collective("all_reduce", "dense<0> : tensor<1x1xi64>", module=module)
    with pytest.raises(UnsupportedError, match="4 participants"):
        shlo_disc.compile(text)


def test_nobody_sends() -> None:
    with pytest.raises(UnsupportedError, match="none of its groups"):
        shlo_disc.compile(collective("collective_permute", "dense<> : tensor<0x2xi64>"))


def test_identifiers() -> None:
    text = """func.func @main() -> (tensor<ui32>, tensor<ui32>) {
      %p = stablehlo.partition_id : tensor<ui32>
      %r = stablehlo.replica_id : tensor<ui32>
      return %p, %r : tensor<ui32>, tensor<ui32> }"""
    assert_same(shlo_disc.compile(text)(), [np.uint32(0), np.uint32(0)])


def test_tuples_tokens_and_barriers() -> None:
    text = """func.func @main(%x: tensor<?xf32>, %i: tensor<i64>) -> (tensor<?xf32>, tensor<i64>) {
      %t = stablehlo.create_token : !stablehlo.token
      %u = stablehlo.after_all %t, %t : !stablehlo.token
      %inner = stablehlo.tuple %i, %u : tuple<tensor<i64>, !stablehlo.token>
      %outer = stablehlo.tuple %inner, %x : tuple<tuple<tensor<i64>, !stablehlo.token>, tensor<?xf32>>
      %a = stablehlo.get_tuple_element %outer[0]
        : (tuple<tuple<tensor<i64>, !stablehlo.token>, tensor<?xf32>>) -> tuple<tensor<i64>, !stablehlo.token>
      %b = stablehlo.get_tuple_element %a[0] : (tuple<tensor<i64>, !stablehlo.token>) -> tensor<i64>
      %c = stablehlo.get_tuple_element %outer[1]
        : (tuple<tuple<tensor<i64>, !stablehlo.token>, tensor<?xf32>>) -> tensor<?xf32>
      %d:2 = stablehlo.optimization_barrier %c, %b : tensor<?xf32>, tensor<i64>
      return %d#0, %d#1 : tensor<?xf32>, tensor<i64> }"""
    x, i = random_array((17,), "float32"), np.array(5)
    assert_same(shlo_disc.compile(text)(x, i), [x, i])


REFUSED = {
    "a tuple as a result": """func.func @main(%x: tensor<f32>) -> tuple<tensor<f32>> {
      %t = stablehlo.tuple %x : tuple<tensor<f32>>
      return %t : tuple<tensor<f32>> }""",
    "a token as an argument": """func.func @main(%x: tensor<f32>, %t: !stablehlo.token) -> tensor<f32> {
      return %x : tensor<f32> }""",
    "infeed": """func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %t = stablehlo.after_all : !stablehlo.token
      %r, %u = "stablehlo.infeed"(%t) : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token)
      return %r : tensor<f32> }""",
    "send": """func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %t = stablehlo.after_all : !stablehlo.token
      %u = "stablehlo.send"(%x, %t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>,
        is_host_transfer = true}> : (tensor<f32>, !stablehlo.token) -> !stablehlo.token
      return %x : tensor<f32> }""",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match="tuple|token|infeed|send"):
        shlo_disc.compile(REFUSED[name])


def test_collectives_of_jax_over_a_mesh_of_one() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("i",))

    def function(x: jax.Array) -> jax.Array:
        return lax.psum(x * 2, "i") + lax.all_gather(x, "i", tiled=True) - lax.axis_index("i")

    sharded = jax.shard_map(
        function, mesh=mesh, in_specs=PartitionSpec("i"), out_specs=PartitionSpec("i"), check_vma=False
    )
    check(lambda x: jnp.tanh(sharded(x)), [("n, 4", "float32")], [{"n": n} for n in (1, 15, 16, 33)], ulps=4)
