# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instructions of attention's loops over keys, and that its kernels spill nothing."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import shlo_disc
from shlo_disc.lowering.codegen.cuda_toolkit import find_ptxas
from shlo_disc.lowering_gpu.hopper_attention import KEYS
from tests.gpu.sass import parse_usage, read
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
    usage, machine = next(found[2:] for found in read(ptx) if not found[0].endswith("_by_maps"))
    assert usage.spills == 0 and machine.count("LDL", "STL") == 0
    assert usage.registers <= (128 if (dtype, head) == ("bfloat16", 64) else 255)
    whole, *_ = rounds(machine.text, "HMMA")
    assert whole / SCORES <= most


@needs_tools
@pytest.mark.ptxas
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize(
    ("head", "registers", "most"), [(40, 128, 8.6), (48, 128, 8.6), (80, 190, 9.8), (96, 230, 10.4)]
)
@pytest.mark.parametrize("is_causal", [False, True])
def test_heads_that_are_no_power_of_two(head: int, registers: int, most: float, is_causal: bool, target: str) -> None:
    """A thread brings the same columns of several rows: heads of 48 had 132 bytes spilled, and of 80 224 registers."""

    def function(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v, is_causal=is_causal)

    ptx = shlo_disc.compile(function, target=f"cuda:{target}", args=((f"b, s, 4, {head}", "bfloat16"),) * 3).as_text(
        "ptx"
    )
    for *_, usage, machine in read(ptx):
        assert usage.spills == 0 and machine.count("LDL", "STL") == 0 and usage.registers <= registers
        whole, *_ = rounds(machine.text, "HMMA")
        assert whole / SCORES <= most


@needs_tools
@pytest.mark.ptxas
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("head", "most"), [(64, 6.0), (128, 6.4)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_instructions_of_a_score_by_wgmma(dtype: str, head: int, most: float, is_causal: bool) -> None:
    """In whole pieces. Products of a piece before go on in the softmax, so there is a wait for each kind and piece."""

    def function(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v, is_causal=is_causal)

    ptx = shlo_disc.compile(function, target="cuda:sm_90a", args=((f"b, s, 4, {head}", dtype),) * 3).as_text("ptx")
    usage, machine = next(found[2:] for found in read(ptx) if found[0].endswith("_by_maps"))
    assert usage.spills == 0 and machine.count("LDL", "STL") == 0 and usage.registers <= 168
    # Two first pieces, whole or not; two loops; what is left of the last piece.
    products = 2 * head // 16 + 2 * (head // 16 + KEYS // 16) + KEYS // 16
    assert machine.count("HGMMA") == products and machine.count("WARPGROUP.DEPBAR") == 2 + 2 * 2 + 1
    whole, *_ = rounds(machine.text, "HGMMA")
    assert whole / (KEYS // 2) <= most


def scores_in(dtype: str) -> Callable[..., Any]:
    """Attention whose scores are rounded, or not, before they are scaled and get a bias."""

    def function(q: Any, k: Any, v: Any, bias: Any) -> Any:
        scores = jnp.einsum("bqd,bkd->bqk", q, k, preferred_element_type=dtype) * 0.5 + bias
        return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores).astype(v.dtype), v)

    return function


@needs_tools
@pytest.mark.ptxas
@pytest.mark.parametrize("head", [64, 128])
@pytest.mark.parametrize(
    ("dtype", "scores"), [("bfloat16", "float32"), ("bfloat16", "bfloat16"), ("float16", "float16")]
)
def test_products_are_not_waited_for_one_by_one(dtype: str, scores: str, head: int) -> None:
    """The assembler makes each product wait for the one before where it takes sums for used too early, and says so."""
    keys = (f"b, k, {head}", dtype)
    arguments = ((f"b, q, {head}", dtype), keys, keys, ("b, q, k", scores))
    ptx = shlo_disc.compile(scores_in(scores), target="cuda:sm_90a", args=arguments).as_text("ptx")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernels.ptx")
        source.write_text(ptx)
        command = [find_ptxas(), "-v", "-arch=sm_90a", source, "-o", source.with_suffix(".cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    (usage,) = [one for name, one in parse_usage(done.stdout + done.stderr).items() if name.endswith("_by_maps")]
    assert "serialized" not in done.stdout + done.stderr and usage.spills == 0
