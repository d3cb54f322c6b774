# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pytrees of a program's arguments and results, by the header of its artifact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shlo_disc.errors import ArtifactError

from .tree import LEAF, TreeSpec, call_tree

_IN_TREE = "load it with in_tree=jax.tree.structure((args, kwargs)), where args and kwargs are those of a call"
_OUT_TREE = "load it with out_tree=jax.tree.structure(result), where result is what a call returns"


def trees_of(header: Mapping[str, Any], in_tree: Any, out_tree: Any) -> tuple[TreeSpec, TreeSpec]:
    """The trees given by the caller (PyTreeDef or TreeSpec), else those of the header, else flat ones."""
    stored = header.get("pytree") or {}
    if not isinstance(stored, Mapping):
        raise ArtifactError("header: 'pytree' is not an object")
    if in_tree is None:
        in_tree = TreeSpec.from_json(stored["in"], _IN_TREE) if "in" in stored else call_tree(len(header["arguments"]))
    if out_tree is None:
        count = len(header["results"])
        flat = LEAF if count == 1 else TreeSpec("tuple", (LEAF,) * count)
        out_tree = TreeSpec.from_json(stored["out"], _OUT_TREE) if "out" in stored else flat
    trees = tuple(tree if isinstance(tree, TreeSpec) else TreeSpec.from_jax(tree) for tree in (in_tree, out_tree))
    if trees[0].kind != "tuple" or [child.kind for child in trees[0].children] != ["tuple", "dict"]:
        raise ArtifactError("header: the tree of the arguments is not (args, kwargs)")
    return trees[0], trees[1]


def rebuilt(tree: TreeSpec, leaves: Any) -> Any:
    """The containers of `tree` around `leaves`; custom nodes become tuples, for shapes are no arrays."""
    if tree.kind == "leaf":
        return next(leaves)
    if tree.kind == "none":
        return None
    children = [rebuilt(child, leaves) for child in tree.children]
    if tree.kind == "dict":
        return dict(zip(tree.keys, children, strict=True))
    if tree.kind == "list":
        return children
    return tree.type(*children) if tree.kind == "namedtuple" and tree.type else tuple(children)


__all__ = ["rebuilt", "trees_of"]
