# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entries of `dynamic=` that are written as shapes are elsewhere: errors name the argument, and what they say works."""

from __future__ import annotations

import ast
import re
from typing import Any

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
    "integers": (3, "n, ..."),
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
