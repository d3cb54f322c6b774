# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entries of `dynamic=` that are written as shapes are elsewhere: errors name the argument, and what they say works."""

from __future__ import annotations

import ast
import re
from typing import Any

import jax
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import OptionError

X = np.ones((2, 4), np.float32)

ENTRIES: dict[str, tuple[Any, str]] = {
    "sizes": (("b", 4), "b, 4"),
    "a list": (["b", 4], "b, 4"),
    "-1": ((-1, 4), "n, 4"),
    "None": ((None, 4), "n, 4"),
    "None alone": ((None,), "n, ..."),
    "another number": (("b", 8), "b, _"),
    "an axis": ((0,), "n, _"),
    "an axis by number": ({0: "n"}, "n, _"),
    "axes": ((0, 1), "n, m"),
    "a specification": (("n, 4", "float32"), "n, 4"),
    "a symbolic shape": (jax.export.symbolic_shape("n, 4"), "n, 4"),
    "no comma": ("n 4", "n, 4"),
    "a semicolon": ("n; _", "n, _"),
    "no comma between names": ("b s", "b, s"),
    "a star": ("*", "n, ..."),
    "stars": ("*, *", "n, m"),
    "a question mark": ("?, n", "m, n"),
    "-1 in a text": ("-1, 4", "n, 4"),
    "two words": ("batch size, 4", "batch_size, 4"),
    "too many sizes": ("b, c, d", "b, c"),
    "too many numbers": ("b, 4, 4", "b, 4"),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_what_an_entry_is_to_be(name: str) -> None:
    entry, wanted = ENTRIES[name]
    for place in (0, 1):
        dynamic = [None, None]
        dynamic[place] = entry
        with pytest.raises(OptionError, match=rf"for args\[{place}\]") as caught:
            shlo_disc.jit(lambda x, y: x + y, dynamic=tuple(dynamic))(X, X)
        assert caught.value.code == "DISC-O105"
        found = re.findall(r"'[^']*'", str(caught.value).partition(": write")[2] or str(caught.value))
        assert found and ast.literal_eval(found[0]) == wanted
        if whole := re.search(r", as in dynamic=(\(.*\)) \[", str(caught.value)):
            assert ast.literal_eval(whole[1]) == tuple(wanted if i == place else None for i in range(2))
    function = shlo_disc.jit(lambda x: x + 1, dynamic=(wanted,))
    for rows in (2, 5):
        np.testing.assert_array_equal(function(X[:1].repeat(rows, 0)), np.full((rows, 4), 2))
    assert function.compile_count == 1


KEYS: dict[str, tuple[Any, str]] = {
    "misspelt": ({"wieght": "n, _", "b": None}, "the key 'wieght' for .*: did you mean 'weight'"),
    "another": ({"q": "n, _", "weight": None, "b": None}, "the key 'q' for .*: it has 'weight', 'b'"),
    "missing": ({"weight": "n, _"}, "lacks the key 'b' for .*: write 'b': None"),
    "in a text": ({"weight": "*, _", "b": None}, r"has '\*, _' for args\[0\]\['weight'\]: .* write 'n, _'"),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_entries(name: str) -> None:
    entry, text = KEYS[name]
    with pytest.raises(OptionError, match=f"^dynamic= .*{text}"):
        shlo_disc.jit(lambda p: p["weight"] + p["b"], dynamic=(entry,))({"weight": X, "b": X[:1]})


def test_lengths_of_entries() -> None:
    with pytest.raises(OptionError, match=r"has 2 entries for args\[0\], which has 1: write one for each"):
        shlo_disc.jit(lambda p: p[0] + 1, dynamic=(["b, _", "c"],))([X])


def layer(inputs: Any, weights: Any) -> Any:
    return inputs @ weights


W = np.ones((4, 3), np.float32)
WHOLE: dict[str, Any] = {
    "positions": (0, 1),
    "the first position": (0,),
    "a missing entry": ("n, _",),
    "an entry too many": ("n, _", None, None),
    "one position": 0,
    "names": {"inputs"},
    "all": True,
    "a position as a name": {0: "n, _"},
}


@pytest.mark.parametrize("is_filtered", [False, True])
@pytest.mark.parametrize("name", WHOLE)
def test_the_dynamic_to_write(name: str, is_filtered: bool) -> None:
    """Each one that an error shows serves another size with the same program."""
    for use in (lambda f: f(X, W), lambda f: f.lower(X, W)):
        with pytest.raises(OptionError) as caught:
            use(shlo_disc.jit(layer, dynamic=WHOLE[name], filter=is_filtered))  # type: ignore[call-overload]
    text = str(caught.value)
    shown = re.findall(r"dynamic=(\(.*?\)|\{.*?\})(?=[,.]? or | \[|, or)", text)
    shown += [f"{{{found!r}: 'n, _'}}" for found in re.findall(r"did you mean '(\w+)'\?", text)]
    assert shown, text
    for dynamic in shown:
        function = shlo_disc.jit(layer, dynamic=ast.literal_eval(dynamic), filter=is_filtered)  # type: ignore[call-overload]
        for rows in (2, 5):
            np.testing.assert_array_equal(function(X[:1].repeat(rows, 0), W), np.full((rows, 3), 4))
        assert function.compile_count == 1


def test_entries_for_arguments_by_name() -> None:
    with pytest.raises(OptionError, match="by name, as in dynamic=") as caught:
        shlo_disc.jit(layer, dynamic=("n, _", None))(inputs=X, weights=W)
    found = re.search(r"dynamic=(\{.*\}) \[", str(caught.value))
    assert found
    function = shlo_disc.jit(layer, dynamic=ast.literal_eval(found[1]))
    np.testing.assert_array_equal(function(inputs=X, weights=W), X @ W)
    with pytest.raises(OptionError, match="the call has 1 positional argument: it lacks weights"):
        shlo_disc.jit(layer, dynamic=("n, _", None))(X)
    with pytest.raises(OptionError, match=r"one text has all sizes of an argument, as in dynamic=\('b, _',\) \["):
        shlo_disc.jit(lambda x: x, dynamic=("b", "_"))(X)


@pytest.mark.parametrize("dynamic", ["n, _", ("n, _", None), {"inputs": "n, _"}])
def test_lists_of_numbers(dynamic: Any) -> None:
    if isinstance(dynamic, str):
        function, args = (lambda inputs: 2 * jax.numpy.asarray(inputs)), ()
    else:
        function, args = layer, (W,)
    with pytest.raises(
        OptionError, match=r"for args\[0\], which is a list .* pass one array, numpy\.asarray\(inputs\) \["
    ):
        shlo_disc.jit(function, dynamic=dynamic)(X.tolist(), *args)
    jitted = shlo_disc.jit(function, dynamic=dynamic)
    np.testing.assert_array_equal(jitted(np.asarray(X.tolist()), *args), function(X, *args))
    with pytest.raises(OptionError, match=r"for kwargs\['inputs'\], .*numpy\.asarray\(inputs\) \["):
        shlo_disc.jit(function, dynamic={"inputs": "n, _"})(inputs=X.tolist(), **({"weights": W} if args else {}))


def test_lists_beside_static_arguments() -> None:
    """Tuples that are static are no arrays."""
    function = shlo_disc.jit(lambda k, x: x * k[0], dynamic="n", static_argnums=0)
    np.testing.assert_array_equal(function((2, 3), X[0]), 2 * X[0])
    np.testing.assert_array_equal(function(k=(2, 3), x=X[0]), 2 * X[0])
    with pytest.raises(OptionError, match=r"for args\[1\], .*numpy\.asarray\(x\) \["):
        shlo_disc.jit(lambda k, x: x * k[0], dynamic="n", static_argnums=0)((2, 3), [1.0, 2.0])
