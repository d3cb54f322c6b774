# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contents of types and attributes, read once in a compile."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from shlo_disc.shape_dialect.compile_state import compiling_with, current_compile

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


class _Read(dict[Any, Any]):
    """The results that one function has read, by what it read them from."""

    def __init__(self, read: Callable[[Any], Any]):
        super().__init__()
        self.read = read

    def __missing__(self, key: Any) -> Any:
        result = self[key] = self.read(key)
        return result


class _Known(dict[Callable[[Any], Any], _Read]):
    """The results that each function has read."""

    def __missing__(self, read: Callable[[Any], Any]) -> _Read:
        result = self[read] = _Read(read)
        return result


@contextmanager
def remembering() -> Iterator[None]:
    """Inside, what `remembered` functions have read is kept. Types keep their MLIR context alive: it ends with this."""
    with compiling_with(replace(current_compile(), results=_Known())):
        yield


def remembered(read: Callable[[Key], Result]) -> Callable[[Key], Result]:
    """Makes a function of a type or an attribute read each one once, inside of `remembering`."""

    def reader(key: Key) -> Result:
        known = current_compile().results
        result: Result = read(key) if known is None else known[read][key]
        return result

    return reader
