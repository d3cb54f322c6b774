# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The types of a call's arguments as `jax.jit` sees them: canonical dtypes, and which of them are weak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import export

from shlo_disc.errors import ArgumentTypeError, OptionError
from shlo_disc.runtime.adapt import unmasked

_PYTHON_NUMBERS = (int, float, complex)  # a bool's type is not weak

WeakTypes = tuple[str, ...]


def weak_types(call: Any) -> WeakTypes:
    """For each leaf of a call the dtype that it has only until another operand decides, or "".

    Python's numbers have one, and what JAX makes of them.
    """
    return tuple(map(_weak_type, jax.tree.leaves(call)))


def _weak_type(leaf: Any) -> str:
    if type(leaf) in _PYTHON_NUMBERS:
        return str(jax.dtypes.canonicalize_dtype(type(leaf)))
    return leaf.dtype.name if getattr(leaf, "weak_type", False) else ""


def difference(call: Any, weak: WeakTypes) -> str:
    """The difference between a call's weak types and those that it was compiled for, as text; "" when there is none."""
    leaves = jax.tree_util.tree_leaves_with_path(call)
    if len(leaves) != len(weak):
        return f"it has {len(leaves)} leaves, not {len(weak)}"
    for (path, leaf), expected in zip(leaves, weak, strict=True):
        actual = _weak_type(leaf)
        if actual != expected:
            name = ("args" if path[0].idx == 0 else "kwargs") + jax.tree_util.keystr(path[1:])
            hint = "; jnp.full(3, 0.5) has such a type, and with a dtype an array's" if hasattr(leaf, "dtype") else ""
            return f"{name} has {_text(actual)}, and {_text(expected)} where it was compiled{hint}"
    return ""


MORE_PROGRAMS = "pass what it was compiled for; where both are meant, compile_once=False compiles one program more"


def remedy(call: Any, rows: Sequence[Mapping[str, Any]]) -> str:
    """Advice for a call of a function that was compiled for the fixed sizes in `rows`, the header's arguments.

    Where only sizes differ, and only of arguments that are arrays, that is the `dynamic` to write.
    """
    leaves = jax.tree_util.tree_leaves_with_path(call)
    shapes = [(np.shape(leaf), tuple(row["shape"])) for (_, leaf), row in zip(leaves, rows, strict=False)]
    if len(leaves) != len(rows) or any(len(given) != len(known) for given, known in shapes):
        return MORE_PROGRAMS
    changed = [path for (path, _), (given, known) in zip(leaves, shapes, strict=True) if given != known]
    if not changed:
        return MORE_PROGRAMS
    if any(len(path) != 2 or path[0].idx for path in changed):
        return (
            'dynamic= names the sizes that change, with one entry for each positional argument, such as "b, ..." for '
            "arrays whose first size does"
        )
    names: dict[tuple[int, int], str] = {}
    entries: list[str | None] = [None] * len(call[0])
    for (path, _), (given, known) in zip(leaves, shapes, strict=True):
        if given != known:
            entries[path[1].idx] = ", ".join(_size(pair, names) for pair in zip(known, given, strict=True))
    return f"dynamic= names the sizes that change: with dynamic={tuple(entries)!r} one compilation serves all of them"


def _size(pair: tuple[int, int], names: dict[tuple[int, int], str]) -> str:
    """A size that was, and is, such a number; sizes that change alike have one name."""
    if pair[0] == pair[1]:
        return "_"
    name = names.setdefault(pair, f"n{len(names)}" if names else "n")
    return f"{name} - 1" if 0 in pair else name


def _text(weak_type: str) -> str:
    return f"the type of a Python number ({weak_type})" if weak_type else "the type of an array"


def specifications(
    args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, constraints: Sequence[str]
) -> tuple[Any, Any]:
    """The specifications to compile for a call, as `jax.export.symbolic_args_specs` makes them, with weak types.

    Raises ArgumentTypeError on what is no array, and OptionError on shapes or constraints that do not fit.
    """
    for leaf in jax.tree.leaves((args, kwargs)):
        _check_elements(leaf)
    try:
        specs = export.symbolic_args_specs(canonical((args, kwargs)), shapes, constraints)
    except TypeError as error:
        raise ArgumentTypeError(str(error)) from None
    except IndexError:  # which JAX's parser raises where a number stands for a dimension that an argument lacks
        raise OptionError("dynamic= has shapes of more dimensions than the arguments have") from None
    except ValueError as error:  # the texts of JAX's parser
        raise OptionError(f"dynamic= or constraints= do not fit the arguments: {error}") from None

    def with_type(spec: Any, leaf: Any) -> Any:
        return jax.ShapeDtypeStruct(spec.shape, spec.dtype, weak_type=_weak_type(leaf) != "")

    return jax.tree.map(with_type, specs, (args, kwargs))


def _check_elements(leaf: Any) -> None:
    """Raise ArgumentTypeError for NumPy's arrays of objects, texts, times and records, which not every JAX refuses."""
    if isinstance(leaf, np.ndarray | np.generic) and (leaf.dtype.kind in "OSUTMm" or leaf.dtype.names is not None):
        raise ArgumentTypeError(f"an array of {leaf.dtype} is no array of numbers")


def canonical(call: Any) -> Any:
    """A call with NumPy's arrays in the dtypes that JAX gives them: of 32 bits at most unless it is told otherwise."""
    return jax.tree.map(_canonical, call)


def _canonical(leaf: Any) -> Any:
    if not isinstance(leaf, np.ndarray | np.generic) or leaf.dtype.kind not in "iufc":
        return leaf
    return np.asarray(unmasked(leaf, "an argument"), jax.dtypes.canonicalize_dtype(leaf.dtype.newbyteorder("=")))
