# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pictures of docs/benchmarks.md show the figures of its tables."""

from __future__ import annotations

import html

import pytest

from benchmarks.page_pictures import FOLDER, PAGE, PICTURES, Picture, described

TABLE = """
Warm: as ratios.

| work | shlo_disc | jax.jit |
|--|--|--|
| A | **0.50** | 1.00 |
| B | refused | 2.00 |

text
"""


def test_figures_of_a_table() -> None:
    picture = Picture("p", "Warm: ", ("shlo_disc", "jax.jit"), "")
    assert picture.figures(TABLE) == {"A": {"shlo_disc": 0.5, "jax.jit": 1.0}, "B": {"jax.jit": 2.0}}
    with pytest.raises(ValueError, match="begins with 'Warm: '"):
        picture.figures(TABLE.replace("Warm", "Cold"))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_the_pictures_are_current(picture: Picture) -> None:
    """`python -m benchmarks.page_pictures` draws them."""
    drawn = html.unescape((FOLDER / f"{picture.name}.svg").read_text())
    assert described(picture.figures(PAGE.read_text())) in drawn


def test_nothing_is_drawn_with_a_background() -> None:
    for picture in PICTURES:
        text = (FOLDER / f"{picture.name}.svg").read_text()
        assert "#ffffff" not in text and "#000000" not in text
