# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The data that the backends of one work share: a folder of NumPy files, read without JAX.

A tree is nested dicts, lists and tuples of arrays. Its leaves are numbered as JAX does, dicts by sorted key, so that a
backend that knows no JAX gives its results in the same order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

Tree = Any
Paths = Iterator[tuple[tuple[str, ...], Any]]


def paths(tree: Tree, prefix: tuple[str, ...] = ()) -> Paths:
    """The leaves with their paths: a part of a path reads "key" in a dict, "[2]" in a list, "(2)" in a tuple."""
    if isinstance(tree, dict):
        for key in sorted(tree):
            yield from paths(tree[key], (*prefix, key))
    elif isinstance(tree, list | tuple):
        brackets = "[]" if isinstance(tree, list) else "()"
        for index, value in enumerate(tree):
            yield from paths(value, (*prefix, f"{brackets[0]}{index}{brackets[1]}"))
    elif tree is not None:
        yield prefix, tree


def leaves(tree: Tree) -> list[Any]:
    """The leaves of a tree."""
    return [leaf for _, leaf in paths(tree)]


def build(items: Sequence[tuple[tuple[str, ...], Any]]) -> Tree:
    """The tree of these leaves and paths; an empty dict for none."""
    if len(items) == 1 and not items[0][0]:
        return items[0][1]
    children: dict[str, list[tuple[tuple[str, ...], Any]]] = {}
    for path, leaf in items:
        children.setdefault(path[0], []).append((path[1:], leaf))
    values = [build(child) for child in children.values()]
    first = next(iter(children), "")
    if first.startswith("["):
        return values
    return tuple(values) if first.startswith("(") else dict(zip(children, values, strict=True))


def like(tree: Tree, values: Sequence[Any]) -> Tree:
    """A tree of the form of `tree` with other leaves. Raises ValueError when there are too many or too few."""
    return build([(path, value) for (path, _), value in zip(paths(tree), values, strict=True)])


def save(file: Path, tree: Tree) -> None:
    """Writes a tree of arrays."""
    arrays: dict[str, Any] = {"/".join(path) or ".": np.asarray(leaf) for path, leaf in paths(tree)}
    np.savez(file, **arrays)


def load(file: Path, convert: Callable[[np.ndarray], Any] = lambda array: array) -> Tree:
    """Reads a tree; each leaf is converted as soon as it is read, so that no two copies of all are held at once."""
    with np.load(file) as stored:
        return build([(() if name == "." else tuple(name.split("/")), convert(stored[name])) for name in stored.files])


def sample(tree: Tree, most: int = 1 << 16) -> Tree:
    """The data that errors are computed from: of each leaf its shape and at most `most` evenly spaced numbers."""

    def of(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        step = -(-array.size // most) if array.size else 1
        return np.array(array.shape, np.int64), np.ascontiguousarray(array.reshape(-1)[::step])

    return build([(path, of(np.asarray(leaf))) for path, leaf in paths(tree)])


def size(dim: str, symbols: dict[str, int]) -> int:
    """The value of a dim such as "512", "s" or "4*t + 1"."""
    value = 0
    for term in re.sub(r"\s*-\s*", " + -1*", dim).split(" + "):
        product = 1
        for factor in term.split("*"):
            product *= symbols[factor] if factor in symbols else int(factor)
        value += product
    return value


@dataclass
class Folder:
    """The files of one work.

    specs: for each leaf of the inputs its symbolic shape as text, such as ["b", "s"].
    results: the same of the results' leaves.
    weights_count: how many arrays the weights are.
    limits: the largest sizes that the program is meant for, one a symbol.
    padded: the symbols that may be rounded up, with zeros behind, without a change of the results that are kept.
    host_inputs: every backend is given NumPy arrays, not arrays of its own.
    trains: the program returns gradients of all weights.
    pullback: the last input is a cotangent, the results are those of so many leading inputs; 0 for other programs.
    """

    path: Path
    work: str
    small: bool
    dims: str
    shapes: list[list[int]]
    specs: list[list[str]]
    results: list[list[str]]
    limits: list[int]
    torch_model: str
    weights_count: int
    padded: list[str] = field(default_factory=list)
    host_inputs: bool = False
    trains: bool = False
    pullback: int = 0
    config: dict[str, Any] = field(default_factory=dict)

    def write(self) -> None:
        """Writes everything but the arrays."""
        text = json.dumps(asdict(self) | {"path": ""}, indent=1)
        (self.path / "work.json").write_text(text + "\n")

    @staticmethod
    def read(path: Path) -> Folder:
        """The folder that was written at `path`."""
        values = json.loads((path / "work.json").read_text())
        return Folder(**(values | {"path": path}))

    @property
    def weights(self) -> Path:
        """The file of the weights."""
        return self.path / "weights.npz"

    @property
    def onnx(self) -> Path:
        """The ONNX file that PyTorch exports."""
        return self.path / "model.onnx"

    def inputs(self, index: int) -> Path:
        """The file of the inputs at one of the shapes."""
        return self.path / f"inputs-{index}.npz"

    def symbols(self, index: int) -> dict[str, int]:
        """The symbols' values at one of the shapes."""
        return dict(zip(self.dims.split(", "), self.shapes[index], strict=True))

    @property
    def configuration(self) -> SimpleNamespace:
        """The model's configuration, by attributes."""
        return SimpleNamespace(**self.config)
