# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults of calls of `shlo_disc.jit`'s functions that a second program would not mend: what to pass instead."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

if TYPE_CHECKING:
    from shlo_disc.runtime import LoadedExecutable


def structure_fault(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], program: LoadedExecutable
) -> str:
    """The arguments that a call lacks, or that are lists or None where the program takes arrays; "" for others."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        found = program.parameter_names.explained(program.name, program.in_tree, args, kwargs)
        return found or f"{program.name!r} cannot be called so: {error}"
    taken = {row["path"] for row in program.header["arguments"]}
    defaults = [parameter.default for parameter in signature.parameters.values()]
    given = [(f"args[{i}]", value, default) for i, (value, default) in enumerate(zip(args, defaults, strict=False))]
    given += [(f"kwargs[{key!r}]", kwargs[key], p.default) for key, p in signature.parameters.items() if key in kwargs]
    for path, value, default in given:
        if path not in taken:
            continue
        if isinstance(value, list | tuple) and _are_numbers(value):
            return f"{path} is a {type(value).__name__}, and the program takes an array: pass numpy.asarray({path})"
        if value is None and default is not None:
            return f"{path} is None, and the program takes an array"
    return ""


def list_fault(
    function: Callable[..., Any], entries: Sequence[Any], named: Mapping[str, Any], call: tuple[Sequence[Any], Any]
) -> str:
    """The fault of a call with a list of numbers that `dynamic` has the sizes of an array for; "" for others.

    entries: those of `dynamic` for arguments by position. named: those by name.
    """
    args, kwargs = call
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    places = [(f"args[{i}]", name) for i, name in itertools.zip_longest(range(len(args)), names[: len(args)])]
    given = [(place, name or place, *pair) for (place, name), *pair in zip(places, entries, args, strict=False)]
    given += [(f"kwargs[{name!r}]", name, named.get(name), value) for name, value in kwargs.items()]
    for place, name, entry, value in given:
        if isinstance(entry, str) and isinstance(value, list | tuple) and _are_numbers(value):
            return (
                f"dynamic= has {entry!r} for {place}, which is a {type(value).__name__} of numbers, and JAX takes each "
                f"of them as an argument: pass one array, numpy.asarray({name})"
            )
    return ""


def _are_numbers(value: Any) -> bool:
    leaves = jax.tree.leaves(value)
    return bool(leaves) and all(isinstance(leaf, bool | int | float | complex | np.generic) for leaf in leaves)


__all__ = ["list_fault", "structure_fault"]
