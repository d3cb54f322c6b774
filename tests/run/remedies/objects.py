# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects that `shlo_disc.compile` and `shlo_disc.jit` do not take as programs."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ProgramError

from .case import LAYER_ARGS, Case, Numbers, W, X, compiled_layer, layer


class CompiledAlready(Case):
    error = ProgramError
    remedy = r"compiled already, <Executable layer.*: call it, or (compile) the function itself"

    def provoke(self) -> Any:
        return shlo_disc.jit(compiled_layer(), dynamic=("b, _", None))

    def follow(self, found: re.Match[str]) -> Numbers:
        for again in (shlo_disc.jit(layer), shlo_disc.jit(layer, filter=True)):
            with pytest.raises(ProgramError, match="is compiled already, <shlo_disc.jit of layer"):
                shlo_disc.compile(again, args=LAYER_ARGS)
        assert np.array_equal(compiled_layer()(X, W), X @ W)
        return getattr(shlo_disc, found[1])(layer, args=LAYER_ARGS)(X, W), X @ W


class CompiledByJax(Case):
    error = ProgramError
    remedy = r"jax\.jit has compiled already: call it, or (compile) the function itself"

    def provoke(self) -> Any:
        return shlo_disc.compile(self.lowered().compile())

    def follow(self, found: re.Match[str]) -> Numbers:
        for refused in (shlo_disc.jit, lambda program: shlo_disc.compile(program, args=LAYER_ARGS)):
            with pytest.raises(ProgramError, match=self.remedy):
                refused(self.lowered().compile())
        return getattr(shlo_disc, found[1])(layer, args=LAYER_ARGS)(X, W), X @ W

    @staticmethod
    def lowered() -> Any:
        return jax.jit(layer).lower(X, W)


class LoweredByJax(CompiledByJax):
    remedy = r"type Lowered: compile the function itself, or .* by shlo_disc\.(compile)\(lowered\.(as_text)\(\)\)"

    def provoke(self) -> Any:
        return shlo_disc.compile(self.lowered())

    def follow(self, found: re.Match[str]) -> Numbers:
        with pytest.raises(ProgramError, match="type Traced: .*by shlo_disc.compile.traced.lower...as_text.."):
            shlo_disc.compile(jax.jit(layer).trace(X, W))
        return getattr(shlo_disc, found[1])(getattr(self.lowered(), found[2])())(X, W), X @ W


class LoweredHere(Case):
    error = ProgramError
    remedy = r"type Lowered: write lowered\.(compile)\(\) in place of shlo_disc\.compile\(lowered\)"

    def provoke(self) -> Any:
        return shlo_disc.compile(self.traced().lower())

    def follow(self, found: re.Match[str]) -> Numbers:
        with pytest.raises(ProgramError, match=r"type Traced: write traced\.lower\(\)\.compile\(\) in place"):
            shlo_disc.compile(self.traced())
        return getattr(self.traced().lower(), found[1])()(X, W), X @ W

    @staticmethod
    def traced() -> Any:
        return shlo_disc.jit(layer).trace(X, W)


class NoFunction(Case):
    error = ProgramError
    remedy = r"of type Exported by shlo_disc\.jit, which takes a function: shlo_disc\.(compile) takes StableHLO"

    def provoke(self) -> Any:
        return shlo_disc.jit(jax.export.export(jax.jit(layer))(X, W))

    def follow(self, found: re.Match[str]) -> Numbers:
        for other in (3, [layer], "model.mlir"):
            for is_filtered in (False, True):
                with pytest.raises(ProgramError, match=f"of type {type(other).__name__} by shlo_disc.jit"):
                    shlo_disc.jit(other, filter=is_filtered)  # type: ignore[call-overload]
        return getattr(shlo_disc, found[1])(jax.export.export(jax.jit(layer))(X, W))(X, W), X @ W


class DecoratedClassMethod(Case):
    error = ProgramError
    remedy = r"write @classmethod above @shlo_disc\.(jit), and not below it"

    def provoke(self) -> Any:
        return shlo_disc.jit(classmethod(lambda cls, x: x * cls.factor))  # type: ignore[call-overload]

    def follow(self, found: re.Match[str]) -> Numbers:
        jit = getattr(shlo_disc, found[1])(static_argnums=0)

        class Model:
            factor = 2

            @classmethod
            @jit
            def scaled(cls, x: Any) -> Any:
                return x * cls.factor

        return Model.scaled(X), 2 * X
