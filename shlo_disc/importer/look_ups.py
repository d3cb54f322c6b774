# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Look-ups of sizes by their hashes, in sets and dicts.

A size with a name has another hash than a number, so Python compares it with none: `n in {1, 2}` is false for each n.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import types
from collections.abc import Mapping, Set
from numbers import Real
from typing import Any

import jax

from .user_code import expression_at, is_of_jax

Equalities = list[list[tuple[Any, Any]]]
"""For each key the pairs of sizes and numbers that are equal where a look-up finds it."""

_METHODS = ("get", "pop", "setdefault")
_MOST_KEYS = 64
UNKNOWN = object()


def equalities_at(frame: types.FrameType, size: Any) -> Equalities | None:
    """The equalities that a frame asks by the look-up for which it wants the hash of a size; None where not known.

    [] where it looks nothing up, as in a call of a cached function, and for a subscript of a dict that raises KeyError
    for keys that it lacks.
    """
    node = expression_at(frame, frame.f_lasti)
    if node is None:
        return None if _may_look_up(frame) else []
    if _is_counted(node, frame):
        return []
    if isinstance(node, ast.Set) or isinstance(node, ast.Call) and known_value(node.func, frame) in (set, frozenset):
        return None  # what is made of them may be compared with other sets
    parts = look_up_parts(node)
    if parts is None:
        return []
    subject, container = (known_value(part, frame) for part in parts)
    if isinstance(node, ast.Subscript) and _raises_for_others(parts[1], container):
        return []
    return _equalities(subject, container, size)


def equalities_of_raising(frame: types.FrameType, size: Any) -> Equalities:
    """The equalities that a frame asks by a subscript of a dict which raises KeyError for keys that it lacks."""
    node = expression_at(frame, frame.f_lasti)
    if not isinstance(node, ast.Subscript):
        return []
    container = known_value(node.value, frame)
    if not _raises_for_others(node.value, container):
        return []
    return _equalities(known_value(node.slice, frame), container, size) or []


def _raises_for_others(node: ast.expr, container: Any) -> bool:
    """Tells whether a container, which is the value of an expression, raises KeyError for keys that it lacks."""
    is_plain = isinstance(node, ast.Dict | ast.DictComp) or container is not UNKNOWN
    return is_plain and not hasattr(container, "__missing__")


def _equalities(subject: Any, container: Any, size: Any) -> Equalities | None:
    """The equalities that are asked where a subject with this size in it is looked up; None where not known."""
    if not isinstance(container, Set | Mapping):
        return None
    keys = list(container)
    if isinstance(subject, tuple):
        alike = [key for key in keys if isinstance(key, tuple) and len(key) == len(subject)]
        found = [list(zip(subject, key, strict=True)) for key in alike if any(isinstance(part, Real) for part in key)]
    elif any(isinstance(key, tuple) for key in keys) and subject is UNKNOWN:
        return None
    else:
        found = [[(size, key)] for key in keys if isinstance(key, Real)]
    return found if len(found) <= _MOST_KEYS else None


_COUNTING = ("flax.core.lift",)
"""Modules whose sets of sizes are only counted: they raise an error where there is more than one."""


def _is_counted(node: ast.expr, frame: types.FrameType) -> bool:
    """Tells whether a frame makes a set of sizes of which all have to be the same, so that none is taken for another.

    flax.linen.RNN, scan and vmap compare the lengths of their arguments so.
    """
    is_set = isinstance(node, ast.Call) and known_value(node.func, frame) is set
    return is_set and frame.f_globals.get("__name__") in _COUNTING


def hash_is_asked(frame: types.FrameType) -> bool:
    """Tells whether a frame calls `hash` just now."""
    node = expression_at(frame, frame.f_lasti)
    return isinstance(node, ast.Call) and known_value(node.func, frame) is hash


def looks_in_cache(frame: types.FrameType) -> bool:
    """Tells whether a frame just now calls what looks in a table of JAX's, and compares sizes as keys.

    jaxlib's tables compare keys of which a few bits of the hashes are equal. The code of JAX itself compares sizes by
    operators only, so what its calls and subscripts compare are keys.
    """
    now, is_jaxs = dis.opname[frame.f_code.co_code[frame.f_lasti]], is_of_jax(frame.f_code.co_filename)
    if is_jaxs or "CALL" not in now:
        return is_jaxs and ("CALL" in now or "SUBSCR" in now)
    node = expression_at(frame, frame.f_lasti)
    called = known_value(node.func, frame) if isinstance(node, ast.Call) else UNKNOWN
    return isinstance(getattr(called, "__func__", called), _JITTED)


_JITTED = type(jax.jit(abs))
"""The functions of jax.jit, which look static arguments up where no argument is traced."""


def _may_look_up(frame: types.FrameType) -> bool:
    """Tells from the bytecode, where the source is not there, whether a frame may look something up just now."""
    before = [each for each in dis.get_instructions(frame.f_code) if each.offset <= frame.f_lasti]
    now = before[-1]
    if "CALL" in now.opname:
        return any(each.argval in _METHODS for each in before if getattr(each.positions, "lineno", 0) == frame.f_lineno)
    return now.opname in ("CONTAINS_OP", "BUILD_SET")


def look_up_parts(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The expressions of what is looked up and of the container; None for other expressions."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[-1], ast.In | ast.NotIn):
        return [node.left, *node.comparators][-2], node.comparators[-1]
    if isinstance(node, ast.Subscript):
        return node.slice, node.value
    if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        return node.args[0], node.func.value
    return None


def known_value(node: ast.expr, frame: types.FrameType) -> Any:
    """The value of an expression, computed again without running the user's code; `UNKNOWN` where that cannot be."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        pass
    if isinstance(node, ast.Name):
        names = (frame.f_locals, frame.f_globals, vars(builtins))
        return next((known[node.id] for known in names if node.id in known), UNKNOWN)
    if isinstance(node, ast.Attribute):
        owner = known_value(node.value, frame)
        return getattr(owner, node.attr) if _is_plain(owner, node.attr) else UNKNOWN
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        return _made(known_value(node.func, frame), known_value(node.args[0], frame))
    if isinstance(node, ast.Subscript):
        owner, key = known_value(node.value, frame), known_value(node.slice, frame)
        if type(owner) in (tuple, list, dict) and type(key) in (int, str):
            try:
                return owner[key]
            except LookupError:
                pass
    return UNKNOWN


def _made(kind: Any, of: Any) -> Any:
    """A container of Python's that is made of another, as in set([1, 2]); `UNKNOWN` where that runs other code."""
    is_container = any(kind is known for known in (set, frozenset, list, tuple))
    if not is_container or type(of) not in (set, frozenset, list, tuple, range, dict) or len(of) > _MOST_KEYS:
        return UNKNOWN
    return kind(of) if all(type(part) in (int, float, str, bool) for part in of) else UNKNOWN


def _is_plain(owner: Any, name: str) -> bool:
    """Tells whether an attribute is there without running code, other than that of JAX."""
    try:
        found = inspect.getattr_static(owner, name)
    except AttributeError:
        return False
    getter = getattr(found, "fget", None) or getattr(found, "func", None)
    return getter is None or is_of_jax(getattr(getattr(getter, "__code__", None), "co_filename", ""))


__all__ = [
    "UNKNOWN",
    "Equalities",
    "equalities_at",
    "equalities_of_raising",
    "hash_is_asked",
    "known_value",
    "look_up_parts",
    "looks_in_cache",
]
