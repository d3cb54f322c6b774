# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The types of a call's arguments as `jax.jit` sees them: canonical dtypes, and which of them are weak."""

from __future__ import annotations

import itertools
import re
import tokenize
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import export

from shlo_disc.errors import ArgumentTypeError, OptionError
from shlo_disc.runtime.adapt import unmasked
from shlo_disc.runtime.described import count_text
from shlo_disc.runtime.dynamic_entries import entry_fault, positions_fault
from shlo_disc.runtime.parameter_names import listed
from shlo_disc.shape_dialect.dtypes import BY_NAME

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


def difference(call: Any, weak: WeakTypes, rows: Sequence[Mapping[str, Any]]) -> str:
    """The difference between a call's weak types and those that it was compiled for, as text; "" when there is none.

    rows: the header's arguments.
    """
    leaves = [(_name(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(call)]
    if len(leaves) != len(weak):
        return _other_arguments([name for name, _ in leaves], [row["path"] for row in rows])
    for (name, leaf), expected, row in zip(leaves, weak, rows, strict=True):
        actual = _weak_type(leaf)
        if actual != expected:
            return (
                f"{name} is {_given(leaf)}, and the program was compiled for {_text(expected)}. JAX tells these apart, "
                "for other operands decide the dtype of what is computed from a Python number (a weak type): pass "
                f"{_converted(name, leaf, expected, BY_NAME[row['dtype']].numpy)}"
            )
    return ""


def _given(leaf: Any) -> str:
    """The kind of an argument, as far as a weak type depends on it."""
    if not hasattr(leaf, "dtype"):
        return f"a Python {type(leaf).__name__}"
    kind = "a NumPy number" if isinstance(leaf, np.generic) else "an array"
    return f"{kind} of {leaf.dtype}" + (", weakly typed" if _weak_type(leaf) else "")


def _converted(name: str, leaf: Any, weak_type: str, dtype: str) -> str:
    """The expression of an argument in the type that a program was compiled for: a weak one, or a dtype."""
    if not weak_type:
        return f"numpy.{dtype}({name})" if np.ndim(leaf) == 0 else f"{name}.astype({dtype!r})"
    if np.ndim(leaf) == 0:
        return f"{_PYTHON_KINDS[np.dtype(weak_type).kind]}({name})"
    return "an array without a stated dtype, such as jnp.full(3, 0.5)"


_PYTHON_KINDS = {"i": "int", "f": "float", "c": "complex"}


def _name(path: Any) -> str:
    """The name that an argument of a call (args, kwargs) has in messages."""
    return ("args" if path[0].idx == 0 else "kwargs") + jax.tree_util.keystr(path[1:])


def _other_arguments(given: Sequence[str], known: Sequence[str]) -> str:
    """The difference between the arguments of two calls, of one of which there are more."""
    missing = [name for name in known if name not in given]
    new = [name for name in given if name not in known]
    texts = [f"it has no {listed(missing)}"] if missing else []
    return ", and ".join([*texts, f"{listed(new)} is new"] if new else texts)


MORE_PROGRAMS = "pass what it was compiled for; where both are meant, compile_once=False compiles one program more"


def remedy(call: Any, rows: Sequence[Mapping[str, Any]], shapes: Any) -> str:
    """Advice for a call that does not fit what a function was compiled for.

    Where sizes differ that were taken to be fixed, and only of arguments that are arrays, that is the `dynamic` to
    write. rows: the header's arguments. shapes: those of `dynamic`, as `export.symbolic_args_specs` takes them.
    """
    leaves = jax.tree_util.tree_leaves_with_path(call)
    sizes = [(np.shape(leaf), tuple(row["shape"])) for (_, leaf), row in zip(leaves, rows, strict=False)]
    if len(leaves) != len(rows) or any(len(given) != len(known) for given, known in sizes):
        return MORE_PROGRAMS
    pairs = [
        (path, list(zip(known, given, strict=True))) for (path, _), (given, known) in zip(leaves, sizes, strict=True)
    ]
    changed = [(path, dims) for path, dims in pairs if any(_has_changed(*dim) for dim in dims)]
    empty = [(path, k) for path, dims in pairs for k, n in dims if n == 0 and isinstance(k, str) and k.isidentifier()]
    if not changed and empty:
        path, size = empty[0]
        return (
            f"sizes with a name are at least 1: one that may be 0 is {f'{size} - 1'!r} in dynamic=, as of {_name(path)}"
        )
    if not changed:
        return MORE_PROGRAMS
    if (
        isinstance(shapes, str)
        or (shapes and shapes[1] is not None)
        or any(len(path) != 2 or path[0].idx for path, _ in changed)
    ):
        return (
            'dynamic= names the sizes that change, with one entry for each positional argument, such as "b, ..." for '
            "arrays whose first size does, or with a dict of entries by the names of arguments; "
            f"{', '.join(_name(path) for path, _ in changed)} changed here"
        )
    names = _Names({name for row in rows for size in row["shape"] for name in re.findall(r"[a-zA-Z_]\w*", str(size))})
    entries: list[str | None] = list(shapes[0]) if shapes else [None] * len(call[0])
    for path, dims in changed:
        entries[path[1].idx] = ", ".join(names.size(*dim) for dim in dims)
    sizes_changed = [
        f"{_name(path)}.shape[{i}]" for path, dims in changed for i, d in enumerate(dims) if _has_changed(*d)
    ]
    return (
        f"if {listed(sizes_changed)} is meant to change, dynamic= says so: with dynamic={tuple(entries)!r} one "
        "compilation serves all sizes"
    )


def _has_changed(known: int | str, given: int) -> bool:
    """Tells whether a size that was fixed is another one; symbols have what sizes the signature allows."""
    return not isinstance(known, str) and known != given


class _Names:
    """Names for sizes that change. Those that change alike have one."""

    def __init__(self, taken: set[str]):
        self._names: dict[tuple[int, int], str] = {}
        self._free = (name for name in itertools.chain("n", map("n{}".format, itertools.count(1))) if name not in taken)

    def size(self, known: int | str, given: int) -> str:
        """The text that names a size."""
        if isinstance(known, str):
            return known
        if known == given:
            return "_"
        pair = known, given
        if pair not in self._names:
            self._names[pair] = next(self._free)
        return f"{self._names[pair]} - 1" if 0 in pair else self._names[pair]


def _text(weak_type: str) -> str:
    return f"a Python number ({weak_type})" if weak_type else "an array"


def specifications(
    args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, constraints: Sequence[str]
) -> tuple[Any, Any]:
    """The specifications to compile for a call, as `jax.export.symbolic_args_specs` makes them, with weak types.

    Raises ArgumentTypeError on what is no array, and OptionError on shapes or constraints that do not fit.
    """
    for leaf in jax.tree.leaves((args, kwargs)):
        _check_elements(leaf)
    if isinstance(shapes, tuple) and shapes[1] is not None:  # entries by name, also of arguments that a call leaves out
        shapes = (shapes[0][: len(args)], {name: shapes[1].get(name) for name in kwargs})
    try:
        specs = export.symbolic_args_specs(canonical((args, kwargs)), shapes, constraints)
    except ArgumentTypeError:
        raise
    except TypeError as error:
        raise ArgumentTypeError(_no_array(args, kwargs) or str(error)) from None
    except (
        IndexError,
        ValueError,
        tokenize.TokenError,
    ) as error:  # JAX's parser, and sizes that are not there
        text = positions_fault(shapes[0], args) if isinstance(shapes, tuple) and shapes[1] is None else ""
        text = text or _too_many_sizes(str(error), args, kwargs, shapes)
        text = text or entry_fault(args, kwargs, shapes, lambda p, sizes, n: _other_rank(p, sizes, n, args, shapes))
        raise OptionError(_with_shared(text or _misfit(str(error)), (args, kwargs), shapes)) from None
    for (path, spec), leaf in zip(
        jax.tree_util.tree_leaves_with_path(specs), jax.tree.leaves((args, kwargs)), strict=True
    ):
        if len(spec.shape) != np.ndim(leaf):
            text = _other_rank(path, [*map(str, spec.shape)], np.shape(leaf), args, shapes)
            raise OptionError(_with_shared(text, (args, kwargs), shapes))

    def with_type(spec: Any, leaf: Any) -> Any:
        return jax.ShapeDtypeStruct(spec.shape, spec.dtype, weak_type=_weak_type(leaf) != "")

    return jax.tree.map(with_type, specs, (args, kwargs))


def shared_entry(call: Any, shapes: Any) -> str:
    """Advice on a `dynamic` of one string where a call has several arrays, whose sizes it names alike; "" elsewhere."""
    args, kwargs = call
    if not isinstance(shapes, str) or sum(np.ndim(leaf) > 0 for leaf in jax.tree.leaves(call)) < 2:
        return ""
    start = f"dynamic={shapes!r} names the sizes of every array"
    if len(args) + len(kwargs) < 2:
        return f"{start}: write an entry with the structure of the argument, None where sizes stay fixed"
    if kwargs:
        return f"{start}: for those of one argument write dynamic={{'name': {shapes!r}}} with its name"
    first = (shapes, *[None] * (len(args) - 1))
    return f"{start}: for those of the first alone write dynamic={first!r}, and for others an entry in place of None"


def _with_shared(fault: str, call: Any, shapes: Any) -> str:
    """A fault of a `dynamic`, and the advice on one string for several arrays."""
    shared = shared_entry(call, shapes)
    return f"{fault}. {shared}" if shared and "as in dynamic=" not in fault else fault


def _no_array(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The first leaf of a call that JAX does not take as an array, and the option that makes it static; or ""."""
    for path, leaf in jax.tree_util.tree_leaves_with_path((args, kwargs)):
        try:
            export.symbolic_args_specs(((leaf,), {}), None)
        except TypeError:
            fault = f"{_name(path)} is a {type(leaf).__name__}, which is not an array"
            if len(path) > 2:
                return f"{fault}: shlo_disc.jit(function, filter=True) makes static what is not an array"
            where = f"static_argnames={path[1].key!r}" if path[0].idx else f"static_argnums={path[1].idx}"
            return (
                f"{fault}: make the argument static by {where} of shlo_disc.jit, or all that is no array by filter=True"
            )
    return ""


_OTHER_SIZE = re.compile(
    r"symbolic shape '(.*?)' in dimension \d+: different size (\d+) for known dimension; like=(\(.*?\))\."
)
_NOT_LAST = re.compile(r"symbolic shape '(.*?)' .*Parsed '.*\.\.\.', remaining ', *(.*?)'\.", re.DOTALL)


def _misfit(message: str) -> str:
    """The fault of `dynamic`, from what JAX's parser says."""
    if found := _OTHER_SIZE.search(message):
        text, size, shape = found.groups()
        return (
            f"dynamic= has {text!r} for an argument of shape {shape}, which has no size {size} there: write _ for a "
            "size that does not change, and one entry for each argument"
        )
    if (found := _NOT_LAST.search(message)) and "..." in found[1]:
        return (
            f"dynamic= has {found[1]!r}, and '...' stands at the end, for the sizes after those that are named: write "
            f"_ for each size before {found[2]!r}, as in '_, {found[2]}' for an array of two axes"
        )
    return f"dynamic= or constraints= do not fit the arguments: {message}"


_PLACEHOLDER = re.compile(r"symbolic shape '(.*?)' .*'like' shape has only (\d+) dimensions")


def _too_many_sizes(message: str, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> str:
    """The fault of an entry of `dynamic` with `_` or `...` for a size that the argument lacks; "" for other texts."""
    found = _PLACEHOLDER.search(message)
    if found is None:
        return ""
    text, rank = found[1], int(found[2])
    leaves = jax.tree_util.tree_leaves_with_path((args, kwargs))
    entries = shapes[0] if isinstance(shapes, tuple) else [shapes] * len(args)
    for path, leaf in leaves:
        if np.ndim(leaf) == rank and (path[0].idx or entries[path[1].idx] == text):
            return _other_rank(path, [size.strip() for size in text.split(",")], np.shape(leaf), args, shapes)
    return ""


def _other_rank(path: Any, stated: Sequence[str], shape: tuple[int, ...], args: Sequence[Any], shapes: Any) -> str:
    """The fault of an entry of `dynamic` that has more or fewer sizes than the argument."""
    start = f"dynamic= has {count_text(len(stated), 'size')} for {_name(path)}, whose shape is {shape}: write"
    if shape:
        sizes = [size for size in stated if size != "..."][: len(shape)]
        wanted = ", ".join([*sizes, "..."] if len(sizes) < len(shape) else sizes)
        return f"{start} one for each, _ where it does not change, and ... for the rest, such as {wanted!r}"
    if len(path) > 2:
        return f"{start} None in its place, in an entry with the structure of the argument"
    if path[0].idx:
        by_name = f"dynamic={{'name': {', '.join(stated)!r}}}"
        return (
            f"{start} entries by name, and none for a number, as in {by_name}, or make a setting static by "
            f"static_argnames={path[1].key!r} of shlo_disc.jit"
        )
    entries = [shapes] * len(args) if isinstance(shapes, str) else shapes[0]
    numbers = (jax.tree_util.all_leaves([arg]) and np.ndim(arg) == 0 for arg in args)
    dynamic = tuple(None if is_number else entry for entry, is_number in zip(entries, numbers, strict=True))
    setting = f"or make a setting static by static_argnums={path[1].idx} of shlo_disc.jit"
    return f"{start} None for a number, as in dynamic={dynamic!r}, {setting}"


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
