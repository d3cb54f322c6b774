# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Portable artifacts of a newer StableHLO than that of the compiler's bindings: those in `newer_artifacts/` are 1.22.0.

They are read where nothing in them is newer, or where JAX's bindings rewrite them; other errors name the versions.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from jaxlib.mlir.dialects import stablehlo

import shlo_disc
from shlo_disc.errors import ProgramError
from shlo_disc.importer.reader.formats import portable_version

FOLDER = Path(__file__).with_name("newer_artifacts")
X = np.arange(4, dtype=np.float32)
NEWER = r"a portable artifact of StableHLO 1\.22\.0, and the compiler reads 1\.\d+\.0, which lacks parts of it"
JAX_READS = tuple(int(part) for part in stablehlo.get_current_version().split(".")) >= (1, 20, 0)


def test_the_version_is_that_of_the_artifacts() -> None:
    assert {portable_version(path.read_bytes()) for path in FOLDER.iterdir()} == {"1.22.0"}


def test_nothing_in_it_is_newer() -> None:
    np.testing.assert_array_equal(shlo_disc.compile((FOLDER / "add.mlirbc").read_bytes())(X), 2 * X)


def test_jax_rewrites_an_op_whose_encoding_changed() -> None:
    """1.20 encodes `collective_broadcast` anew, with or without a root that is an operand."""
    program = (FOLDER / "broadcast.mlirbc").read_bytes()
    if JAX_READS:
        np.testing.assert_array_equal(shlo_disc.compile(program)(X), X)
        return
    with pytest.raises(ProgramError, match=rf"{NEWER} .*collective_broadcast_v2.*serialize it for 1\.17\.0"):
        shlo_disc.compile(program)


@pytest.mark.parametrize(
    ("name", "reason"), [("dynamic_root", "collective_broadcast_v2"), ("mixed_convolution", "compatible element type")]
)
def test_what_older_versions_lack_is_refused(name: str, reason: str) -> None:
    with pytest.raises(ProgramError, match=rf"{NEWER} .*{reason}.*serialize it for 1\.17\.0") as caught:
        shlo_disc.compile((FOLDER / f"{name}.mlirbc").read_bytes())
    assert caught.value.code == "DISC-P102"
