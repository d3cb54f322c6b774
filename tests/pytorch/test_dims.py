# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that programs take by the bounds of the user's `Dim`s, which are exported, saved and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.errors import ShapeError  # noqa: E402

Dim = torch.export.Dim
LAYER = torch.nn.Linear(4, 3)
ALL = {0, 1, 2, 3, 4, 5}
DIMS: dict[str, tuple[Any, set[int], set[int]]] = {
    "no bounds": (Dim("b"), ALL, ALL),
    "0": (Dim("b", min=0), ALL, ALL),
    "1": (Dim("b", min=1), ALL - {0}, ALL - {0}),
    "2": (Dim("b", min=2), {2, 3, 4, 5}, ALL),
    "3": (Dim("b", min=3), {3, 4, 5}, {3, 4, 5}),
    "2 to 4": (Dim("b", min=2, max=4), {2, 3, 4}, ALL - {5}),
    "a hint": (Dim.DYNAMIC, ALL, ALL),
    "a hint of PyTorch's choice": (Dim.AUTO, ALL, ALL),
    "a hint of 2": (Dim.DYNAMIC(min=2), ALL, ALL),
    "a hint of 3": (Dim.DYNAMIC(min=3), {3, 4, 5}, {3, 4, 5}),
}
"""Bounds, the sizes that an exported program takes, and those that one takes which was saved and loaded."""


def taken(program: Any) -> set[int]:
    """The numbers of rows that a program takes."""
    run, found = shlo_disc.compile(program), set()
    for rows in ALL:
        x = torch.ones(rows, 4)
        with torch.no_grad():
            try:
                torch.testing.assert_close(run(x), LAYER(x))
            except ShapeError as error:
                assert "range, which" in str(error) or "no value of" in str(error)
            else:
                found.add(rows)
    return found


@pytest.mark.parametrize("name", DIMS)
@pytest.mark.parametrize("export", [torch.export.export, shlo_disc.torch.export])
def test_bounds(name: str, export: Any, tmp_path: Path) -> None:
    dim, sizes, of_file = DIMS[name]
    program = export(LAYER, (torch.ones(4, 4),), dynamic_shapes=({0: dim},))
    assert taken(program) == sizes
    if export is torch.export.export:
        torch.export.save(program, tmp_path / "layer.pt2")
        assert taken(torch.export.load(tmp_path / "layer.pt2")) == of_file


@pytest.mark.parametrize(("least", "sizes"), [(None, {0, 2, 4}), (0, {0, 2, 4}), (1, {2, 4}), (2, {4})])
def test_bounds_of_multiples(least: int | None, sizes: set[int]) -> None:
    program = torch.export.export(LAYER, (torch.ones(4, 4),), dynamic_shapes=({0: 2 * Dim("h", min=least)},))
    assert taken(program) == sizes


def test_bounds_in_two_arguments() -> None:
    """The message names the `Dim`, and the remedy, another bound, makes a program for the size."""

    class Added(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x + y

    one, two = torch.ones(1, 4), torch.ones(2, 4)
    for least in (2, 1):
        rows = Dim("rows", min=least)
        run = shlo_disc.compile(torch.export.export(Added(), (two, two.clone()), dynamic_shapes=({0: rows}, {0: rows})))
        if least == 2:
            with pytest.raises(ShapeError, match="rows is below its range, which starts at 2, by min= of its Dim"):
                run(one, one)
        else:
            torch.testing.assert_close(run(one, one), 2 * one)
