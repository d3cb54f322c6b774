# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The file that an error about a missing one names."""

from __future__ import annotations

from pathlib import Path

import pytest

from shlo_disc.errors import similar_file


@pytest.mark.parametrize(
    ("missing", "found"),
    [
        ("layers.disc", "layer.disc"),
        ("layer.disk", "layer.disc"),
        ("layer", "layer.disc"),
        ("layer.mlir", "layer.disc"),
        ("layr.weights", "layer.weights"),
        ("expr.disc", ""),
        ("a.disc", ""),
    ],
)
def test_names_are_near_by_their_stems(missing: str, found: str, tmp_path: Path) -> None:
    for name in ("zero.disc", "layer.disc", "layer.weights", "b.disc"):
        (tmp_path / name).touch()
    assert similar_file(tmp_path / missing) == (f"did you mean {str(tmp_path / found)!r}?" if found else "")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert similar_file(tmp_path / "no" / "x.disc") == f"there is no folder {str(tmp_path / 'no')!r}"
