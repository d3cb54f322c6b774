# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments that calls give by the names of the compiled function's parameters."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import shlo_disc
from shlo_disc import Options
from shlo_disc.errors import ArgumentTypeError, ArtifactError
from shlo_disc.runtime import Artifact, Client
from shlo_disc.runtime.parameter_names import ParameterNames
from shlo_disc.runtime.tree import call_tree

X = np.arange(8, dtype=np.float32).reshape(2, 4)
W = np.arange(12, dtype=np.float32).reshape(4, 3)
ARGS = (("b, 4", "float32"), ("4, 3", "float32"))


def layer(x: Any, w: Any) -> Any:
    return x @ w


def compiled(**options: Any) -> Any:
    return shlo_disc.compile(layer, args=ARGS, options=Options(**options))


def reloaded(folder: Path) -> Any:
    compiled().save(folder / "layer.shlodisc")
    return shlo_disc.load(folder / "layer.shlodisc", trust=True)


WAYS: dict[str, Callable[[Path], Any]] = {
    "compiled": lambda _: compiled(),
    "in a process of its own": lambda _: compiled(isolate=True),
    "with an output": lambda _: compiled(output="numpy"),
    "from the cache": lambda folder: (compiled(cache_dir=folder), compiled(cache_dir=folder))[1],
    "loaded": reloaded,
    "pickled": lambda _: pickle.loads(pickle.dumps(compiled())),  # noqa: S301 - written here
    "a jitted function": lambda _: shlo_disc.compile(jax.jit(layer), args=ARGS),
    "a function of more": lambda _: shlo_disc.compile(functools.partial(lambda k, x, w: k * x @ w, 1), args=ARGS),
}


@pytest.mark.parametrize("way", WAYS)
def test_names_are_known(way: str, tmp_path: Path) -> None:
    executable = WAYS[way](tmp_path)
    for result in (executable(x=X, w=W), executable(w=W, x=X), executable(X, w=W), executable(X, W)):
        np.testing.assert_array_equal(result, X @ W)


def test_what_is_bound_and_what_jax_traces() -> None:
    executable = compiled()
    bound = executable.bind(X)
    np.testing.assert_array_equal(bound(w=W), X @ W)
    np.testing.assert_array_equal(bound.execute((), {"w": W}), X @ W)
    np.testing.assert_array_equal(executable.loaded.execute((X,), {"w": W}), X @ W)
    np.testing.assert_array_equal(jax.jit(lambda x: executable(w=W, x=x))(X), X @ W)
    with pytest.raises(ArgumentTypeError):
        bound(x=X, w=W)


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {"w": W}), ((X, W), {"w": W}), ((X,), {"v": W}), ((X, W), {"v": W}), ((), {"": X})]
)
def test_names_that_do_not_fit(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with pytest.raises(ArgumentTypeError, match="same pytree structure"):
        compiled()(*args, **kwargs)


def test_parameters_that_have_no_place() -> None:
    """Those that are given by name alone stay so, and those that have no name to a caller."""

    def positional_only(x: Any, /, w: Any, *, scale: Any) -> Any:
        return x @ w * scale

    executable = shlo_disc.compile(positional_only, args=ARGS, kwargs={"scale": ("", "float32")})
    for result in (executable(X, W, scale=2.0), executable(X, w=W, scale=2.0)):
        np.testing.assert_array_equal(result, X @ W * 2)
    with pytest.raises(ArgumentTypeError):
        executable(x=X, w=W, scale=2.0)
    several = shlo_disc.compile(lambda *arrays: sum(arrays), args=(("b", "float32"),) * 2)
    np.testing.assert_array_equal(several(X[0], X[0]), X[0] * 2)
    with pytest.raises(ArgumentTypeError):
        several(arrays=X[0])


def test_programs_without_names() -> None:
    exported = jax.export.export(jax.jit(layer))(X, W)
    executable = shlo_disc.compile(exported)
    assert "names" not in executable.artifact.header["pytree"]
    with pytest.raises(ArgumentTypeError):
        executable(x=X, w=W)


def test_names_in_a_header_are_checked() -> None:
    whole = compiled().artifact
    for names in ("xw", [1, 2], {"x": 0}):
        pytree = whole.header["pytree"] | {"names": names}
        artifact = Artifact({**whole.header, "pytree": pytree}, whole.sections)
        with pytest.raises(ArtifactError, match="is not a list of names"):
            Client().load(artifact)
    too_many = ParameterNames.of({"pytree": {"names": ["a", "b", "c"]}, "arguments": []}, call_tree(2))
    assert not too_many and too_many.by_position((1,), {"b": 2}) == ((1,), {"b": 2})
