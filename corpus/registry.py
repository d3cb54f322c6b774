# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The entries of the corpus: their type, and their names, read from the files without an import of clients."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

SIZES = (5, 8, 9, 14)
STREAM_SIZES = (5, 8, 9, 14, 6, 11, 13, 20)
_ROOT = Path(__file__).parent
_TORCH = "torch"

Build = Callable[[int], Any]
"""From a size to a function and its arguments, which are arrays or pytrees of arrays; or to a `torch_models.Case`."""


@dataclass(frozen=True)
class Entry:
    """A program of the corpus.

    sizes: how the sizes of the corpus, such as 5, become those of the program. tolerance: that of float32, where the
    default is too narrow, as for solvers that iterate. mode: of PyTorch's.
    """

    client: str
    name: str
    build: Build
    sizes: Callable[[int], int] = int
    tolerance: float | None = None
    mode: Literal["jax", "compile", "export", "training"] = "jax"


_ENTRIES: dict[tuple[str, str], Entry] = {}


def program(sizes: Callable[[int], int] = int, tolerance: float | None = None) -> Callable[[Build], Build]:
    """Make a function of a client's file an entry, which has the file's and the function's names."""

    def add(build: Build) -> Build:
        client = build.__module__.rpartition(".")[2].removesuffix("_")
        _ENTRIES[client, build.__name__] = Entry(client, build.__name__, build, sizes, tolerance)
        return build

    return add


def entry_names() -> list[tuple[str, str]]:
    """The clients and the names of all entries, in order."""
    names = [(path.stem.removesuffix("_"), name) for path in _files() for name in _programs(path)]
    return sorted([*names, *((_TORCH, name) for name in _torch_names())])


def find_entry(client: str, name: str) -> Entry:
    """An entry, whose client is imported. Raises KeyError and ImportError."""
    if client == _TORCH:
        model, _, mode = name.rpartition("_")
        build = importlib.import_module("corpus.torch_models").MODELS[model]
        return Entry(_TORCH, name, build, SIZES.index, mode=mode)  # type: ignore[arg-type]
    importlib.import_module(f"corpus.clients.{client}_")
    return _ENTRIES[client, name]


def _files() -> list[Path]:
    return sorted(path for path in (_ROOT / "clients").glob("*_.py") if path.stem != "__init__")


def _programs(path: Path) -> list[str]:
    functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    return [f.name for f in functions if any(_is_program(decorator) for decorator in f.decorator_list)]


def _is_program(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "program"


def _torch_names() -> list[str]:
    """Each model of `torch_models` in both modes of inference, and some in training, if there is PyTorch."""
    try:
        models = importlib.import_module("corpus.torch_models")
    except ImportError:
        return []
    return [
        f"{name}_{mode}" for mode in ("compile", "export", "training") for name in models.MODELS
        if mode != "training" or name in models.TRAINED
    ]  # fmt: skip


_real_weights = False


def use_real_weights() -> None:
    """Let `weights` run constructors from now on, as the streams of clients do."""
    global _real_weights
    _real_weights = True


def is_key(leaf: Any) -> bool:
    """Tells whether an array, or the shape of one, is of keys of random numbers, which NumPy has not."""
    import jax

    return bool(jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def weights(make: Callable[..., Any], *inputs: Any) -> Any:
    """The result of a constructor, as arrays of these shapes, without running it, which takes XLA the longest."""
    import jax

    if _real_weights:
        return jax.jit(make)(*inputs)
    leaves, tree = jax.tree.flatten(jax.eval_shape(make, *inputs))
    return jax.tree.unflatten(tree, [_filled(leaf, number) for number, leaf in enumerate(leaves)])


def _filled(leaf: Any, number: int) -> Any:
    if is_key(leaf):
        import jax

        return jax.random.key(number)
    if not np.issubdtype(leaf.dtype, np.floating):
        return np.zeros(leaf.shape, leaf.dtype)
    return (0.3 * np.random.default_rng(number).normal(size=leaf.shape)).astype(leaf.dtype)


def normal(*sizes: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Normally distributed float32, the same at each call."""
    return np.random.default_rng(seed).normal(size=sizes).astype(np.float32)


def integers(below: int, *sizes: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Integers from 0 on, the same at each call."""
    return np.random.default_rng(seed).integers(0, below, size=sizes).astype(np.int32)


def key(seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """A key of JAX's default random number generator, made without an op."""
    return np.array([0, seed], np.uint32)


__all__ = [
    "SIZES", "STREAM_SIZES", "Build", "Entry", "entry_names", "find_entry", "integers", "is_key", "key", "normal",
    "program",    "use_real_weights", "weights",
]  # fmt: skip
