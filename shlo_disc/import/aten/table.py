# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which function translates which op. The page `docs/torch-ops.md` is this table."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

Translate = Callable[..., Any]
"""Takes the `Graph` and the op's arguments in the order of its schema, those with defaults filled in; returns a value,
or a tuple of them for an op with several results."""

FAMILIES = (
    "convolutions", "creation", "data_sizes", "elementwise", "indexing", "neural", "ordering", "pooling", "products",
    "random_numbers", "reductions", "shapes",
)  # fmt: skip
"""The files that the functions stand in."""


class Row(NamedTuple):
    """An op: the function that translates it and the family that it is of."""

    translate: Translate
    family: str


_ROWS: dict[str, Row] = {}


def translates(*names: str) -> Callable[[Translate], Translate]:
    """Makes a function the translation of overloads, e.g. "add.Tensor"; "relu" stands for "relu.default"."""

    def register(function: Translate) -> Translate:
        for name in names:
            add(name, function)
        return function

    return register


def add(name: str, function: Translate) -> None:
    """Enter a function under one overload's name. Raises ValueError for a second one."""
    full = name if "." in name else f"{name}.default"
    if full in _ROWS:
        raise ValueError(f"aten.{full} has two translations")
    _ROWS[full] = Row(function, function.__module__.rpartition(".")[2])


def rows() -> dict[str, Row]:
    """All overloads that there are translations of, e.g. "add.Tensor", by name."""
    for family in FAMILIES:
        importlib.import_module(f"{__package__}.{family}")
    return _ROWS


def name_of(target: Any) -> str:
    """The name that an op has in the table; "" for one that is neither of ATen nor of PyTorch's primitives."""
    name = str(target)
    return name.removeprefix("aten.") if name.startswith(("aten.", "prims.")) else ""
