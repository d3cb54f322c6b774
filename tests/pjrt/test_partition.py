# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardings and their text, against JAX's own; the groups of collectives, against StableHLO's specification."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from jax._src.interpreters import mlir
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from jaxlib.mlir import ir as jaxlib_ir

from shlo_disc.errors import UnsupportedError
from shlo_disc.pjrt.partition import hlo_text, meshes, partition
from shlo_disc.pjrt.partition.custom import by_rule
from shlo_disc.pjrt.partition.sharding import Axes, MeshAxis, Sharding, common_prefix, groups, merged, prime_axes
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.collectives import groups_of


def random_case(seed: int) -> tuple[int, NamedSharding, Sharding]:
    """A number of devices, and a sharding over them as JAX's and as ours."""
    draw = random.Random(seed)
    devices = rest = draw.choice([2, 4, 6, 8, 12, 24])
    sizes = []
    while rest > 1:
        sizes.append(draw.choice([d for d in range(2, rest + 1) if rest % d == 0]))
        rest //= sizes[-1]
    names = [f"axis{i}" for i in range(len(sizes))]
    free = draw.sample(names, len(names))
    spec = []
    for _ in range(draw.randint(1, 4)):
        taken, free = free[: (number := draw.choice([0, 0, 1, 1, 2]))], free[number:]
        spec.append(tuple(taken))
    theirs = NamedSharding(AbstractMesh(tuple(sizes), tuple(names)), PartitionSpec(*(s or None for s in spec)))
    axes: dict[str, Axes] = {}
    stride = 1
    for name, size in reversed(list(zip(names, sizes, strict=True))):
        axes[name] = prime_axes(stride, size)
        stride *= size
    return devices, theirs, Sharding(tuple(tuple(a for name in names for a in axes[name]) for names in spec))


def parts(sharding: Sharding, devices: int) -> list[list[int]]:
    """For each device, the number of its part along each dimension."""

    def part(device: int, axes: Axes) -> int:
        number = 0
        for axis in axes:
            number = number * axis.size + device // axis.stride % axis.size
        return number

    return [[part(device, axes) for axes in sharding.dims] for device in range(devices)]


@pytest.mark.parametrize("seed", range(60))
def test_text_is_that_of_jax(seed: int) -> None:
    devices, theirs, ours = random_case(seed)
    rank = len(ours.dims)
    text = str(theirs._to_xla_hlo_sharding(rank))
    assert hlo_text.write(ours, devices) == text
    found = hlo_text.read(text, rank)
    assert found is not None
    assert parts(found, devices) == parts(ours, devices)


@pytest.mark.parametrize("seed", range(60))
def test_text_of_unreduced_arrays_is_that_of_jax(seed: int) -> None:
    """Some axes that divide no dimension are unreduced."""
    devices, divided, ours = random_case(seed)
    mesh, rank = divided.mesh, len(ours.dims)
    used = {name for part in divided.spec for name in (part if isinstance(part, tuple) else (part,))}
    free = [name for name in mesh.axis_names if name not in used]
    left = random.Random(seed).sample(free, random.Random(seed).randint(min(len(free), 1), len(free)))
    explicit = AbstractMesh(mesh.axis_sizes, mesh.axis_names, axis_types=(AxisType.Explicit,) * len(mesh.axis_names))
    theirs = NamedSharding(explicit, PartitionSpec(*divided.spec, unreduced=set(left)))
    strides = np.cumprod([1, *reversed(mesh.axis_sizes)])[-2::-1]
    sizes = dict(zip(mesh.axis_names, zip(strides, mesh.axis_sizes, strict=True), strict=True))
    sums = tuple(axis for name in left for axis in prime_axes(int(sizes[name][0]), sizes[name][1]))
    assert hlo_text.write(ours, devices, sums) == str(theirs._to_xla_hlo_sharding(rank))


def ops_of_arrays(body: str, inward: str, outward: str) -> str:
    """The ops on arrays that a device of two runs, by name: what computes its position is left out."""
    text = f"""module attributes {{mhlo.num_partitions = 2 : i32}} {{
      sdy.mesh @mesh = <["x"=2]>
      func.func public @main(%a: tensor<4xf32> {{sdy.sharding = #sdy.sharding<@mesh, {inward}>}},
                             %b: tensor<4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}, %c: tensor<4xf32>)
          -> (tensor<4xf32> {{sdy.sharding = #sdy.sharding<@mesh, {outward}>}}) {{
        {body}
        return %r : tensor<4xf32>
      }}
    }}"""
    with mlir.make_ir_context(), jaxlib_ir.Location.unknown():
        module: Any = jaxlib_ir.Module.parse(text)
        partition(module, 2)
        (function,) = module.body.operations
        names = [
            op.operation.name.removeprefix("stablehlo.")
            for op in function.regions[0].blocks[0].operations
            if op.results and jaxlib_ir.RankedTensorType(op.results[0].type).rank
        ]
    return " ".join(name for name in names if name != "constant")


LEFT, WHOLE = '[{}], unreduced={"x"}', "[{}]"


@pytest.mark.parametrize(
    ("body", "inward", "outward", "expected"),
    [
        ("%r = stablehlo.add %a, %a", LEFT, LEFT, "add"),
        ("%r = stablehlo.add %a, %a", LEFT, WHOLE, "add all_reduce"),
        ("%r = stablehlo.tanh %a", LEFT, WHOLE, "all_reduce tanh"),
        ("%r = stablehlo.multiply %a, %a", LEFT, WHOLE, "all_reduce multiply"),
        ("%r = stablehlo.multiply %a, %c", LEFT, LEFT, "multiply"),
        ("%r = stablehlo.multiply %c, %a", LEFT, WHOLE, "multiply all_reduce"),
        # the factor is divided along the very axis, so a device lacks what its summand is to be multiplied with
        ("%r = stablehlo.multiply %a, %b", LEFT, WHOLE, "all_reduce dynamic_slice multiply all_gather"),
        ("%r = stablehlo.add %a, %c", LEFT, WHOLE, "all_reduce add"),
        ("%0 = stablehlo.tanh %a; %1 = stablehlo.cosine %a; %r = stablehlo.add %0, %1", LEFT, WHOLE,
         "all_reduce tanh cosine add"),
        ("%r = stablehlo.add %b, %b", WHOLE, LEFT, "add dynamic_update_slice"),
        ("%r = stablehlo.add %c, %c", WHOLE, LEFT, "add select"),
    ],
)  # fmt: skip
def test_sums_of_unreduced_arrays(body: str, inward: str, outward: str, expected: str) -> None:
    """Sums are made once, where an op that is not linear uses them, or where the program states that they are made."""
    lines = "\n".join(f"{line.strip()} : tensor<4xf32>" for line in body.split(";"))
    assert ops_of_arrays(lines, inward, outward) == expected


@pytest.mark.parametrize(
    ("middle", "expected"), [("i32", "all_reduce convert convert"), ("bf16", "convert convert all_reduce")]
)
def test_conversions_of_unreduced_arrays(middle: str, expected: str) -> None:
    """Rounding to integers is not linear."""
    there = f"%0 = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4x{middle}>"
    back = f"%r = stablehlo.convert %0 : (tensor<4x{middle}>) -> tensor<4xf32>"
    assert ops_of_arrays(f"{there}\n{back}", LEFT, WHOLE) == expected


@pytest.mark.parametrize("kind", ["MAX", "MIN"])
def test_arrays_that_are_no_sums(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The bindings of jaxlib before 0.12 do not have the kind."""
    stated = SimpleNamespace(unreduced_axes=["x"], reduction_op=SimpleNamespace(name=kind))
    monkeypatch.setattr(meshes, "_dialect", lambda: SimpleNamespace(TensorShardingAttr=lambda _: stated))
    with pytest.raises(UnsupportedError, match=f"unreduced by {kind.lower()}"):
        meshes.Meshes.unreduced_axes(cast(Any, None), None)


def rule(text: str, *operands: Sharding) -> list[Sharding]:
    """The shardings of results by a rule of Shardy."""
    with mlir.make_ir_context():
        return by_rule(jaxlib_ir.Attribute.parse(f"#sdy.op_sharding_rule<{text}>"), operands)


def test_shardings_by_rules() -> None:
    x, y = (MeshAxis(2, 2),), (MeshAxis(1, 2),)
    product = "([i, j], [j, k])->([i, k], [k]) {i=8, j=4, k=6}"
    assert rule(product, Sharding((x, y)), Sharding((y, ()))) == [Sharding((x, ())), Sharding(((),))]
    assert rule(product, Sharding((x, ())), Sharding(((), y))) == [Sharding((x, y)), Sharding((y,))]
    assert rule(product, Sharding((x, ())), Sharding(((), x))) == [Sharding((x, ())), Sharding(((),))]  # one x only
    assert rule(f"{product} need_replication={{i}}", Sharding((x, ())), Sharding(((), y)))[0] == Sharding(((), y))
    joined = "([ij])->([i, j]) {i=2, j=4}"
    assert rule(joined, Sharding((x + y,))) == [Sharding((x, y))]
    assert rule(joined.replace("i=2", "i=4"), Sharding((x + y,))) == [Sharding((x + y, ()))]
    assert rule(joined.replace("i=2", "i=3"), Sharding((x,))) == [Sharding(((), ()))]  # half of three times four
    assert rule("([i, j])->([ij]) {i=2, j=4}", Sharding((x, y))) == [Sharding((x + y,))]
    assert rule("([i, j])->([ij]) {i=4, j=4}", Sharding((x, y))) == [Sharding((x,))]  # i stays in parts
    assert rule("([i, j])->([ij]) {i=2, j=4}", Sharding(((), y))) == [Sharding(((),))]


def test_callbacks_of_another_process() -> None:
    call = 'stablehlo.custom_call @CustomSPMDPartitioning(%c) {backend_config = "1"} : (tensor<4xf32>) -> tensor<4xf32>'
    with pytest.raises(UnsupportedError, match="callbacks of another process"):
        ops_of_arrays(f"%r = {call}", WHOLE, WHOLE)


def test_text_that_is_not_known() -> None:
    assert hlo_text.read("{devices=[2,2]<=[4] last_tile_dims={manual}}", 1) is None
    assert hlo_text.read("{devices=[2,2]<=[4]}", 1) is None
    assert hlo_text.write(Sharding(((MeshAxis(3, 2),), (MeshAxis(2, 3),))), 6) is None


def test_groups_differ_along_their_axes() -> None:
    assert groups((MeshAxis(2, 2), MeshAxis(1, 2)), 4) == [[0, 1, 2, 3]]
    assert groups((MeshAxis(1, 2), MeshAxis(2, 2)), 4) == [[0, 2, 1, 3]]
    assert groups((MeshAxis(2, 2),), 8) == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert groups((MeshAxis(3, 2),), 6) == [[0, 3], [1, 4], [2, 5]]


def test_axes_are_used_once() -> None:
    x, y = (MeshAxis(2, 2),), (MeshAxis(1, 2),)
    assert merged([Sharding((x, ())), Sharding(((), x))], 2) == Sharding((x, ()))
    assert merged([Sharding((x, ())), Sharding((y, y))], 2) == Sharding((x, y))
    assert not MeshAxis(3, 2).is_apart_from(MeshAxis(2, 3))
    assert common_prefix(x + y, y + x) == ()
    assert common_prefix(x + y, x) == x


GLOBAL = ", use_global_device_ids"


@pytest.mark.parametrize(
    ("stated", "channel", "flags", "expected"),
    [
        ("[[0, 1]]", 0, "", [[0, 2], [1, 3]]),
        ("[[1, 0]]", 0, "", [[2, 0], [3, 1]]),
        ("[[0], [1]]", 0, "", [[0], [2], [1], [3]]),
        ("[[0, 1]]", 1, "", [[0, 2, 1, 3]]),
        ("[[0], [1]]", 1, "", [[0, 1], [2, 3]]),
        ("[[0, 3], [2, 1]]", 1, GLOBAL, [[0, 3], [2, 1]]),
        ("", 0, "", [[0, 2], [1, 3]]),
        ("", 1, "", [[0, 2, 1, 3]]),
        ("[[0, -1], [1, 2]]", 1, GLOBAL, [[0], [1, 2]]),
    ],
)
def test_groups_of_reductions(stated: str, channel: int, flags: str, expected: list[list[int]]) -> None:
    """Two replicas of two partitions: 0 and 1 are the first replica."""
    handle = f", channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 0>" if channel else ""
    text = f"""%0 = "stablehlo.all_reduce"(%x) <{{replica_groups = {dense(stated)}{handle}{flags}}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }}) : (tensor<4xf32>) -> tensor<4xf32>"""
    assert groups_in(text) == expected


@pytest.mark.parametrize(("channel", "expected"), [(0, [[0, 2], [1, 3]]), (1, [[0, 1], [2, 3]])])
def test_groups_of_movements(channel: int, expected: list[list[int]]) -> None:
    handle = f", channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 0>" if channel else ""
    pairs = f"source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>{handle}"
    text = f'%0 = "stablehlo.collective_permute"(%x) <{{{pairs}}}> : (tensor<4xf32>) -> tensor<4xf32>'
    assert groups_in(text) == expected


def test_groups_of_participants_that_are_not_there() -> None:
    groups = "replica_groups = dense<[[0, 2]]> : tensor<1x2xi64>"
    with pytest.raises(ValueError, match="more than the 2 participants"):
        groups_in(f'%0 = "stablehlo.collective_broadcast"(%x) <{{{groups}}}> : (tensor<4xf32>) -> tensor<4xf32>')


def dense(rows: str) -> str:
    """A list of lists as an attribute."""
    found = np.array(json.loads(rows)) if rows else np.zeros((0, 0), int)
    return f"dense<{rows}> : tensor<{found.shape[0]}x{found.shape[1]}xi64>"


def groups_in(text: str) -> list[list[int]]:
    """The groups of an op in a module of two replicas and two partitions."""
    counts = "mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 2 : i32"
    with make_context() as context:
        module = ir.Module.parse(
            f"module attributes {{{counts}}} {{ func.func @main(%x: tensor<4xf32>) {{ {text}\n return }} }}", context
        )
        return groups_of(module.body.operations[0].regions[0].blocks[0].operations[0])
