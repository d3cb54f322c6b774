# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exporting functions with symbolic sizes, arguments for them, and when two results agree."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree

SIZES = tuple(
    dict(zip("btu", sizes, strict=True))
    for sizes in ((5, 7, 6), (1, 1, 1), (0, 3, 2), (2, 0, 4), (3, 17, 1), (16, 8, 15), (1, 33, 31), (13, 1, 64))
)
"""Values of the symbols b, t and u, those of a case that are too small for it taken as its least."""

TOLERANCES = {torch.float32: (2e-5, 1e-5), torch.float64: (1e-12, 1e-12), torch.bfloat16: (2e-2, 1e-2),
              torch.float16: (2e-3, 1e-3), torch.complex64: (2e-5, 1e-5), torch.complex128: (1e-12, 1e-12)}  # fmt: skip
"""Relative and absolute; other kinds have to be equal."""


class _Function(torch.nn.Module):
    def __init__(self, function: Any):
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def _shape(text: str, sizes: dict[str, int], least: int) -> list[int]:
    return [int(part) if part.isdigit() else max(sizes[part], least) for part in text.split(", ")]


def arguments(case: Any, sizes: dict[str, int], seed: int) -> list[torch.Tensor]:
    """Arguments of a case at some sizes."""
    random = torch.Generator().manual_seed(seed)
    kinds = [*case.kinds, *[torch.float32] * len(case.shapes)][: len(case.shapes)]
    found = []
    for shape, kind in zip(case.shapes, kinds, strict=True):
        value = _numbers(case, _shape(shape, sizes, case.least), random)
        if kind.is_complex:
            value = torch.complex(value, _numbers(case, _shape(shape, sizes, case.least), random))
        found.append(value > 0 if kind == torch.bool else value.to(kind))
    return found


def _numbers(case: Any, shape: list[int], random: torch.Generator) -> torch.Tensor:
    return torch.rand(shape, generator=random) * (case.high - case.low) + case.low


def exported(case: Any) -> torch.export.ExportedProgram:
    """A case's function, exported with its symbols."""
    values = arguments(case, {"b": 6, "t": 9, "u": 11}, 0)
    dims = dict.fromkeys("btu", torch.export.Dim.DYNAMIC)
    shapes = tuple(
        {axis: dims[part] for axis, part in enumerate(shape.split(", ")) if part in dims} for shape in case.shapes
    )
    return torch.export.export(_Function(case.function), tuple(values), dynamic_shapes=(shapes,))


def close(found: Any, wanted: Any, what: str) -> None:
    """Raises AssertionError unless two results have one structure, dtypes and shapes, and nearly the same numbers."""
    ours, theirs = _pytree.tree_leaves(found), _pytree.tree_leaves(wanted)
    assert len(ours) == len(theirs), what
    for mine, other in zip(ours, theirs, strict=True):
        if not isinstance(other, torch.Tensor):
            assert mine == other, what
            continue
        relative, absolute = TOLERANCES.get(other.dtype, (0, 0))
        torch.testing.assert_close(
            mine, other, rtol=relative, atol=absolute, equal_nan=True, msg=lambda text: f"{what}: {text}"
        )
