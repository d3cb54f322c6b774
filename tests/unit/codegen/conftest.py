# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loading of compiled objects into this process, for tests only."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shlo_disc.lowering.codegen import CpuTarget, compile_to_object, lower_to_llvm, to_llvm_ir
from shlo_disc.runtime._native import ObjectCode
from shlo_disc.shape_dialect.mlir import ir


class Loaded:
    """An object placed by the runtime. Calls pass NumPy arrays as rank-1 memrefs and Python ints as i64."""

    def __init__(self, data: bytes):
        self._code = ObjectCode(data)

    def __call__(self, name: str, *args: Any) -> int:
        words: list[int] = []
        for arg in args:
            if isinstance(arg, np.ndarray):
                words += [arg.ctypes.data, arg.ctypes.data, 0, arg.size, 1]
            else:
                words.append(int(arg))
        function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(words))(self._code.function(name))
        return function(*words)


def compile_text(source: str, target: CpuTarget | None = None) -> Loaded:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(source)
        text = to_llvm_ir(lower_to_llvm(module))
    return Loaded(compile_to_object(text, target or CpuTarget.host()))


@pytest.fixture
def jit() -> Callable[..., Loaded]:
    """Compile MLIR text (functions on rank-1 memrefs and i64) and load it."""
    return compile_text
