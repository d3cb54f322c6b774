# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments that a call gives by name, as Python functions take them, in their places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shlo_disc.errors import ArgumentTypeError, ArtifactError

from .axes import Turned, turned
from .tree import TreeSpec, difference, differing, explainer


@dataclass(frozen=True)
class ParameterNames:
    """The names of a program's positional arguments, "" for one that is not passed by name. False without any.

    turned: for each argument how the program takes it, where that is another order of axes than the user's, else None;
    () where that holds of all. weights: how many of the first are weights of a PyTorch program; None where that is not
    known.
    """

    names: tuple[str, ...]
    turned: tuple[Turned | None, ...] = ()
    weights: int | None = None

    @classmethod
    def of(cls, header: Mapping[str, Any], in_tree: TreeSpec) -> ParameterNames:
        """Those that a header states, where the program takes as many. Raises ArtifactError for what are no names."""
        pytree = header.get("pytree") or {}
        found, weights = pytree.get("names", []), pytree.get("weights")
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise ArtifactError("header: 'names' of 'pytree' is not a list of names")
        count, rows = len(in_tree.children[0].children), header["arguments"]
        names = tuple(found) if len(found) <= count else ()
        others = _some([turned(row) for row in rows] if len(rows) == count else ())
        is_known = isinstance(weights, int) and 0 <= weights <= len(names)
        return cls(names, others, weights if is_known else None)

    def __bool__(self) -> bool:
        return bool(self.names)

    def after(self, count: int) -> ParameterNames:
        """The names when the first `count` arguments are bound."""
        return ParameterNames(self.names[count:], _some(self.turned[count:]))

    def by_position(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call whose named arguments stand in their places as far as those before them are given, all as the program
        takes them.

        Raises ShapeError for an array of another shape, in the order of axes in which the user gives it.
        """
        placed, rest = list(args), dict(kwargs)
        for name in self.names[len(placed) :]:
            if not name or name not in rest:
                break
            placed.append(rest.pop(name))
        is_whole = not rest and len(placed) == len(self.turned)
        return (self.as_taken(placed) if is_whole else tuple(placed)), rest

    def as_taken(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The first arguments in the order of axes in which the program takes them. Raises ShapeError."""
        if len(args) > len(self.turned):
            return tuple(args)
        pairs = zip(args, self.turned, strict=False)
        return tuple(value if other is None else other.taken(value) for value, other in pairs)

    def explained(
        self, name: str, expected: TreeSpec, args: Sequence[Any], kwargs: Mapping[str, Any], bound: int = 0
    ) -> str:
        """The parameters that a call of another structure than `expected` lacks, or that differ; "" without names.

        name: of the function. bound: the number of arguments that `bind` has fixed, which have names here.
        """
        if not self:
            return ""
        count, known = bound + len(expected.children[0].children), expected.children[1].keys
        every = [*self.names, *[""] * (count - len(self.names))]
        names = every[:count]
        given = bound + len(args)
        missing = [own or f"args[{place}]" for place, own in enumerate(names) if place >= given and own not in kwargs]
        if twice := [own for own in names[:given] if own and own in kwargs]:
            fault = f"the call gives {twice[0]} by position and by name"
        elif unknown := [key for key in kwargs if key not in names and key not in known]:
            fault = f"the call gives {unknown[0]!r}, which is none of them"
        elif given > count:
            fault = f"the call gives {given} by position"
        elif missing or (missing := [key for key in known if key not in kwargs]):
            fault = f"the call lacks {listed(missing)}"
        else:
            trees = expected.children[0].children
            places = [i for i in differing(trees, args) if names[bound + i]]
            fault = ", ".join(difference(names[bound + i], trees[i], args[i]) for i in places)
        shown = [own or f"args[{place}]" for place, own in enumerate(every)]
        return f"'{name}' takes {listed([*shown, *known])}: {fault}"

    def with_weights(
        self, args: Sequence[Any], weights: Mapping[str, Any], trees: Sequence[TreeSpec] = ()
    ) -> list[Any]:
        """The first arguments of a program: those given by position, and after them the weights in their places.

        Arguments after the weights of a PyTorch program, such as buffers that it changes, are left to the calls: a
        `state_dict` has them as well. trees: the structures of all arguments. Raises ArgumentTypeError for names that
        the program does not have, and where a weight of a PyTorch program, or an argument between others, is missing.
        """
        rest = self.names[len(args) :]
        if unknown := [name for name in weights if name not in rest]:
            others = f"it takes {listed(rest)}" if rest else "it has no names of arguments: give weights by position"
            others += _renamed(unknown, weights, rest) or _entries(unknown, weights, rest, trees[len(args) :])
            raise ArgumentTypeError(f"weights= has {listed(unknown)}, which the program does not take: {others}")
        count = 1 + max((place for place, name in enumerate(rest) if name in weights), default=-1)
        if self.weights:
            count = max(0, self.weights - len(args))
        if missing := [name for name in rest[:count] if name not in weights]:
            raise ArgumentTypeError(f"weights= lacks {listed(missing)}{_ALL if self.weights else ''}")
        return [*args, *(weights[name] for name in rest[:count])]


def _some(others: Sequence[Turned | None]) -> tuple[Turned | None, ...]:
    return tuple(others) if any(others) else ()


_ALL = (
    ": run.save(path, weights=file) writes a file that has all of them, also constants and buffers of no state_dict. "
    "To bind those of this mapping beside the others, give weights={**numpy.load(file), **weights}"
)


def _renamed(unknown: Sequence[str], weights: Mapping[str, Any], names: Sequence[str]) -> str:
    """Advice on weights in an entry of a mapping, and on names with a prefix; "" where there are none of `names`."""
    own = tuple(name for name in names if name)
    for key in unknown if isinstance(weights, dict) else ():
        inner = weights[key]
        if isinstance(inner, Mapping) and any(str(name).endswith(own) for name in inner):
            return f". The weights are in its entry {key!r}: give weights=checkpoint[{key!r}] for weights=checkpoint"
    found = [name for name in own if str(unknown[0]).endswith(f".{name}")]
    if not found:
        return ""
    prefix = unknown[0].removesuffix(max(found, key=len))
    return (
        f". Its names begin with {prefix!r}: give weights={{name.removeprefix({prefix!r}): weight for name, weight in "
        "weights.items()}"
    )


def _entries(
    unknown: Sequence[str], weights: Mapping[str, Any], names: Sequence[str], trees: Sequence[TreeSpec]
) -> str:
    """Advice on the entries of an argument that is a container of arrays, in place of the argument; "" without one."""
    containers = [(name, tree) for name, tree in zip(names, trees, strict=False) if tree.children and name]
    whole = "dict(numpy.load(file))" if isinstance(weights, np.lib.npyio.NpzFile) else "weights"
    for name, tree in containers:
        if tree.kind == "dict" and set(unknown) == set(tree.keys):
            by_position = f"bind({whole}), or " if name == names[0] else ""
            return f". They are the entries of {name}, a dict: write {by_position}bind(weights={{{name!r}: {whole}}})"
    if not containers:
        return ""
    name, tree = containers[0]
    kind = tree.type.__name__ if tree.type else tree.kind
    return f". {name} is a {kind} of arrays, which is given whole, as in bind(weights={{{name!r}: {name}}})"


def explained(
    name: str, expected: TreeSpec, names: ParameterNames, bound: int = 0
) -> Callable[[tuple[Any, ...], dict[str, Any]], str]:
    """The function that explains for a call why its structure is not `expected`, with the names of parameters.

    bound: as for explain_difference.
    """
    explain = explainer(name, expected, bound)

    def explained_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        own = names.explained(name, expected, args, kwargs, bound) or f"the call does not fit the arguments of '{name}'"
        return f"{own}\n{explain(args, kwargs).rstrip()}"

    return explained_call


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names in one line, of which the first and the last ones are shown where there are many."""
    shown = list(names)
    if len(shown) > most:
        shown[most - 3 : -2] = [f"{len(shown) - most + 1} more"]
    return ", ".join(name or "one without a name" for name in shown)


__all__ = ["ParameterNames", "explained", "listed"]
