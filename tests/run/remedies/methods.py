# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc.jit` of methods."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, ClassVar

import jax
import numpy as np

import shlo_disc
from shlo_disc.errors import OptionError

from .case import Case, Numbers, X, value_of


class EntriesOfMethod(Case):
    error = OptionError
    remedy = (
        r"has 1 entry, and the call has 2 positional arguments, the first of which is self: write dynamic="
        r"(\(None, 'n, _'\)) and (static_argnums)=(0), which compiles a program for each self \["
    )
    options: ClassVar[dict[str, Any]] = {"dynamic": ("n, _",)}

    def provoke(self) -> Any:
        return self.program(**self.options)(X)

    def follow(self, found: re.Match[str]) -> Numbers:
        more = {found[2]: value_of(found[3])} if found.re.groups > 1 else {}
        followed = self.program(**{**self.options, "dynamic": value_of(found[1]), **more})
        followed(X)
        assert followed.compile_count == 1
        return np.concatenate([followed(X[:1]), followed(X)]), 2 * X[[0, 0, 1]]

    @staticmethod
    def program(**options: Any) -> Any:
        class Model:
            factor = 2

            @shlo_disc.jit(**options)
            def scaled(self, x: Any) -> Any:
                return x * self.factor

        return Model().scaled


class EntriesOfClassMethod(EntriesOfMethod):
    remedy = r"first of which is cls: write dynamic=(\(None, 'n, _'\)) and (static_argnums)=(0), .* for each cls \["

    @staticmethod
    def program(**options: Any) -> Any:
        class Model:
            factor = 2

            @classmethod
            @shlo_disc.jit(**options)
            def scaled(cls, x: Any) -> Any:
                return x * cls.factor

        return Model.scaled


class EntriesOfFilteredMethod(EntriesOfMethod):
    remedy = r"the first of which is self: write dynamic=(\(None, 'n, _'\)) \["
    options: ClassVar[dict[str, Any]] = {"dynamic": ("n, _",), "filter": True}


class EntriesOfUnhashableMethod(EntriesOfMethod):
    remedy = (
        r"write dynamic=(\(None, 'n, _'\)) and (filter)=(True), and register the class Model .*"
        r"@jax\.tree_util\.register_dataclass"
    )

    def follow(self, found: re.Match[str]) -> Numbers:
        options = {"dynamic": value_of(found[1]), found[2]: value_of(found[3])}
        followed = self.program(jax.tree_util.register_dataclass, **options)
        return np.concatenate([followed(X[:1]), followed(X)]), 2 * X[[0, 0, 1]]

    @staticmethod
    def program(register: Any = lambda kind: kind, **options: Any) -> Any:
        @register
        @dataclasses.dataclass
        class Model:
            factor: int

            @shlo_disc.jit(**options)
            def scaled(self, x: Any) -> Any:
                return x * self.factor

        return Model(2).scaled
