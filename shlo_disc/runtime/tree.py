# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trees of Python containers, as data: what goes into an artifact's header under "pytree".

JSON form: "*" is a leaf, null is None, and every other node is an object with one of the keys
  {"tuple": [node, ...]}  {"list": [node, ...]}  {"dict": [[key, node], ...]}  keys in JAX's (sorted) order
  {"namedtuple": {"module": str, "name": str, "fields": [str, ...]}, "children": [node, ...]}
  {"custom": {"module": str, "name": str}, "children": [node, ...]}
Beside the trees, "names" has the names of positional arguments, and "weights" how many of the first are weights of a
PyTorch program (parameter_names.py).
Custom nodes (types registered with jax.tree_util) can be written but not read back: their metadata is Python data of
the user's own. A program that has them is loaded with `in_tree=` and `out_tree=`.
"""

from __future__ import annotations

import collections
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from shlo_disc.errors import ArtifactError

from . import _native

_KEY_TYPES = (str, int, float, bool, type(None))
_MOST_DEPTH = 200


@dataclass(frozen=True)
class TreeSpec:
    """One node: `kind` is leaf, none, tuple, list, dict, namedtuple or custom; `keys` are a dict's keys."""

    kind: str
    children: tuple[TreeSpec, ...] = ()
    keys: tuple[Any, ...] = ()
    type: type | None = None
    flatten: Callable[[Any], tuple[Any, ...] | None] | None = field(default=None, compare=False)
    unflatten: Callable[[tuple[Any, ...]], Any] | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"TreeSpec({self._text()})"

    def _text(self) -> str:
        """The structure as JAX writes it, with `*` for leaves."""
        parts = [child._text() for child in self.children]
        match self.kind:
            case "leaf":
                return "*"
            case "none":
                return "None"
            case "tuple":
                return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
            case "list":
                return f"[{', '.join(parts)}]"
            case "dict":
                return f"{{{', '.join(f'{key!r}: {part}' for key, part in zip(self.keys, parts, strict=True))}}}"
        return f"{self.type.__name__ if self.type else self.kind}({', '.join(parts)})"

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return int(self.kind == "leaf") + sum(child.leaves for child in self.children)

    @classmethod
    def of(cls, value: Any) -> TreeSpec:
        """The structure of plain Python containers; anything that is none of them is a leaf."""
        if value is None:
            return cls("none")
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return cls("namedtuple", tuple(map(cls.of, value)), type=type(value))
        if type(value) in (tuple, list):
            return cls(type(value).__name__, tuple(map(cls.of, value)))
        if type(value) is dict:
            keys = tuple(sorted(value))
            return cls("dict", tuple(cls.of(value[key]) for key in keys), keys)
        return LEAF

    @classmethod
    def from_jax(cls, treedef: Any) -> TreeSpec:
        """The structure that a jax.tree_util.PyTreeDef describes."""
        data = treedef.node_data()
        children = tuple(map(cls.from_jax, treedef.children()))
        if data is None:
            return LEAF
        node_type, metadata = data
        if node_type is type(None):
            return cls("none")
        if node_type in (tuple, list):
            return cls(node_type.__name__, children)
        if node_type is dict:
            return cls("dict", children, tuple(metadata))
        if issubclass(node_type, tuple) and hasattr(node_type, "_fields"):
            return cls("namedtuple", children, type=node_type)
        return cls(
            "custom",
            children,
            type=node_type,
            flatten=_custom_flatten(metadata),
            unflatten=_custom_unflatten(treedef),
        )

    def to_json(self) -> Any:
        """The JSON form. Raises ArtifactError for dict keys that JSON cannot hold."""
        children = [child.to_json() for child in self.children]
        if self.kind == "leaf":
            return "*"
        if self.kind == "none":
            return None
        if self.kind == "dict":
            if not all(type(key) in _KEY_TYPES for key in self.keys):
                raise ArtifactError(f"a dict with keys {list(self.keys)} cannot be written into an artifact")
            return {"dict": [[key, child] for key, child in zip(self.keys, children, strict=True)]}
        if self.type is None:
            return {self.kind: children}
        name = {"module": self.type.__module__, "name": self.type.__qualname__}
        if self.kind == "namedtuple":
            return {"namedtuple": {**name, "fields": list(_fields(self.type))}, "children": children}
        return {"custom": name, "children": children}

    @classmethod
    def from_json(cls, data: Any, remedy: str = "give its tree", depth: int = 0) -> TreeSpec:
        """Reads the JSON form. Raises ArtifactError when it is malformed or has custom nodes.

        remedy: what to do about these.
        """
        if depth > _MOST_DEPTH:
            raise ArtifactError("header: the tree is too deep")
        if data == "*":
            return LEAF
        if data is None:
            return cls("none")
        if not isinstance(data, dict) or not data:
            raise ArtifactError(f"header: {data!r} is not a tree")

        def read(nodes: Any) -> tuple[TreeSpec, ...]:
            if not isinstance(nodes, list):
                raise ArtifactError("header: a tree's children are not a list")
            return tuple(cls.from_json(node, remedy, depth + 1) for node in nodes)

        kind = next(iter(data))
        if kind in ("tuple", "list"):
            return cls(kind, read(data[kind]))
        if kind == "dict":
            keys, nodes = _read_items(data[kind])
            return cls("dict", read(nodes), keys)
        if "namedtuple" in data:
            children = read(data.get("children"))
            return cls("namedtuple", children, type=_named_tuple(data["namedtuple"], len(children)))
        if "custom" in data:
            raise ArtifactError(f"the program's tree has a node of type {_class_name(data['custom'])}: {remedy}")
        raise ArtifactError(f"header: unknown tree node {kind!r}")

    def native(self) -> _native.Tree:
        """The native core's own form."""
        kind = getattr(_native.TreeKind, {"namedtuple": "named_tuple"}.get(self.kind, self.kind))
        detail: Any = None
        if self.kind == "dict":
            detail = self.keys
        elif self.kind == "namedtuple":
            detail = self.type
        elif self.kind == "custom":
            detail = (self.type, self.flatten, self.unflatten)
        return _native.Tree(kind, [child.native() for child in self.children], detail)


def _class_name(data: Any) -> str:
    """The name of a class as a header has it, "module.name"."""
    known = isinstance(data, dict) and data.keys() >= {"module", "name"}
    return f"{data['module']}.{data['name']}" if known else repr(data)


LEAF = TreeSpec("leaf")


def call_tree(positional: TreeSpec | int, keyword: TreeSpec | None = None) -> TreeSpec:
    """The tree of a whole call, (args, kwargs), from a tree of the positional arguments or from their number."""
    args = TreeSpec("tuple", (LEAF,) * positional) if isinstance(positional, int) else positional
    return TreeSpec("tuple", (args, keyword or TreeSpec("dict")))


def explainer(name: str, expected: TreeSpec, bound: int = 0) -> Callable[[tuple[Any, ...], dict[str, Any]], str]:
    """The function that explains for a call why its structure is not `expected`; bound: as for explain_difference."""
    return lambda args, kwargs: explain_difference(name, expected, args, kwargs, bound)


def explain_difference(
    name: str, expected: TreeSpec, args: tuple[Any, ...], kwargs: dict[str, Any], bound: int = 0
) -> str:
    """The differences between a call's structure and `expected`, in the words of jax.export.

    bound: the number of arguments that `bind` has fixed. They come first, and are counted as in the signature.
    """
    fixed = (None,) * bound
    if bound:
        nodes = (TreeSpec("none"),) * bound + expected.children[0].children
        expected = call_tree(TreeSpec("tuple", nodes), expected.children[1])
    args = fixed + args
    differences = [
        f"   - {path} is a {actual} in the invocation and a {wanted} when exported, so {reason}.\n"
        for label, spec, value in zip(("args", "kwargs"), expected.children, (args, kwargs), strict=True)
        for path, actual, wanted, reason in _differences(label, spec, value)
    ]
    counted = f" (args counts the {bound} that bind has fixed)" if bound else ""
    return (
        "The invocation args and kwargs must have the same pytree structure "
        f"as when the function '{name}' was exported{counted}, but they have the following structural differences:\n"
        + "\n".join(differences)
    )


def difference(path: str, spec: TreeSpec, value: Any) -> str:
    """The first difference of an argument's structure from the expected one."""
    found, actual, wanted, reason = next(_differences(path, spec, value))
    if isinstance(reason, _OtherKeys):
        return f"{found} {reason.fault()}"
    return f"{found} is {_plain(actual)}, and the program takes {_plain(wanted)}"


class _OtherKeys(str):
    """The difference between the keys of a dict. lacking, more: its keys, beside those that both have."""

    lacking: list[str]
    more: list[str]

    @classmethod
    def of(cls, text: str, wanted: Sequence[Any], given: Sequence[Any]) -> _OtherKeys:
        """The difference of some keys from those that are wanted, in JAX's words."""
        made = cls(text)
        made.lacking, made.more = (
            [repr(key) for key in sorted(set(some) - set(others), key=str)]
            for some, others in ((wanted, given), (given, wanted))
        )
        return made

    def fault(self) -> str:
        """The fault of the dict that has these keys."""
        lacks, more = f"lacks {', '.join(self.lacking)}", f"has more keys: {', '.join(self.more)}"
        if self.lacking and self.more:
            return f"{lacks}, and {more}"
        return lacks if self.lacking else more


_CLASS = re.compile(r"<class '(?:\w+\.)*(?:<locals>\.)?(.+?)'>")


def _plain(text: str) -> str:
    """A kind of a node in JAX's words, in plain ones."""
    text = _CLASS.sub(r"\1", text.replace("pytree leaf", "array").replace("with pytree metadata", "with the keys"))
    return "None" if text == "NoneType" else f"{'an' if text[0] in 'aeiou' else 'a'} {text}"


def differing(expected: Sequence[TreeSpec], values: Sequence[Any]) -> list[int]:
    """The positions of values whose structure is not the expected one."""
    pairs = enumerate(zip(expected, values, strict=False))
    return [i for i, (spec, value) in pairs if next(_differences("", spec, value), None) is not None]


def sequences_for_leaves(path: str, spec: TreeSpec, value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a value that are lists or tuples where a leaf is expected, with their paths."""
    if spec.kind == "leaf":
        if isinstance(value, list | tuple):
            yield path, value
        return
    if spec.kind == "none":
        return
    actual = TreeSpec.of(value)
    is_alike = (spec.kind, spec.type, spec.keys) == (actual.kind, actual.type, actual.keys)
    if is_alike and len(spec.children) == len(actual.children):
        for step, child, part in _steps(spec, value):
            yield from sequences_for_leaves(path + step, child, part)


def _differences(path: str, spec: TreeSpec, value: Any) -> Iterator[tuple[str, str, str, str]]:
    actual = TreeSpec.of(value)
    if spec.kind == "custom":
        actual = TreeSpec("custom", type=type(value)) if type(value) is spec.type else actual
    if spec.kind == actual.kind and spec.kind in ("leaf", "none"):
        return
    if (spec.kind, spec.type) != (actual.kind, actual.type):
        yield path, _type_text(value, actual), _type_text(None, spec), "their Python types differ"
    elif spec.kind == "custom":
        if spec.flatten and spec.flatten(value) is None:
            yield path, f"{type(value)}", f"{spec.type}", "the pytree node metadata does not match"
    elif spec.kind == "dict" and spec.keys != actual.keys:
        yield path, *_key_difference(spec, actual)
    elif len(spec.children) != len(actual.children):
        name = spec.kind if spec.type is None else spec.type.__name__
        lengths = f"{name} of length {len(actual.children)}", f"{name} of length {len(spec.children)}"
        yield path, *lengths, "the lengths do not match"
    else:
        for step, child, part in _steps(spec, value):
            yield from _differences(path + step, child, part)


def _type_text(value: Any, spec: TreeSpec) -> str:
    if spec.kind == "leaf":
        return "pytree leaf" if value is None else str(type(value))
    plain = {"none": type(None), "tuple": tuple, "list": list, "dict": dict}
    return str(spec.type or plain[spec.kind])


def _key_difference(spec: TreeSpec, actual: TreeSpec) -> tuple[str, str, str]:
    def text(tree: TreeSpec) -> str:
        count = len(tree.keys)
        return f"<class 'dict'> with {count} child{'ren' if count > 1 else ''}"

    if len(spec.keys) == len(actual.keys):
        start = "<class 'dict'> with pytree metadata"
        return f"{start} {actual.keys}", f"{start} {spec.keys}", "the pytree node metadata does not match"
    difference = " ".join(repr(key) for key in sorted(set(spec.keys) ^ set(actual.keys), key=str))
    reason = f"the numbers of children do not match, with the symmetric difference of key sets: {{{difference}}}"
    return text(actual), text(spec), _OtherKeys.of(reason, spec.keys, actual.keys)


def _steps(spec: TreeSpec, value: Any) -> Iterator[tuple[str, TreeSpec, Any]]:
    if spec.kind == "dict":
        for key, child in zip(spec.keys, spec.children, strict=True):
            yield f"[{key!r}]", child, value[key]
        return
    names = [f".{name}" for name in _fields(spec.type)] if spec.type else [f"[{i}]" for i in range(len(value))]
    yield from zip(names, spec.children, value, strict=True)


def _fields(named_tuple: type) -> tuple[str, ...]:
    return getattr(named_tuple, "_fields", ())


def _read_items(items: Any) -> tuple[tuple[Any, ...], list[Any]]:
    if not isinstance(items, list) or not all(isinstance(item, list) and len(item) == 2 for item in items):
        raise ArtifactError("header: a dict's items are not pairs")
    if not all(type(key) in _KEY_TYPES for key, _ in items):
        raise ArtifactError("header: a dict's key is of a wrong type")
    return tuple(key for key, _ in items), [node for _, node in items]


def _named_tuple(data: Any, length: int) -> type:
    """The type itself when its module is already imported, else one that looks the same: reading imports nothing."""
    fields = data.get("fields") if isinstance(data, dict) else None
    if not isinstance(fields, list) or len(fields) != length or not all(isinstance(name, str) for name in fields):
        raise ArtifactError("header: a namedtuple's fields do not fit its children")
    found: Any = sys.modules.get(str(data.get("module")))
    for part in str(data.get("name")).split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and issubclass(found, tuple) and _fields(found) == tuple(fields):
        return found
    try:
        return collections.namedtuple(str(data.get("name")).rpartition(".")[2], fields)
    except ValueError as error:
        raise ArtifactError(f"header: not a namedtuple: {error}") from error


def _custom_flatten(metadata: Any) -> Callable[[Any], tuple[Any, ...] | None]:
    import jax

    def flatten(value: Any) -> tuple[Any, ...] | None:
        one_level = jax.tree_util.default_registry.flatten_one_level(value)
        if one_level is None or one_level[1] != metadata:
            return None
        return tuple(one_level[0])

    return flatten


def _custom_unflatten(treedef: Any) -> Callable[[tuple[Any, ...]], Any]:
    import jax

    marker = object()
    value = jax.tree_util.tree_unflatten(treedef, [marker] * treedef.num_leaves)
    one_node: Any = jax.tree_util.tree_structure(value, is_leaf=lambda part: part is not value)
    return one_node.unflatten
