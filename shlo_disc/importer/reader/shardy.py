# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs without Shardy, the dialect in which JAX says how arrays lie on several devices.

The compiler's bindings do not know that dialect; JAX's own do. On one device a sharding says nothing.
"""

from __future__ import annotations

from typing import Any, cast

from shlo_disc.errors import Unsupported, UnsupportedError

_DIALECT = "sdy."
_SAME = ("sdy.sharding_constraint", "sdy.reshard", "sdy.propagation_barrier")
_DROPPED = ("sdy.mesh", "sdy.sharding_group")


def remove_shardy(module: Any) -> None:
    """Make a module one for one device. Raises UnsupportedError naming an op that cannot go."""
    _clean(module.operation)


def _clean(op: Any) -> None:
    """Take Shardy out of `op` and all that it holds."""
    for name in [named for named in op.attributes if _is_shardy(named)]:
        del op.attributes[name]
    for listed in ("arg_attrs", "res_attrs"):
        if listed in op.attributes:
            op.attributes[listed] = _without_shardings(op.attributes[listed])
    for region in op.regions:
        for block in region.blocks:
            for inner in list(block.operations):
                _clean(inner.operation)
                _replace(inner.operation)


def _is_shardy(name: Any) -> bool:
    return str(getattr(name, "name", name)).startswith(_DIALECT)


def _without_shardings(attributes: Any) -> Any:
    from jaxlib.mlir import ir

    kept = [{a.name: a.attr for a in cast(Any, ir.DictAttr(entry)) if not _is_shardy(a)} for entry in attributes]
    return ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in kept])


def _replace(op: Any) -> None:
    """The single-device form of an op of Shardy: nothing, its operand, or the ops that it holds."""
    if not op.name.startswith(_DIALECT) or op.name == "sdy.return":
        return
    if op.name in _SAME:
        op.result.replace_all_uses_with(op.operands[0])
    elif op.name == "sdy.manual_computation":
        _inline(op)
    elif op.name not in _DROPPED:
        reason = "shardings over several devices are not supported"
        raise UnsupportedError([Unsupported(op.name, "", str(op.location), reason)])
    op.erase()


def _inline(op: Any) -> None:
    block = op.regions[0].blocks[0]
    for argument, operand in zip(block.arguments, op.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *inner, terminator = list(block.operations)
    for moved in inner:
        moved.operation.move_before(op)
    for result, value in zip(op.results, terminator.operands, strict=True):
        result.replace_all_uses_with(value)
