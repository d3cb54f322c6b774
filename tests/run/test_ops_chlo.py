# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CHLO ops in a program's text, which are rewritten into StableHLO while it is read."""

from __future__ import annotations

import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ProgramError


@pytest.mark.parametrize("size", ["?", "5"])
def test_a_chlo_op(size: str) -> None:
    kind = f"tensor<{size}xf32>"
    text = f"func.func @main(%x: {kind}) -> {kind} {{\n  %r = chlo.cosh %x : {kind} -> {kind}\n  return %r : {kind} }}"
    executable = shlo_disc.compile(text)
    for count in (1, 17) if size == "?" else (5,):
        x = np.linspace(-3, 3, count, dtype=np.float32)
        np.testing.assert_allclose(executable(x), np.cosh(x), rtol=1e-6)


def test_a_chlo_op_that_does_not_exist() -> None:
    with pytest.raises(ProgramError, match="CHLO ops that cannot be rewritten: .*nonsense"):
        shlo_disc.compile("func.func @main(%x: tensor<f32>) {\n  %r = chlo.nonsense %x : tensor<f32>\n  return }")
