# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The function that translates each op. The page `docs/torch-ops.md` is this table."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

Translate = Callable[..., Any]
"""Takes the `Graph` and the op's arguments in the order of its schema, those with defaults filled in; returns a value,
or a tuple of them for an op with several results."""

FAMILIES = (
    "arithmetic", "attention", "bags", "bits", "complex_numbers", "convolutions", "creation", "data_sizes",
    "distances", "distinct", "elementwise", "exponentials", "fourier", "groups", "indexing", "linear_algebra", "neural",
    "ordering", "padding", "pooling", "products", "random_numbers", "reductions", "resampling", "searching",
    "selection", "shapes", "special",
)  # fmt: skip
"""The files that the functions stand in."""


class Row(NamedTuple):
    """An op: the function that translates it and the family that it is of."""

    translate: Translate
    family: str


_ROWS: dict[str, Row] = {}
_OF_COMPLEX: dict[str, Translate | None] = {}
"""Translations of ops of complex numbers; None where that of reals serves."""


def translates(*names: str, takes_complex: bool = False) -> Callable[[Translate], Translate]:
    """Makes a function the translation of overloads, e.g. "add.Tensor"; "relu" stands for "relu.default".

    takes_complex: of complex numbers too.
    """

    def register(function: Translate) -> Translate:
        for name in names:
            add(name, function)
        if takes_complex:
            take_complex(*names)
        return function

    return register


def add(name: str, function: Translate) -> None:
    """Enter a function under one overload's name. Raises ValueError for a second one."""
    full = full_name(name)
    if full in _ROWS:
        raise ValueError(f"aten.{full} has two translations")
    _ROWS[full] = Row(function, function.__module__.rpartition(".")[2])


def translates_complex(*names: str) -> Callable[[Translate], Translate]:
    """Makes a function the translation of overloads of which a tensor is complex."""

    def register(function: Translate) -> Translate:
        for name in names:
            _OF_COMPLEX[full_name(name)] = function
        return function

    return register


def take_complex(*names: str) -> None:
    """Say of overloads that what translates them of reals is right for complex numbers too."""
    _OF_COMPLEX.update(dict.fromkeys(map(full_name, names)))


def full_name(name: str) -> str:
    """An overload's name; "relu" stands for "relu.default"."""
    return name if "." in name else f"{name}.default"


def rows() -> dict[str, Row]:
    """All overloads that there are translations of, e.g. "add.Tensor", by name."""
    for family in FAMILIES:
        importlib.import_module(f"{__package__}.{family}")
    return _ROWS


def complex_names() -> frozenset[str]:
    """All overloads that take complex numbers."""
    return frozenset(_OF_COMPLEX) & rows().keys()


def translation(name: str, is_complex: bool) -> Translate | None:
    """The translation of an overload, one of whose tensors is complex or none; None where there is nothing."""
    row = rows().get(name)
    if row is None or not is_complex:
        return None if row is None else row.translate
    return (_OF_COMPLEX[name] or row.translate) if name in _OF_COMPLEX else None


def name_of(target: Any) -> str:
    """The name that an op has in the table; "" for one of a library that the table has no ops of."""
    name = str(target)
    return name.removeprefix("aten.") if name.startswith(_LIBRARIES) else ""


_LIBRARIES = ("aten.", "prims.", "transformers.")
