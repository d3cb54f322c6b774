# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Methods of the arguments of a call: of all of them in the forms that calls have, and of those that `bind` fixes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

from shlo_disc.errors import OptionError
from shlo_disc.options import check_names, owner_of

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


def takes_weights(method: Method) -> Method:
    """Makes `bind` raise OptionError for keywords that it does not have, and say how an argument is bound by name."""
    parameters = inspect.signature(method).parameters.values()
    known = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    owner = owner_of(method)

    @functools.wraps(method)
    def bind(self: Any, *args: Any, **named: Any) -> Any:
        for name in named.keys() - known:
            if name in getattr(self, "loaded", self).parameter_names.names:
                raise OptionError(
                    f"there is no option {name!r} of {owner}: it is an argument of the program, which bind takes by "
                    f"position, or by name as in weights={{{name!r}: ...}}"
                )
        check_names(named, known, owner)
        return method(self, *args, **named)

    return cast(Method, bind)


__all__ = ["takes_call", "takes_weights"]
