# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM dialect -> LLVM IR text that llvmlite's LLVM can parse.

The MLIR bindings and llvmlite carry two different versions of LLVM, so modules pass between them as text. The bindings'
newer printer writes floating-point constants in a syntax (`f0x40490FDB`, `-inf`, `+qnan`, `+snan(0x1)`, decimals that
are merely close) that the older parser rejects. `rewrite_float_literals` turns every such constant into the bit-exact
hexadecimal form that all versions read.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.mlir import ir, to_llvm_ir_text


@dataclass(frozen=True)
class _Format:
    """A binary floating-point format: widths in bits of the whole, and of the stored fraction."""

    bits: int
    fraction: int

    @property
    def exponent_mask(self) -> int:
        return ((1 << (self.bits - 1 - self.fraction)) - 1) << self.fraction

    @property
    def quiet_bit(self) -> int:
        return 1 << (self.fraction - 1)

    @property
    def sign_bit(self) -> int:
        return 1 << (self.bits - 1)


_FORMATS = {"half": _Format(16, 10), "bfloat": _Format(16, 7), "float": _Format(32, 23), "double": _Format(64, 52)}

# Names, strings and comments come first, so that nothing inside them is taken for a type or a literal.
_TOKEN = re.compile(
    r"""
    (?P<skip> c?"[^"]*" | ;[^\n]* | [%@!$\#][-a-zA-Z$._0-9]+ | [%@!$]"[^"]*" )
  | \b(?P<type> half | bfloat | float | double )\b
  | (?<![\w.$-]) (?P<literal>
        f0x[0-9A-Fa-f]+
      | [+-](?: inf | qnan | s?nan\(0x[0-9A-Fa-f]+\) )
      | [+-]?[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?
    ) (?![\w.$])
  | [-\w.$]+
    """,
    re.VERBOSE,
)


_LINE_OF_LITERALS = re.compile(r"^.*(?:f0x|[0-9]\.|[+-](?:inf|qnan|s?nan\()).*$", re.MULTILINE)
"""A line that may hold a literal; most do not, and finding its tokens takes much longer."""


def rewrite_float_literals(text: str) -> str:
    """Return `text` (LLVM IR) with every floating-point constant in the hexadecimal form, bit for bit the same value.

    The type of a constant is the last `half`, `bfloat`, `float` or `double` before it, as the grammar of LLVM IR puts
    the type of an operand (or of all operands of an instruction) in front, on the same line. Raises `CompilerError`
    when a constant has no type before it or does not fit it.
    """
    return _LINE_OF_LITERALS.sub(lambda line: _rewrite_line(line[0]), text)


def _rewrite_line(text: str) -> str:
    kind = ""

    def replace(match: re.Match[str]) -> str:
        nonlocal kind
        if match["type"]:
            kind = match["type"]
        if match["literal"] is None:
            return match[0]
        if not kind:
            raise CompilerError(f"LLVM IR: floating-point constant {match[0]} has no type before it")
        return _rewritten(match["literal"], kind)

    return _TOKEN.sub(replace, text)


@lru_cache(maxsize=1024)
def _rewritten(literal: str, kind: str) -> str:
    return _hexadecimal(literal_bits(literal, kind), kind)


def literal_bits(literal: str, kind: str) -> int:
    """Bit pattern that the constant `literal` of type `kind` (half, bfloat, float, double) denotes."""
    form = _FORMATS[kind]
    if literal.startswith("f0x"):
        bits = int(literal[3:], 16)
    elif "n" in literal:
        bits = _special_bits(literal[1:], form) | (form.sign_bit if literal[0] == "-" else 0)
    else:
        bits = _decimal_bits(literal, kind)
    if bits >> form.bits:
        raise CompilerError(f"LLVM IR: constant {literal} does not fit in {kind}")
    return bits


def _special_bits(name: str, form: _Format) -> int:
    """Bits of `inf`, `qnan`, `nan(payload)` (quiet) or `snan(payload)`, positive."""
    if name == "inf":
        return form.exponent_mask
    payload = int(name[name.index("(") + 1 : -1], 16) if "(" in name else 0
    if payload >= form.quiet_bit or (name.startswith("snan") and payload == 0):
        raise CompilerError(f"LLVM IR: NaN payload of {name} is out of range")
    quiet = 0 if name.startswith("snan") else form.quiet_bit
    return form.exponent_mask | quiet | payload


def _decimal_bits(literal: str, kind: str) -> int:
    """Bits of the value of type `kind` nearest to the decimal, ties to even, as LLVM's own reader would take it."""
    nearest = float(literal)
    if kind == "double":
        return int(struct.unpack("<Q", struct.pack("<d", nearest))[0])
    value = _round_to_odd(nearest, Fraction(literal))
    try:
        if kind == "half":
            return int(struct.unpack("<H", struct.pack("<e", value))[0])
        single = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise CompilerError(f"LLVM IR: constant {literal} does not fit in {kind}") from None
    if kind == "float":
        return int(struct.unpack("<I", struct.pack("<f", single))[0])
    odd = _single_round_to_odd(single, Fraction(literal))
    return (odd + 0x7FFF + ((odd >> 16) & 1)) >> 16


def _round_to_odd(nearest: float, exact: Fraction) -> float:
    """The double next to `exact` that is odd unless exact: rounding it once more gives a correctly rounded result.

    Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd".
    """
    if not math.isfinite(nearest) or Fraction(nearest) == exact:
        return nearest
    if struct.unpack("<Q", struct.pack("<d", nearest))[0] & 1:
        return nearest
    return math.nextafter(nearest, math.inf if exact > Fraction(nearest) else -math.inf)


def _single_round_to_odd(single: float, exact: Fraction) -> int:
    """Bits of the float next to `exact` that is odd unless exact; `single` is the float nearest to it."""
    bits = int(struct.unpack("<I", struct.pack("<f", single))[0])
    if Fraction(single) == exact or bits & 1:
        return bits
    away = abs(exact) > abs(Fraction(single))
    return bits + 1 if away else bits - 1


def _hexadecimal(bits: int, kind: str) -> str:
    """The spelling that every LLVM version reads. A float is written as the double of the same value."""
    if kind == "half":
        return f"0xH{bits:04X}"
    if kind == "bfloat":
        return f"0xR{bits:04X}"
    return f"0x{bits if kind == 'double' else _widen(bits):016X}"


def _widen(bits: int) -> int:
    """The double with the value of the float `bits`; the payload of a NaN, signalling or not, is kept."""
    sign, magnitude = (bits >> 31) << 63, bits & 0x7FFFFFFF
    if magnitude > 0x7F800000:
        return sign | (0x7FF << 52) | ((magnitude & 0x7FFFFF) << 29)
    single = struct.unpack("<f", struct.pack("<I", magnitude))[0]
    return sign | int(struct.unpack("<Q", struct.pack("<d", single))[0])


def to_llvm_ir(module: ir.Module) -> str:
    """Translate a module that holds the LLVM dialect only into LLVM IR text for llvmlite.

    Raises `CompilerError` when an op has no translation.
    """
    text = to_llvm_ir_text(module)
    if not text:
        raise CompilerError("translation to LLVM IR failed")
    return rewrite_float_literals(text)
