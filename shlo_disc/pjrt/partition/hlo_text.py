# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardings in HLO's text: `{devices=[2,1,4]<=[2,4]T(1,0) last_tile_dim_replicate}`.

Devices are laid out over a grid, here by transposing a grid in the order of their numbers; the grid's dimensions are
those of the array, and one more along which elements repeat.
"""

from __future__ import annotations

import re
from itertools import accumulate, product
from math import prod

from .sharding import Axes, MeshAxis, Sharding, count, prime_axes

_TILED = re.compile(r"\{devices=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?( last_tile_dim_replicate)?\}")


def read(text: str, rank: int) -> Sharding | None:
    """The sharding of an array; None when it is of a kind that is not known here."""
    if text in ("{replicated}", "{manual}", "{maximal device=0}"):
        return Sharding.replicated(rank)
    found = _TILED.fullmatch(text)
    if found is None:
        return None
    tiles, grid, order = (_numbers(part) for part in found.groups()[:3])
    strides = list(accumulate(reversed(grid), lambda a, b: a * b, initial=1))[-2::-1]
    digits = [(strides[i], grid[i]) for i in order or range(len(grid))]
    dims = _divide(digits, tiles)
    has_rest = found[4] is not None
    if dims is None or len(dims) != rank + has_rest:
        return None
    return Sharding(tuple(dims[:rank]))


def _numbers(text: str | None) -> list[int]:
    return [int(part) for part in text.split(",")] if text else []


def _divide(digits: list[tuple[int, int]], tiles: list[int]) -> list[Axes] | None:
    """Digits (stride, size), the major one first, divided over dimensions of these sizes."""
    dims: list[Axes] = []
    rest = list(reversed(digits))
    for tile in tiles:
        taken: list[MeshAxis] = []
        while count(taken) < tile and rest:
            stride, size = rest.pop()
            part = min(size, tile // count(taken))
            if size % part:
                return None
            taken += prime_axes(stride * (size // part), part)
            if part < size:
                rest.append((stride, size // part))
        if count(taken) != tile:
            return None
        dims.append(tuple(taken))
    return dims


def write(sharding: Sharding, devices: int, sums: Axes = ()) -> str | None:
    """The text of a sharding that is unreduced along `sums`; None when the axes are no digits of one grid."""
    used = sharding.axes
    if not used and not sums:
        return "{replicated}"
    grid = _grid((*used, *sums), devices)
    if grid is None:
        return None
    unused = tuple(axis for axis in grid if axis not in used and axis not in sums)
    if not used and not unused:
        return "{unreduced}"
    sums = tuple(axis for axis in grid if axis in sums)
    tiles = [*map(count, sharding.dims), *(count(axes) for axes in (sums, unused) if axes)]
    rest = _rest(sums, unused)
    if grid[0].order:
        return _listed(tiles, [*used, *sums, *unused], rest)
    sizes, order = _joined(grid, [grid.index(axis) for axis in (*used, *sums, *unused)])
    turn = f"T({','.join(map(str, order))})" if len(order) > 1 else ""
    return f"{{devices=[{','.join(map(str, tiles))}]<=[{','.join(map(str, sizes))}]{turn}{rest}}}"


def _rest(sums: Axes, unused: Axes) -> str:
    """The kinds of the grid's dimensions behind those of the array."""
    if not sums:
        return " last_tile_dim_replicate" if unused else ""
    return f" last_tile_dims={{unreduced{', replicated' if unused else ''}}}"


def _listed(tiles: list[int], digits: list[MeshAxis], rest: str) -> str:
    """The text for a mesh of another order: the devices one by one, along the digits, the major one first."""
    places = (
        sum(n * axis.stride for n, axis in zip(numbers, digits, strict=True))
        for numbers in product(*(range(axis.size) for axis in digits))
    )
    devices = ",".join(str(digits[0].order[place]) for place in places)
    return f"{{devices=[{','.join(map(str, tiles))}]{devices}{rest}}}"


def _joined(grid: list[MeshAxis], order: list[int]) -> tuple[list[int], list[int]]:
    """The sizes and the order of a grid's digits, where those that follow each other in both are one."""
    runs = [[order[0]]]
    for position in order[1:]:
        if position == runs[-1][-1] + 1:
            runs[-1].append(position)
        else:
            runs.append([position])
    sizes = [prod(grid[i].size for i in run) for run in sorted(runs)]
    return sizes, [sorted(runs).index(run) for run in runs]


def _grid(used: Axes, devices: int) -> list[MeshAxis] | None:
    """The digits of all device numbers, the major one first, `used` among them."""
    grid: list[MeshAxis] = []
    above = devices
    for axis in sorted(used, reverse=True):
        top = axis.stride * axis.size
        if above % top:
            return None
        grid += [*prime_axes(top, above // top, axis.order), axis]
        above = axis.stride
    return [*grid, *prime_axes(1, above, used[0].order)]
