# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of the `check` dialect, which the bindings lack, as custom calls: a rewriting of text, before it is parsed."""

from __future__ import annotations

import re

from shlo_disc.errors import ProgramError

_OPERAND = r"(%[\w$.-]+(?:#\d+)?)"
_OPTIONS = r"((?:\s*,\s*\w+\s*=\s*[\w.+-]+(?:\s*:\s*\w+(?=\s*[:,]))?)*)"
_BINARY = re.compile(rf"\bcheck\.(expect_(?:eq|almost_eq|close))\s+{_OPERAND}\s*,\s*{_OPERAND}{_OPTIONS}\s*:\s*")
_CONSTANT = re.compile(rf"\bcheck\.(expect_(?:eq|almost_eq))_const\s+{_OPERAND}\s*,\s*(?=dense<)")
_GENERIC = re.compile(
    r'"check\.(expect_\w+)"\(([^)]*)\)\s*(?:<\{(.*?)\}>)?\s*:\s*\((tensor<(?:[^<>]|<[^<>]*>)*>)[^\n]*?\)\s*->\s*\(\)',
    re.DOTALL,
)
_TAIL = re.compile(r"(?:\s*,\s*tolerance\s*=\s*([\w.+-]+)|\s*\{\s*tolerance\s*=\s*([\w.+-]+)[^}]*\})?")
_OPTION = re.compile(r"(\w+)\s*=\s*([\w.+-]+)")
_ATTRIBUTES = {"tolerance": "f64", "max_ulp_difference": "i64", "min_ulp_difference": "i64"}


def as_custom_calls(text: str) -> str:
    """The text with its ops of the `check` dialect, which the bindings lack, as custom calls with `check.op` set."""
    return _replace_constants(_replace_binaries(_replace_generic(text)))


def _replace_generic(text: str) -> str:
    """Ops in MLIR's generic form, `"check.expect_eq"(%a, %b) <{...}> : (type, type) -> ()`."""

    def call(match: re.Match[str]) -> str:
        name, operands, properties, kind = match[1], match[2], match[3] or "", match[4]
        values = [operand.strip() for operand in operands.split(",")]
        options = {key: value for key, value in _OPTION.findall(properties) if key in _ATTRIBUTES}
        if not name.endswith("_const"):
            return _call(name, values[0], values[1], kind, options)
        start = properties.index("dense<")
        expected = f"%check_at_{match.start()}"
        constant = properties[start : _balanced(properties, start + len("dense"))]
        check = _call(name.removesuffix("_const"), values[0], expected, kind, options)
        return f"{expected} = stablehlo.constant {constant} : {kind}\n  {check}"

    return _GENERIC.sub(call, text)


def _replace_binaries(text: str) -> str:
    parts, end = [], 0
    for match in _BINARY.finditer(text):
        type_end = _balanced(text, text.index("<", match.end()))
        kind = text[match.end() : type_end]
        name, actual, expected, options = match.groups()
        parts += [text[end : match.start()], _call(name, actual, expected, kind, dict(_OPTION.findall(options)))]
        end = type_end
        if name == "expect_close":  # its second type
            end = _balanced(text, text.index("<", text.index(",", end)))
    return "".join([*parts, text[end:]])


def _replace_constants(text: str) -> str:
    parts, end = [], 0
    for number, match in enumerate(_CONSTANT.finditer(text)):
        value_end = _balanced(text, text.index("<", match.end()))
        type_end = _balanced(text, text.index("<", value_end))
        value, kind = text[match.end() : type_end], text[text.index(":", value_end) + 1 : type_end].strip()
        tail = _TAIL.match(text, type_end)
        tolerance = (tail[1] or tail[2]) if tail else None
        expected = f"%check_{number}"
        call = _call(match[1], match[2], expected, kind, {"tolerance": tolerance} if tolerance else {})
        parts += [text[end : match.start()], f"{expected} = stablehlo.constant {value}\n  {call}"]
        end = tail.end() if tail else type_end
    return "".join([*parts, text[end:]])


def _balanced(text: str, start: int) -> int:
    """Just after the `>` that closes the `<` at `start`; a string may stand between."""
    depth = 0
    for token in re.compile(r'"[^"]*"|->|[<>]').finditer(text, start):
        depth += {"<": 1, ">": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    raise ProgramError(f"a check's bracket is never closed: {text[start : start + 40]!r}")


def _call(name: str, actual: str, expected: str, kind: str, options: dict[str, str]) -> str:
    attributes = "".join(f", {key} = {value} : {_ATTRIBUTES[key]}" for key, value in options.items())
    return (
        f"stablehlo.custom_call @check.{name}({actual}, {expected}) "
        f"{{has_side_effect = true, check.op{attributes}}} : ({kind}, {kind}) -> ()"
    )


__all__ = ["as_custom_calls"]
