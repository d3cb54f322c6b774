# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Specifications of a JAX function's arguments, in `args=` and `kwargs=` of `shlo_disc.compile`: shapes and dtypes."""

from __future__ import annotations

import difflib
import inspect
import itertools
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.dtypes import BY_NAME, BY_NUMPY

_PACKAGE = str(Path(__file__).parents[1])

_LIKELY = "float32"
"""The dtype in what messages propose where none was given."""


_LIKE_A_DTYPE = re.compile(r"(b?float|u?int|complex|bool|double|half|single|key|((bf|f|u?i|u|c)\d))\w*")


def check_sequence(args: Any) -> None:
    """Raises ProgramError, with what to write, for `args` that are not a sequence."""
    if hasattr(args, "shape"):
        raise ProgramError("args= has one entry for each argument: for one array x, write args=(x,)")
    if isinstance(args, str) or not isinstance(args, Sequence):
        raise ProgramError(f'args= is a sequence such as (("b, 768", "float32"),), not {args!r}')


def check_count(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Raises ProgramError, with what to write, where a function does not take as many arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        named = f"{name}{signature.replace(parameters=plain, return_annotation=signature.empty)}"
        fault = f"args= {'and kwargs= do' if kwargs else 'does'} not fit {named}: {error}"
        if args and _are_sizes(args):
            pair = (_text(args), _LIKELY)
            raise ProgramError(f"{fault}. For one array of that shape write args=({pair!r},)") from None
        raise ProgramError(f'{fault}. Write one entry for each argument, such as ("b, 768", "float32")') from None


def check_specifications(args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Raises ProgramError, with what to write, for shapes and dtypes that are not in pairs, one for each argument."""
    if len(args) == 2 and _are_sizes_of_one(args[0]) and is_dtype(args[1]):
        pair = (args[0] if isinstance(args[0], str) else _text(args[0]), _dtype_name(args[1]))
        raise ProgramError(f"args= has one entry for each argument: write args=({pair!r},)")
    if args and all(_is_shape_text(entry) for entry in args):
        pairs = tuple((entry, _LIKELY) for entry in args)
        raise ProgramError(f"args= has a shape and a dtype for each argument: write args={pairs!r}")
    if _are_sizes(args) and len({type(size) for size in args}) == 2:  # names and numbers
        raise ProgramError(f"args= has one entry for each argument: write args=({(_text(args), _LIKELY)!r},)")
    entries = [(f"args[{i}]", value) for i, value in enumerate(args)]
    entries += [(f"kwargs[{name!r}]", value) for name, value in kwargs.items()]
    for name, value in entries:
        for path, leaf in jax.tree_util.tree_flatten_with_path(value, is_leaf=_is_whole)[0]:
            where = f"{name}{jax.tree_util.keystr(path)}"
            if _has_no_shape(leaf):
                raise ProgramError(
                    f"args= and kwargs= have pairs of a shape and a dtype: {where} has {_short(leaf[0])} for the "
                    "shape, which is a text such as 'b, 768' or a tuple such as ('b', 768), with a number or a "
                    "name for each size; () is the shape of a number"
                )
            if (wanted := _wanted(leaf)) is not None:
                raise ProgramError(
                    f"args= and kwargs= have pairs of a shape and a dtype: write {where} as {wanted!r}{_instead(leaf)}"
                )


def warn_of_narrowed(args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Warn of 64-bit dtypes, stated or of arrays, that JAX makes 32-bit ones while jax_enable_x64 is off."""
    for name, values in (("args", list(args)), ("kwargs", kwargs)):
        for path, leaf in jax.tree_util.tree_flatten_with_path(values, is_leaf=is_pair)[0]:
            dtype = _stated_dtype(leaf)
            if dtype is None or (taken := jax.dtypes.canonicalize_dtype(dtype)) == dtype:
                continue
            text = (
                f"{name}{jax.tree_util.keystr(path)} has the dtype {dtype.name}, which JAX makes {taken.name} while "
                f"jax_enable_x64 is off, so the program takes {taken.name}: call it with arrays that "
                f".astype({taken.name!r}) gives, or for {dtype.name} call "
                'jax.config.update("jax_enable_x64", True) before, or set JAX_ENABLE_X64=1'
            )
            warnings.warn(text, stacklevel=_level_of_caller())


def size_fault(shape: str) -> str:
    """The fault of a size in the text of a shape, and what to write; "" where JAX's parser reads it or says why not."""
    for size in (text.strip() for text in shape.strip(" ()").split(",")):
        if size in ("_", "...", "None", "?"):
            return f"args= has {shape!r}: write a number or a name, such as b, for each size, and not {size!r}"
        if re.fullmatch(r"-\s*\d+", size):
            return f"args= has {shape!r}: sizes are not negative; write a name, such as b, for one that varies"
    return ""


def parameters_of(function: Callable[..., Any], count: int) -> tuple[str, ...]:
    """The names of a function's first `count` parameters, "" for one that is not passed by name.

    () where Python knows none of them.
    """
    try:
        found = list(inspect.signature(function).parameters.values())[:count]
    except (TypeError, ValueError):
        return ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = itertools.takewhile(lambda p: p.kind in kinds, found)
    names = tuple("" if p.kind is p.POSITIONAL_ONLY else p.name for p in positional)
    return names if any(names) else ()


def is_pair(leaf: Any) -> bool:
    """A ("b, s", dtype) or ((2, "s"), dtype) specification."""
    if not isinstance(leaf, tuple) or len(leaf) != 2 or not isinstance(leaf[0], str | tuple):
        return False
    if isinstance(leaf[1], str):
        return True  # a string is no array, so this can only be meant as a pair
    return _is_dtype_object(leaf[1])


def _is_dtype_object(value: Any) -> bool:
    """Tells whether a value is a dtype of NumPy, JAX or PRNG keys, or the type of its scalars."""
    return isinstance(value, type | np.dtype) or _is_key_dtype(value)


def is_dtype(value: Any) -> bool:
    """Tells whether a value is a dtype, or a text that is meant as the name of one and not as a shape."""
    if not isinstance(value, str):
        return _is_dtype_object(value)
    if value in BY_NAME or _LIKE_A_DTYPE.fullmatch(value) is not None:
        return True
    return len(value) >= 4 and bool(_near_dtypes(value))


def _near_dtypes(name: str) -> list[str]:
    """The dtype of which a name is a misspelling."""
    return difflib.get_close_matches(name, BY_NUMPY, 1, cutoff=0.75)


def numpy_name(dtype: str, pair: Any) -> str:
    """NumPy's name of a dtype, which may have that of signatures ("f32"). Raises ProgramError for other names."""
    if dtype in BY_NUMPY:
        return dtype
    if dtype in BY_NAME:
        return BY_NAME[dtype].numpy
    near = _near_dtypes(dtype)
    instead = f"did you mean {near[0]!r}?" if near else f"dtypes are {', '.join(BY_NUMPY)}"
    raise ProgramError(f"unknown dtype {dtype!r} in {pair!r}; {instead}")


def _stated_dtype(leaf: Any) -> np.dtype[Any] | None:
    """The dtype of a specification or of NumPy's array; None for keys and Python's types, whose width JAX chooses."""
    if isinstance(leaf, np.ndarray | np.generic):
        return leaf.dtype if leaf.dtype.kind in "iufc" else None
    dtype = leaf[1] if is_pair(leaf) else leaf.dtype if isinstance(leaf, jax.ShapeDtypeStruct) else None
    if isinstance(dtype, str):
        dtype = numpy_name(dtype, leaf)
    if dtype is None or isinstance(dtype, type) and dtype in (bool, int, float, complex) or _is_key_dtype(dtype):
        return None
    return np.dtype(dtype)


def _level_of_caller() -> int:
    """The `stacklevel` by which the function that calls this warns about the line that called the package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


def _is_whole(value: Any) -> bool:
    """Tells whether an entry is one specification, right or wrong, and no container of others."""
    return is_pair(value) or _wanted(value) is not None or _has_no_shape(value)


def _has_no_shape(value: Any) -> bool:
    """Tells whether an entry is a pair with a dtype, and with something else where the shape belongs."""
    if not isinstance(value, tuple | list) or len(value) != 2 or isinstance(value[0], str | tuple | list | int):
        return False
    return is_dtype(value[1])


def _short(value: Any) -> str:
    """A value in a message: its type for what has a long text."""
    return repr(value) if value is None or isinstance(value, float | dict) else f"a {type(value).__name__}"


def _instead(value: Any) -> str:
    """The rest of advice to write a pair, for values that may be meant as something else."""
    if isinstance(value, str):
        return ", or fix a setting by functools.partial(function, ...)"
    if isinstance(value, tuple | list) and all(isinstance(size, int) for size in value):
        return f", or as numpy.asarray({value!r}) if these are the numbers of an array"
    return ""


def _wanted(value: Any) -> tuple[Any, ...] | None:
    """The pair that was meant, or pairs; None where a value is not a specification of a wrong form."""
    if is_pair(value):
        if is_dtype(value[1]) or not isinstance(value[0], str):
            return None
        return tuple((shape, _LIKELY) for shape in value) if "," in "".join(value) else (_text(value), _LIKELY)
    if _is_shape_text(value):
        return (value, _LIKELY)
    if isinstance(value, jax.ShapeDtypeStruct):
        is_text = any(isinstance(size, str) for size in value.shape)
        return (_text(value.shape), value.dtype.name) if is_text else None
    if type(value) not in (tuple, list) or not value:
        return None
    sizes, last = list(value[:-1]), value[-1]
    if sizes and _are_sizes(sizes) and is_dtype(last):
        return (_text(sizes), _dtype_name(last))  # ["b, 4", "float32"] and ("b", 4, "float32")
    return (_text(value), _LIKELY) if _are_sizes(value) and any(isinstance(v, int) for v in value) else None


def _is_shape_text(value: Any) -> bool:
    return isinstance(value, str) and not is_dtype(value)


def _are_sizes_of_one(value: Any) -> bool:
    """Tells whether a value is a shape, and no specification with a dtype."""
    if isinstance(value, str):
        return True
    return isinstance(value, tuple | list) and bool(value) and _are_sizes(value) and not is_dtype(value[-1])


def _dtype_name(dtype: Any) -> Any:
    """The name of a dtype; what has none is returned as it is."""
    return dtype if isinstance(dtype, str) or _is_key_dtype(dtype) else np.dtype(dtype).name


def _are_sizes(values: Sequence[Any]) -> bool:
    return all(isinstance(v, str) or (isinstance(v, int) and not isinstance(v, bool)) for v in values)


def _text(sizes: Sequence[Any]) -> str:
    return ", ".join(map(str, sizes))


def _is_key_dtype(value: Any) -> bool:
    """The dtype of PRNG keys, as `jax.random.key(0).dtype` is."""
    scalar = getattr(value, "type", None)
    return isinstance(scalar, type) and issubclass(scalar, jax.dtypes.prng_key)


__all__ = [
    "check_count", "check_sequence", "check_specifications", "is_dtype", "is_pair", "numpy_name", "parameters_of",
    "size_fault", "warn_of_narrowed",
]  # fmt: skip
