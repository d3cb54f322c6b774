# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Frozen dataclasses as dictionary attributes: how the dialect's attributes are written, read and checked.

A field becomes an entry of its name, which is left out where it has its default. What a field may hold is its type:

| field | entry |
|--|--|
| `bool` | a unit attribute, left out for False |
| `int`, `float`, `str` | `i64`, `f64`, a string |
| `Expr` | a size: `768 : i64`, or a symbol or expression of symbols such as `@"2*b"` |
| `FunctionName` | `@name` of a function of the module |
| `Relation` | a string such as `"s <= 512"` |
| `ir.Attribute`, `ir.Type` | any attribute, any type |
| a dataclass | a dictionary |
| `tuple[T, ...]` | an array; of integers `array<i64: ...>` |
| `dict[str, T]` | a dictionary |
| `T | None` | left out for None |
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, NewType, TypeVar, get_args, get_origin, get_type_hints

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.dialect.types import dim_attr, dim_of_attr
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts_relation import Relation

Record = TypeVar("Record")
Kind = TypeVar("Kind", bound=ir.Attribute)

FunctionName = NewType("FunctionName", str)
"""The name of a function of the module."""


class Malformed(ValueError):
    """An attribute, or an op, of the dialect does not say what it has to."""


@dataclass(frozen=True)
class Codec:
    """The conversion of values of a field's type to attributes, and back. `text` describes them."""

    text: str
    write: Callable[[Any], ir.Attribute]
    read: Callable[[ir.Attribute], Any]


def as_kind(kind: type[Kind], attribute: ir.Attribute, text: str) -> Kind:
    """An attribute as one of the kind that it has to be. Raises Malformed."""
    try:
        return kind(attribute)
    except ValueError:
        raise Malformed(f"expected {text}, got {attribute}") from None


def to_attribute(record: Any) -> ir.DictAttr:
    """A dataclass as a dictionary, at the insertion point's context."""
    return ir.DictAttr.get(to_entries(record))


def to_entries(record: Any) -> dict[str, ir.Attribute]:
    """The entries of the dictionary that a dataclass is."""
    entries = {}
    for name, codec, default in layout_of(type(record)):
        value = getattr(record, name)
        if value != default:
            entries[name] = codec.write(value)
    return entries


def from_attribute(cls: type[Record], attribute: ir.Attribute) -> Record:
    """The inverse of `to_attribute`. Raises Malformed on what is no such dataclass."""
    return from_entries(cls, dictionary_of(attribute))


def read_typed(cls: type[Record], attribute: ir.Attribute, kind: type[Kind], entries: str, name: str) -> Record:
    """The dataclass in an attribute of ours, of a kind whose parameter `entries` holds it. Raises Malformed."""
    if not isinstance(attribute, kind):
        raise Malformed(f"{name}: expected #{name}<...>, got {attribute}")
    try:
        return from_attribute(cls, getattr(attribute, entries))
    except Malformed as error:
        raise Malformed(f"{name}: {error}") from None


def read_variant(
    variants: Mapping[str, type[Record]],
    attribute: ir.Attribute,
    kind: type[Kind],
    parameters: tuple[str, str],
    name: str,
) -> Record:
    """One of several dataclasses: the attribute's first parameter names it, the second holds it. Raises Malformed."""
    tag, entries = parameters
    if not isinstance(attribute, kind):
        raise Malformed(f"{name}: expected #disc.{kind.__name__.removesuffix('Attr').lower()}<...>, got {attribute}")
    chosen = ir.StringAttr(getattr(attribute, tag)).value
    if chosen not in variants:
        raise Malformed(f"{name}: there is no {tag} {chosen!r}; there are {', '.join(sorted(variants))}")
    return read_typed(variants[chosen], attribute, kind, entries, f"{name} of {tag} {chosen!r}")


def dictionary_of(attribute: ir.Attribute) -> dict[str, ir.Attribute]:
    """The entries of a dictionary. Raises Malformed on any other attribute."""
    found = as_kind(ir.DictAttr, attribute, "a dictionary")
    return {found[i].name: found[i].attr for i in range(len(found))}


def from_entries(cls: type[Record], entries: Mapping[str, ir.Attribute]) -> Record:
    """The inverse of `to_entries`. Raises Malformed on what is no such dataclass."""
    values = {}
    layout = layout_of(cls)
    for name, codec, default in layout:
        if name in entries:
            values[name] = _read(codec, name, entries[name])
        elif default is MISSING:
            raise Malformed(f"{name} is missing: {codec.text}")
    unknown = [name for name in entries if name not in values]
    if unknown:
        known = ", ".join(name for name, _, _ in layout) or "nothing"
        raise Malformed(f"there is no {unknown[0]}; known are {known}")
    return cls(**values)


def entries_of(op: ir.OpView | ir.Operation, but: str) -> dict[str, ir.Attribute]:
    """The attributes of an op, but one."""
    return {name: attribute for name, attribute in op.attributes.items() if name != but}


def _read(codec: Codec, name: str, attribute: ir.Attribute) -> Any:
    try:
        return codec.read(attribute)
    except Malformed as error:
        raise Malformed(f"{name}: {error}") from None


_LAYOUTS: dict[Any, list[tuple[str, Codec, Any]]] = {}


def layout_of(cls: Any) -> list[tuple[str, Codec, Any]]:
    """The fields of a dataclass: name, codec and default (dataclasses.MISSING: there is none)."""
    if cls not in _LAYOUTS:
        _LAYOUTS[cls] = _layout(cls)
    return _LAYOUTS[cls]


def _layout(cls: Any) -> list[tuple[str, Codec, Any]]:
    hints = get_type_hints(cls)
    found = []
    for field in fields(cls):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        found.append((field.name, codec_of(hints[field.name]), default))
    return found


def codec_of(hint: Any) -> Codec:
    """The codec of a field's type."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if is_dataclass(hint) and isinstance(hint, type):
        return Codec(hint.__name__, to_attribute, remembered(lambda a: from_attribute(hint, a)))
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is types.UnionType and type(None) in arguments:
        return codec_of(next(a for a in arguments if a is not type(None)))
    if origin is tuple:
        return _INTEGERS if arguments[0] is int else _array(codec_of(arguments[0]))
    if origin is dict:
        return _dictionary(codec_of(arguments[1]))
    raise TypeError(f"no attribute holds a {hint}")


def _array(item: Codec) -> Codec:
    def read(attribute: ir.Attribute) -> tuple[Any, ...]:
        return tuple(_read(item, f"[{i}]", a) for i, a in enumerate(as_kind(ir.ArrayAttr, attribute, "an array")))

    def write(values: Iterable[Any]) -> ir.Attribute:
        return ir.ArrayAttr.get([item.write(v) for v in values])

    return Codec(f"array of {item.text}", write, remembered(read))


def _dictionary(item: Codec) -> Codec:
    def read(attribute: ir.Attribute) -> dict[str, Any]:
        return {name: _read(item, name, entry) for name, entry in dictionary_of(attribute).items()}

    return Codec(
        f"dictionary of {item.text}",
        lambda values: ir.DictAttr.get({name: item.write(v) for name, v in values.items()}),
        read,
    )


def read_integer(attribute: ir.Attribute) -> int:
    """The i64 that an attribute is. Raises Malformed."""
    number = as_kind(ir.IntegerAttr, attribute, "an i64")
    if str(number.type) != "i64":
        raise Malformed(f"expected an i64, got {attribute}")
    return number.value


def _read_flag(attribute: ir.Attribute) -> bool:
    as_kind(ir.UnitAttr, attribute, "no value")
    return True


def read_size(attribute: ir.Attribute) -> Expr:
    """The size that an attribute states. Raises Malformed."""
    try:
        return dim_of_attr(attribute)
    except (ProgramError, ValueError):
        raise Malformed(f"expected a size, got {attribute}") from None


def _read_relation(attribute: ir.Attribute) -> Relation:
    text = as_kind(ir.StringAttr, attribute, "a relation").value
    try:
        return Relation.parse(text)
    except ProgramError as error:
        raise Malformed(f"{text!r} is no relation of sizes: {error}") from None


def _read_float(attribute: ir.Attribute) -> float:
    number = as_kind(ir.FloatAttr, attribute, "an f64")
    if str(number.type) != "f64":
        raise Malformed(f"expected an f64, got {attribute}")
    return number.value


def write_integer(value: int) -> ir.Attribute:
    """An i64."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


_INTEGERS = Codec(
    "array<i64: ...>",
    lambda values: ir.DenseI64ArrayAttr.get(list(values)),
    lambda a: tuple(as_kind(ir.DenseI64ArrayAttr, a, "array<i64: ...>")),
)

_PLAIN: dict[Any, Codec] = {
    bool: Codec("present or not", lambda value: ir.UnitAttr.get(), _read_flag),
    int: Codec("i64", write_integer, read_integer),
    float: Codec("f64", lambda value: ir.FloatAttr.get_f64(value), _read_float),
    str: Codec("string", ir.StringAttr.get, lambda a: as_kind(ir.StringAttr, a, "a string").value),
    Expr: Codec("size", dim_attr, read_size),
    FunctionName: Codec(
        "@function", ir.FlatSymbolRefAttr.get, lambda a: as_kind(ir.FlatSymbolRefAttr, a, "@function").value
    ),
    Relation: Codec("relation", lambda value: ir.StringAttr.get(str(value)), _read_relation),
    ir.Type: Codec("type", ir.TypeAttr.get, lambda a: as_kind(ir.TypeAttr, a, "a type").value),
    ir.Attribute: Codec("any attribute", lambda value: value, lambda attribute: attribute),
}
