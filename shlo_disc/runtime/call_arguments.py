# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Methods that take the arguments of a call as a sequence and a mapping, and also as the call itself takes them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])

_OWN = ("output",)
"""Options of the methods, which are not arguments of a program."""


def takes_call(method: Method) -> Method:
    """A method of `args`, a sequence, and `kwargs`, a mapping or None, which also takes `method(x, y, mask=m)`.

    A first argument that is a tuple or a list is `args`; an array is the first argument of the program.
    """

    @functools.wraps(method)
    def call(self: Any, *values: Any, **named: Any) -> Any:
        if "args" in named or (values and isinstance(values[0], Sequence | Iterator)):
            return method(self, *values, **named)
        own = {name: named.pop(name) for name in _OWN if name in named}
        more = named.pop("kwargs", None) or {}
        return method(self, values, {**named, **more}, **own)

    return cast(Method, call)


__all__ = ["takes_call"]
