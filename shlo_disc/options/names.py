# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of options: what is said where a function or a class has no option of a name."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, TypeVar, cast

from shlo_disc.errors import OptionError

_OF_JIT = "; shlo_disc.jit has it"
_ELSEWHERE = {
    "shlo_disc.compile": {
        "dynamic": '; names of sizes go into args=, as in args=(("b, 768", "float32"),)',
        "dynamic_shapes": '; names of sizes go into args=, as in args=(("b, 768", "float32"),), and for a module of '
        "PyTorch into torch.export.export(module, args, dynamic_shapes=...)",
        **dict.fromkeys(("compile_once", "donate_argnums", "static_argnames", "static_argnums"), _OF_JIT),
        "filter": f"{_OF_JIT}: write shlo_disc.jit(function, filter=True, dynamic=...), and call it, or .lower(...)"
        ".compile() of it for an Executable that takes a list of the arrays",
    },
    "shlo_disc.jit": {
        **dict.fromkeys(("args", "kwargs"), "; shlo_disc.compile has it, and here names of sizes go into dynamic="),
        "target": "; shlo_disc.compile has it",
    },
    "shlo_disc.Options": {
        **dict.fromkeys(("target", "constraints"), "; shlo_disc.compile has it, beside options="),
        **dict.fromkeys(("fallback", "freezing"), '; a dict has it: torch.compile(..., options={"fallback": True})'),
    },
    "options= of torch.compile": {
        "target": "; it compiles for processors: for a GPU, give target= to shlo_disc.compile, for an exported program",
    },
    "shlo_disc.torch.export": dict.fromkeys(("options", "target"), "; shlo_disc.compile has it, for what this returns"),
    "shlo_disc.Executable.bind": {"output": "; give options=shlo_disc.Options(output=...) to shlo_disc.compile"},
}
"""Advice on options that another function has."""


def check_names(given: Iterable[str], known: Iterable[str], owner: str) -> None:
    """Raises OptionError for a name that is not known, with the nearest one that is. owner: what takes the options."""
    from shlo_disc.options import Options

    names = [name for name in known if not name.startswith("_")]
    for name in given:
        if name not in names:
            is_elsewhere = "options" in names and name in {f.name for f in fields(Options)}
            instead = _ELSEWHERE.get(owner, {}).get(name) or _instead_of(name, names)
            instead = f"; give options=shlo_disc.Options({name}=...)" if is_elsewhere else instead
            raise OptionError(f"there is no option {name!r} of {owner}{instead}")


def _instead_of(name: str, known: Sequence[str]) -> str:
    """The end of a message: `; did you mean 'threads'?`, or all names where none is near."""
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"


def check_flag(name: str, value: Any) -> None:
    """Raises OptionError for a value that is neither True nor False."""
    if value not in (True, False):
        raise OptionError(f"{name} must be True or False, not {value!r}")


def owner_of(function: Callable[..., Any]) -> str:
    """The name of a function of the package that takes options, as `check_names` has it."""
    return "shlo_disc." + function.__qualname__.removesuffix(".__init__")


_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)


def takes_options(function: _Function) -> _Function:
    """Makes a function of the package raise OptionError for keywords that it does not have."""
    parameters = inspect.signature(function).parameters
    known = [name for name in parameters if name != "self"]
    owner = owner_of(function)
    by_name = [name for name, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs.keys() <= set(known):
            check_names(kwargs, known, owner)
        if by_name and len(args) > len(parameters) - len(by_name):
            names = ", ".join(f"{name}=" for name in by_name)
            raise OptionError(f"{owner} takes {known[0]} by position, and all else by name: {names}")
        return function(*args, **kwargs)

    return cast(_Function, call)


def takes_named(kind: _Class) -> _Class:
    """Makes a class raise OptionError for keywords that it does not have."""
    initialize: Any = kind.__init__  # type: ignore[misc]
    initialize.__qualname__ = f"{kind.__name__}.__init__"
    kind.__init__ = takes_options(initialize)  # type: ignore[misc]
    return kind
