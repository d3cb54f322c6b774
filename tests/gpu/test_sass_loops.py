# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instructions of attention's loops over keys, and that its kernels spill nothing."""

from __future__ import annotations

from typing import Any

import jax
import pytest

import shlo_disc
from tests.gpu.sass import read
from tests.gpu.sass_loops import rounds
from tests.gpu.test_sass import needs_tools

CODE = """\
first:
        /*0000*/                   MOV R1, R2 ;
.L_x_1:
        /*0010*/                   HMMA.16816.F32 R4, R4, R6, R4 ;
        /*0020*/              @!P0 BRA `(.L_x_2) ;
        /*0030*/                   MOV R1, R2 ;
        /*0040*/                   MOV R1, R2 ;
        /*0050*/                   BRA `(.L_x_3) ;
.L_x_2:
        /*0060*/                   MOV R1, R2 ;
.L_x_4:
        /*0070*/                   IADD3 R1, R1, R2, RZ ;
        /*0080*/               @P1 BRA `(.L_x_4) ;
.L_x_3:
        /*0090*/               @P2 BRA `(.L_x_1) ;
.L_x_5:
        /*00a0*/                   FADD R1, R1, R2 ;
        /*00b0*/               @P2 BRA `(.L_x_5) ;
        /*00c0*/                   EXIT ;
"""


def test_the_shortest_round() -> None:
    """HMMA, the branch, then two moves and a branch, or a move and one round of the inner loop; the branch back."""
    assert rounds(CODE, "HMMA") == [6]
    assert rounds(CODE, "IADD3") == [2]
    assert rounds(CODE, "FADD") == [2]
    assert rounds(CODE, "IMMA") == []


SCORES = 32
"""The scores of a lane, of a piece of 64 keys and a warp's 16 rows."""


@needs_tools
@pytest.mark.ptxas
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_90a"])
@pytest.mark.parametrize(
    ("dtype", "head", "most"), [("bfloat16", 64, 10.6), ("bfloat16", 128, 13.5), ("float32", 64, 26)]
)
@pytest.mark.parametrize("is_causal", [False, True])
def test_instructions_of_a_score(target: str, dtype: str, head: int, most: float, is_causal: bool) -> None:
    """In whole pieces, whose loop is the first: 16-bit heads of 64 took 25.6 when all pieces had masks. f32 is TF32."""

    def function(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v, is_causal=is_causal)

    arguments = ((f"b, s, 4, {head}", dtype),) * 3
    ptx = shlo_disc.compile(function, target=f"cuda:{target}", args=arguments).as_text("ptx")
    ((_, _, usage, machine),) = read(ptx)
    assert usage.spills == 0 and machine.count("LDL", "STL") == 0
    assert usage.registers <= (128 if (dtype, head) == ("bfloat16", 64) else 255)
    whole, *_ = rounds(machine.text, "HMMA")
    assert whole / SCORES <= most
