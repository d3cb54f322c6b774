# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`llvm.ldexp` on f32 for processors without AVX-512's instruction for it, where LLVM would call libm for each lane."""

from __future__ import annotations

import re

from .cpu_target import CpuTarget

_DECLARATION = re.compile(r"^declare (\S+|<\d+ x float>) (@llvm\.ldexp\.[\w.]+)\([^\n]*$", re.MULTILINE)

# x * 2**h * 2**(n - h) with h = n / 2: both factors are normal numbers, and the result is rounded once.
_DEFINITION = """\
define internal {float} {name}({float} %x, {int} %n) alwaysinline nounwind {{
  %half = ashr {int} %n, {one}
  %rest = sub {int} %n, %half
  %half.biased = add {int} %half, {bias}
  %rest.biased = add {int} %rest, {bias}
  %half.bits = shl {int} %half.biased, {fraction}
  %rest.bits = shl {int} %rest.biased, {fraction}
  %half.power = bitcast {int} %half.bits to {float}
  %rest.power = bitcast {int} %rest.bits to {float}
  %partly = fmul {float} %x, %half.power
  %result = fmul {float} %partly, %rest.power
  ret {float} %result
}}"""


def with_inline_ldexp(ir_text: str, target: CpuTarget) -> str:
    """`ir_text` with its f32 `llvm.ldexp` computed inline, unless `target` has an instruction for it.

    Exact for exponents from -252 to 254, which `vector_math` keeps to.
    """
    if "avx512f" in target.features or "@llvm.ldexp." not in ir_text:
        return ir_text
    defined = _DECLARATION.sub(lambda match: _definition(match.group(1), match.group(2)), ir_text)
    return defined.replace("@llvm.ldexp.", "@inline.ldexp.")


def _definition(float_type: str, name: str) -> str:
    def constant(number: int) -> str:
        return f"splat (i32 {number})" if float_type.startswith("<") else str(number)

    return _DEFINITION.format(
        float=float_type,
        int=float_type.replace("float", "i32"),
        name=name,
        one=constant(1),
        bias=constant(127),
        fraction=constant(23),
    )
