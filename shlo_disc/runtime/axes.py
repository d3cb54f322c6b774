# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of PyTorch programs: users give them in PyTorch's order of axes, and programs take some in another one.

All of Python speaks of the users' order. The program's own is that of C, and of `weights(as_taken=True)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from shlo_disc.errors import ArtifactError, ShapeError


class Turned(NamedTuple):
    """An argument that a program takes with its axes in another order than users give it.

    path: in the header, such as args[0]. shape: the users'. axes: for each axis of the program the user's.
    """

    path: str
    shape: tuple[int | str, ...]
    axes: tuple[int, ...]

    def taken(self, value: Any) -> Any:
        """An array in the program's order; what is no array as it is. Raises ShapeError for one of another shape."""
        shape = getattr(value, "shape", None)
        if shape is None or isinstance(value, type):
            return value
        self._check(tuple(map(int, shape)))
        if hasattr(value, "permute"):
            return value.permute(self.axes)
        if not hasattr(value, "transpose"):  # such as a Buffer, which is copied anyway
            value = np.asarray(value) if hasattr(value, "__array__") else np.from_dlpack(value)
        return value.transpose(self.axes)

    def _check(self, shape: tuple[int, ...]) -> None:
        """Raises ShapeError in the words of the native core, which knows only the program's order."""
        if len(shape) != len(self.shape):
            raise ShapeError(f"Rank mismatch for {self.path}: {self._rest(shape)}")
        for axis, (size, given) in enumerate(zip(self.shape, shape, strict=True)):
            if size != given and not isinstance(size, str):
                where = f"{self.path}.shape[{axis}]"
                raise ShapeError(f"Shape mismatch for {where} (expected same constant): {self._rest(shape)}")

    def _rest(self, shape: tuple[int, ...]) -> str:
        text = f"expected {_sizes_text(self.shape)} and called with {_sizes_text(shape)}"
        if shape == tuple(self.shape[axis] for axis in self.axes):
            return f"{text}{IN_C}: give it in PyTorch's order of axes, as in module.state_dict()"
        return text


IN_C = ", its shape in C"
"""Part of the error of a weight that has the order of axes of C."""


def turned(row: Mapping[str, Any]) -> Turned | None:
    """The argument of a row of a header, if the program takes it in another order of axes than users give it.

    Raises ArtifactError for axes that are no order.
    """
    axes = tuple(row.get("axes", ()))
    if not axes or axes == tuple(range(len(axes))):
        return None
    if sorted(axes) != list(range(len(row["shape"]))):
        raise ArtifactError(f"header: {list(axes)} is no order of the axes of {row['path']}")
    return Turned(str(row["path"]), users_shape(row), axes)


def users_shape(row: Mapping[str, Any]) -> tuple[int | str, ...]:
    """The shape of an argument of a header in the users' order of axes."""
    return in_users_order(row["shape"], row.get("axes", ()))


def in_users_order(sizes: Sequence[Any], axes: Sequence[int]) -> tuple[Any, ...]:
    """Sizes of the axes of a program, in the users' order. axes: for each axis of the program the user's; () for all
    of them in the same order."""
    if sorted(axes) != list(range(len(sizes))):
        return tuple(sizes)
    own = dict(zip(axes, sizes, strict=True))
    return tuple(own[axis] for axis in range(len(axes)))


def as_taken(sizes: Sequence[Any], axes: Sequence[int]) -> tuple[Any, ...]:
    """Sizes in the users' order, in that of the program."""
    return tuple(sizes[axis] for axis in axes) if len(sizes) == len(axes) else tuple(sizes)


def _sizes_text(sizes: Sequence[int | str]) -> str:
    text = ", ".join(map(str, sizes))
    return f"({text},)" if len(sizes) == 1 else f"({text})"


__all__ = ["IN_C", "Turned", "as_taken", "in_users_order", "turned", "users_shape"]
