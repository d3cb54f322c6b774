# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions whose users say how they are partitioned: `jax.experimental.custom_partitioning`.

JAX lowers such a function to a custom call that names callbacks of its own, in this process. From the shardings of
operands and results they make the program that each device runs on its parts, and the shardings that it wants.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from . import hlo_text
from .meshes import Meshes, unsupported
from .resharding import Placed, bindings, element_of, shape_of
from .sharding import Axes, MeshAxis, Sharding, are_apart, count

if TYPE_CHECKING:
    from .partitioner import Partitioner

TARGET = "CustomSPMDPartitioning"
_RULE = "sdy.sharding_rule"
_ALSO = "write it as a shard_map"


def partition_custom(p: Partitioner, op: Any) -> list[Placed]:
    """Build what each device runs of a custom call to `TARGET`.

    Raises UnsupportedError if the callbacks are not there, as in a program from another process; errors of the
    callbacks pass.
    """
    from jax._src import custom_partitioning as jax_side

    key = bindings().StringAttr(op.attributes["backend_config"]).value.encode()
    if key not in jax_side._sharding_callbacks:
        raise unsupported(
            f"stablehlo.custom_call @{TARGET}", "a function that callbacks of another process partition", instead=_ALSO
        )
    shapes = [_shape_of(v) for v in op.operands]
    given = [_to_hlo(p, p.placed(v).sharding) for v in op.operands]
    made = [_shape_of(v) for v in op.results]
    result = made[0] if len(made) == 1 else type(made[0]).tuple_shape(made)
    wanted = _wanted(p, op, jax_side, shapes, given, result, key)
    whole = wanted[0] if len(made) == 1 else type(wanted[0]).tuple_sharding(result, wanted)
    code, taken, returned = jax_side._custom_partitioning_partition(shapes, given, result, whole, key)
    shardings = [_from_hlo(op, s, v) for s, v in zip(taken, op.operands, strict=True)]
    operands = [Placed(p.sharded(v, s), Sharding.replicated(len(s.dims)))
                for v, s in zip(op.operands, shardings, strict=True)]  # fmt: skip
    module = cast(Any, bindings().Module).parse(code)
    with p.inside_module(module, Meshes(module)):
        results = p.walk_function("main", operands)
    parts = [returned] if len(made) == 1 else returned.tuple_elements()
    return [
        Placed(placed.value, _from_hlo(op, s, v))
        for placed, s, v in zip(results, parts, op.results, strict=True)
    ]  # fmt: skip


def _wanted(
    p: Partitioner, op: Any, jax_side: Any, shapes: list[Any], given: list[Any], result: Any, key: bytes
) -> list[Any]:
    """The shardings that are proposed for the results, in HLO's form: by the rule, or by the inferring callback."""
    if _RULE in op.attributes:
        operands = [p.placed(v).sharding for v in op.operands]
        found = by_rule(op.attributes[_RULE], operands)
        return [_to_hlo(p, s.fitted(shape_of(v))) for s, v in zip(found, op.results, strict=True)]
    if jax_side._sharding_callbacks[key].infer_sharding_from_operands is None:
        return [_to_hlo(p, Sharding.replicated(len(shape_of(v)))) for v in op.results]
    inferred = jax_side._custom_partitioning_infer_sharding_from_operands(shapes, given, result, key)
    return [inferred] if len(op.results) == 1 else list(inferred.tuple_elements())


def by_rule(attribute: Any, operands: Sequence[Sharding]) -> list[Sharding]:
    """The shardings of results that a `#sdy.op_sharding_rule` gives, if operands have these.

    A rule says from which factors the dimensions of operands and results are made. A factor is divided as the first
    operand divides it, unless it has to be whole.
    """
    from jaxlib.mlir.dialects import sdy as bound

    sdy = cast(Any, bound)
    rule = sdy.OpShardingRuleAttr(attribute)
    sizes, whole = list(rule.factor_sizes), set(rule.need_replication_factors)

    def factors(mapping: Any) -> list[list[int]]:
        dims = sdy.TensorMappingAttr(mapping).dim_mappings
        return [list(sdy.DimMappingAttr(dim).factor_indices) for dim in dims]

    chosen: dict[int, Axes] = {}
    used: list[MeshAxis] = []
    for sharding, mapping in zip(operands, rule.operand_mappings, strict=True):
        for axes, dim in zip(sharding.dims, factors(mapping), strict=True):
            for factor, part in _divide(axes, dim, sizes):
                if factor not in chosen and factor not in whole and are_apart(part, used):
                    chosen[factor] = part
                    used += part
    return [
        Sharding(tuple(_together(dim, sizes, chosen) for dim in factors(mapping))) for mapping in rule.result_mappings
    ]


def _divide(axes: Axes, factors: list[int], sizes: list[int]) -> list[tuple[int, Axes]]:
    """The axes of each factor of a dimension, the major one first. A factor behind one that stays in parts has none."""
    found = []
    rest = list(axes)
    for factor in factors:
        part: list[MeshAxis] = []
        while rest and sizes[factor] % (count(part) * rest[0].size) == 0:
            part.append(rest.pop(0))
        found.append((factor, tuple(part)))
        if count(part) < sizes[factor]:
            break
    return found


def _together(factors: list[int], sizes: list[int], chosen: dict[int, Axes]) -> Axes:
    axes: Axes = ()
    for factor in factors:
        part = chosen.get(factor, ())
        axes += part
        if count(part) < sizes[factor]:
            break
    return axes


def _shape_of(value: Any) -> Any:
    """The shape of a value, as XLA's bindings have it."""
    from jaxlib import xla_client

    xla = cast(Any, xla_client)
    name = str(element_of(value))
    plain = {"i1": "PRED", "complex<f32>": "C64", "complex<f64>": "C128"}
    kind = plain.get(name) or re.sub("^I", "S", name.upper()).replace("UI", "U")
    return xla.Shape.array_shape(getattr(xla.PrimitiveType, kind), shape_of(value))


def _to_hlo(p: Partitioner, sharding: Sharding) -> Any:
    from jaxlib import xla_client

    return cast(Any, xla_client).HloSharding.from_string(p.text_of(Placed(None, sharding)))


def _from_hlo(op: Any, sharding: Any, value: Any) -> Sharding:
    """A sharding that callbacks have chosen. Raises UnsupportedError if its kind is not known, or parts are uneven."""
    found = hlo_text.read(str(sharding), len(shape_of(value)))
    if found is None or not found.fits(shape_of(value)):
        raise unsupported(f"{op.operation.name} @{TARGET}", f"the sharding {sharding} of {shape_of(value)}")
    return found


__all__ = ["TARGET", "by_rule", "partition_custom"]
