# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An error, what its message says to do, and the program that does it."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import jax
import numpy as np

import shlo_disc
from shlo_disc.errors import DiscError
from shlo_disc.tools.cli import main

Numbers = tuple[Any, Any]
"""The results of a program, and those that it has to return."""

X = np.arange(8, dtype=np.float32).reshape(2, 4)
W = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
LAYER_ARGS = (("b, 4", "float32"), ("4, 3", "float32"))


class Case(ABC):
    """One error. Cases run in an empty folder of their own.

    error: its class. remedy: a regular expression that its message has to match; its groups are what `follow` takes
    over literally. needs: a module without which the case is skipped.
    """

    error: ClassVar[type[BaseException]] = DiscError
    remedy: ClassVar[str]
    needs: ClassVar[str] = ""

    @abstractmethod
    def provoke(self) -> Any:
        """Raise the error."""

    @abstractmethod
    def follow(self, found: re.Match[str]) -> Numbers:
        """Do what the message says."""


class CommandFailed(Exception):
    """A command line has ended with another status than 0; the text is what it printed on standard error."""


def command(*words: str) -> str:
    """The output of a command. Raises CommandFailed."""
    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        try:
            status = main(words)
        except SystemExit as end:  # argparse's
            status = int(end.code or 0)
    if status:
        raise CommandFailed(said.getvalue())
    return printed.getvalue()


def add_one(x: Any) -> Any:
    """x + 1."""
    return x + 1


def layer(x: Any, w: Any) -> Any:
    """A matrix product."""
    return x @ w


def compiled_layer() -> Any:
    """`layer` for every first size."""
    return shlo_disc.compile(layer, args=LAYER_ARGS)


def run_layer(executable: Any) -> Numbers:
    """A call, and NumPy's product."""
    return executable(X, W), X @ W


def run_add_one(executable: Any, *shape: int) -> Numbers:
    """A call at a shape, and NumPy's sum."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return executable(x), x + 1


def value_of(text: str) -> Any:
    """The Python literal that a message shows."""
    return ast.literal_eval(text)


def exported_for(platforms: list[str] | None) -> Any:
    """`add_one`, as jax.export gives it."""
    return jax.export.export(jax.jit(add_one), platforms=platforms)(jax.ShapeDtypeStruct((3,), np.float32))
