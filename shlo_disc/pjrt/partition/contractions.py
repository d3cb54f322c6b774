# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products of parts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .resharding import Placed
from .sharding import Axes, MeshAxis, Sharding, are_apart

if TYPE_CHECKING:
    from .partitioner import Partitioner


def dot_general(p: Partitioner, op: Any) -> list[Placed]:
    """Rows, columns and batches keep their axes; where the summed dimensions are shared, sums of parts are added."""
    left, right = op.operands
    batch, summed = _dimensions(op)
    a, b = (list(p.placed(v).sharding.dims) for v in (left, right))
    used: list[MeshAxis] = []

    def keep(*choices: Axes) -> Axes:
        """The first choice that says something and depends on nothing before."""
        for axes in choices:
            if axes and are_apart(axes, used):
                used.extend(axes)
                return axes
        return ()

    for i, j in batch:
        a[i] = b[j] = keep(a[i], b[j])
    both = {(i, j): keep(a[i]) for i, j in summed if a[i] == b[j]}
    free = [d for d in range(len(a)) if d not in {i for i, _ in (*batch, *summed)}]
    other = [d for d in range(len(b)) if d not in {j for _, j in (*batch, *summed)}]
    for dims, chosen in ((a, free), (b, other)):
        for d in chosen:
            dims[d] = keep(dims[d])
    for i, j in summed:
        a[i] = b[j] = both[i, j] if (i, j) in both else keep(a[i], b[j])
    result = Sharding((*(a[i] for i, _ in batch), *(a[d] for d in free), *(b[d] for d in other)))
    operands = [p.sharded(v, Sharding(tuple(dims))) for v, dims in ((left, a), (right, b))]
    (placed,) = p.clone(op, operands, [result])
    axes = tuple(axis for i, _ in summed for axis in a[i])
    return [p.add_parts(placed, axes, op.results[0]) if axes else placed]


def _dimensions(op: Any) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The dimensions of both operands that are batches, and those that are summed over."""
    text = str(op.attributes["dot_dimension_numbers"])

    def listed(name: str) -> list[int]:
        found = re.search(rf"{name} = \[([\d, ]*)\]", text)
        return [int(n) for n in found[1].split(",")] if found and found[1].strip() else []

    batch = zip(listed("lhs_batching_dimensions"), listed("rhs_batching_dimensions"), strict=True)
    summed = zip(listed("lhs_contracting_dimensions"), listed("rhs_contracting_dimensions"), strict=True)
    return list(batch), list(summed)
