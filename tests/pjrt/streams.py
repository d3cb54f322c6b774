# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of one JAX function at several shapes, as a table of programs serves them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.mlir import serialize_portable_artifact

from shlo_disc.pjrt.generalize import NotGeneralError, SymbolicProgram, generalize
from shlo_disc.runtime.native_module import ProgramTable
from shlo_disc.shape_dialect.dtypes import BY_NAME, numpy_dtype

VERSION = "1.17.0"  # of StableHLO


def artifact(function: Callable[..., Any], args: Sequence[Any]) -> bytes:
    """The program that JAX hands to a plugin for these arguments (arrays, or anything with a shape and a dtype)."""
    specs = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), tuple(args))
    module = jax.jit(function, keep_unused=True).lower(*specs).compiler_ir("stablehlo")
    return bytes(serialize_portable_artifact(module, VERSION))


def with_hidden(leaves: Sequence[np.ndarray], executable: Any, hidden: Sequence[tuple[bytes, list[int]]]) -> list[Any]:
    """The arguments of a symbolic program: those of its instance, and the constants that the table hands out."""
    specs = executable.signature.arguments[len(leaves) :]
    arrays = [
        np.frombuffer(data, numpy_dtype(BY_NAME[spec.dtype])).reshape(sizes)
        for (data, sizes), spec in zip(hidden, specs, strict=True)
    ]
    return [*leaves, *arrays]


class Stream:
    """A function under a table of its own. `how` lists how each call was served.

    XLA stands for the programs that are compiled as they are: what is looked at are the symbolic ones.
    """

    def __init__(self, function: Callable[..., Any], limit: int = 1 << 30):
        self.function = function
        self.table = ProgramTable(limit)
        self.how: list[str] = []
        self.reasons: list[str] = []
        self.symbolic: list[SymbolicProgram] = []

    def __call__(self, *args: Any) -> list[np.ndarray]:
        """The flat results."""
        program = artifact(self.function, args)
        compile_as_it_is = lambda program, options: jax.jit(self.function)  # noqa: E731
        executable, hidden, how = self.table.compile(program, b"", compile_as_it_is, self._generalize)
        self.how.append(how)
        if how in ("compiled", "known"):
            return [np.asarray(leaf) for leaf in jax.tree.leaves(executable(*args))]
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(args)]
        results = executable(*with_hidden(leaves, executable, hidden))
        return list(results) if isinstance(results, tuple | list) else [results]

    def check(self, *args: Any, tolerance: float = 1e-4) -> str:
        """Compare a call with XLA, and tell how it was served."""
        want = jax.tree.leaves(jax.jit(self.function)(*args))
        got = self(*args)
        assert [g.shape for g in got] == [w.shape for w in want]
        for g, w in zip(got, want, strict=True):
            assert g.dtype == w.dtype
            wide = np.complex128 if np.iscomplexobj(g) else np.float64
            expected = np.asarray(w).astype(wide)
            scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
            np.testing.assert_allclose(g.astype(wide), expected, rtol=tolerance, atol=tolerance * scale)
        return self.how[-1]

    def _generalize(self, programs: list[bytes], options: bytes) -> Any:
        try:
            found = generalize(programs)
        except NotGeneralError as error:
            self.reasons.append(str(error))
            return None
        self.symbolic.append(found)
        return found.executable, *found.for_table()


__all__ = ["VERSION", "Stream", "artifact", "with_hidden"]
