# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Advice in errors about dtypes: the conversion to write, and the dtype to compile for."""

from __future__ import annotations

import re

from shlo_disc.errors import ArgumentTypeError, DiscError

_DTYPES = re.compile(r"^Dtype mismatch for (?P<path>\S+): expected (?P<expected>\w+) and called with (?P<given>.*)$")
_NUMBER = re.compile(r"(?P<kind>bool|u?int|b?float|complex)(?P<width>\d*)")
_PYTHONS = re.compile(r"a Python (bool|int|float)")


def with_conversion(error: DiscError) -> DiscError:
    """The same error; where the dtype of an argument is another one, it says how to convert the argument."""
    found = _DTYPES.match(error.message)
    advice = conversion(*found.groups()) if found else ""
    return ArgumentTypeError(f"{error.message}: {advice}") if advice else error


def conversion(path: str, expected: str, given: str) -> str:
    """Advice on an argument of another dtype, or of Python's numbers; "" where no conversion is likely to be meant."""
    wanted, actual = _NUMBER.match(expected), _NUMBER.match(given)
    if wanted is None:
        return ""
    kind = wanted["kind"]
    if given.startswith("the Python int") and given.endswith("it cannot hold"):
        return "pass a smaller number, or compile the program for int64 with jax_enable_x64"
    if found := _PYTHONS.fullmatch(given):
        by_python = kind.removeprefix("u").removeprefix("b") if kind != "bool" else kind
        return f"pass {by_python}({path}), or compile the program for {_DEFAULTS[found[1]]}"
    if given == "a Python complex number":
        return "pass its real part, or compile the program for complex64"
    if given == "object":
        return f"if it is an array of numbers, convert it by {path}.astype({expected!r})"
    if actual is None:
        return ""
    if actual["kind"] == "complex" and kind != "complex":
        return f"pass its real part, {path}.real.astype({expected!r}), or compile the program for {given}"
    converted = f"convert it by {path}.astype({expected!r})"
    if actual["kind"] == kind and actual["width"] != wanted["width"]:
        return converted if actual["width"] == "64" else f"{converted}, or compile the program for {given}"
    drops = ", which drops fractions" if actual["kind"].endswith("float") and kind in ("int", "uint") else ""
    return f"{converted}{drops}, or compile the program for {given}"


_DEFAULTS = {"bool": "bool", "int": "int32", "float": "float32"}
"""The dtypes to compile for where calls have Python's numbers."""

__all__ = ["conversion", "with_conversion"]
