# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Settings of functions, such as axis=, in calls of `jit`, and one string of sizes for all arguments."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import jax
import numpy as np

import shlo_disc
from shlo_disc.errors import OptionError, RecompileError

from .case import Case, Numbers, W, X, layer, value_of


class SettingOfJax(Case):
    """An argument that a function of JAX takes as a number, and no array."""

    error: ClassVar[Any] = Exception
    remedy = (
        r"static by static_argnames='(axis)' of shlo_disc\.jit, or fix it, as in (jit\(lambda x: .*axis=\.\.\.\)\))"
    )
    settings: ClassVar[dict[str, Any]] = {"axis": 0}

    def provoke(self) -> Any:
        return shlo_disc.jit(self.function)(X, **self.settings)

    def follow(self, found: re.Match[str]) -> Numbers:
        name, value = next(iter(self.settings.items()))
        static = shlo_disc.jit(self.function, static_argnames=found[1])(X, **self.settings)
        written = re.sub(rf"{name}=[^)]*", f"{name}={value!r}", found[2])
        fixed = eval(written, {"jit": shlo_disc.jit, "function": self.function})(X)  # noqa: S307
        np.testing.assert_array_equal(static, fixed)
        return fixed, self.function(X, **self.settings)

    function = staticmethod(jax.numpy.std)


class SettingsOfJax(SettingOfJax):
    settings: ClassVar[dict[str, Any]] = {"axis": (0, 1)}


class FlagOfJax(SettingOfJax):
    remedy = r"static by static_argnames='(keepdims)' of shlo_disc\.jit, or fix it, as in (jit\(.*keepdims=True\)\))"
    settings: ClassVar[dict[str, Any]] = {"keepdims": True}


class FlagOfUser(SettingOfJax):
    remedy = r"where flip is a setting, .* static_argnames='(flip)' .* in (jit\(lambda x: .*=\.\.\.\)\)); otherwise"
    settings: ClassVar[dict[str, Any]] = {"flip": True}

    @staticmethod
    def function(x: Any, flip: bool = False) -> Any:
        return -x if flip else x


class SettingWithSizes(SettingOfJax):
    error = OptionError
    remedy = (
        r"write entries by name, .* dynamic=\{'name': ('b, _')\}, or make a setting static by static_argnames='(axis)'"
    )

    def provoke(self) -> Any:
        return shlo_disc.jit(jax.numpy.std, dynamic="b, _")(X, axis=0)

    def follow(self, found: re.Match[str]) -> Numbers:
        static = shlo_disc.jit(jax.numpy.std, dynamic=value_of(found[1]), static_argnames=found[2])
        return static(X, axis=0), np.std(X, axis=0)


class OneStringForTwoArguments(Case):
    error: ClassVar[Any] = TypeError
    remedy = (
        r"dynamic='b, _' names the sizes of every array: for those of the first alone write dynamic=(\('b, _', None\))"
    )

    def provoke(self) -> Any:
        return shlo_disc.jit(layer, dynamic="b, _")(X, W)

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.jit(layer, dynamic=value_of(found[1]))(X, W), X @ W


class OneStringForOtherSize(OneStringForTwoArguments):
    error = OptionError

    def provoke(self) -> Any:
        return shlo_disc.jit(lambda x, w: x + w, dynamic="b, _")(X, W[0])


class OneStringForOneAndMany(OneStringForTwoArguments):
    error = RecompileError

    def provoke(self) -> Any:
        return shlo_disc.jit(lambda x, w: x + w, dynamic="b, _")(X, X[:1])


class OneStringByName(Case):
    error = TypeError
    remedy = r"for those of one argument write dynamic=\{'name': ('b, _')\} with its name"

    def provoke(self) -> Any:
        return shlo_disc.jit(layer, dynamic="b, _")(X, w=W)

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.jit(layer, dynamic={"x": value_of(found[1])})(X, w=W), X @ W


class OneStringForTree(Case):
    error = TypeError
    remedy = r"write an entry with the structure of the argument, (None) where sizes stay fixed"

    def provoke(self) -> Any:
        return shlo_disc.jit(self.function, dynamic="b, _")({"x": X, "w": W})

    def follow(self, found: re.Match[str]) -> Numbers:
        jitted = shlo_disc.jit(self.function, dynamic=({"x": "b, _", "w": value_of(found[1])},))
        return jitted({"x": X, "w": W}), X @ W

    @staticmethod
    def function(both: Any) -> Any:
        return both["x"] @ both["w"]
