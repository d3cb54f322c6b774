# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two references: XLA, and the StableHLO reference interpreter in a process of its own, for it may abort."""

from __future__ import annotations

import functools
import multiprocessing
import multiprocessing.connection
from collections.abc import Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np


@functools.cache
def _backend(platform: str) -> tuple[Any, Any]:
    from jax._src import compiler, xla_bridge

    options = compiler.get_compile_options(1, 1)
    debug = options.executable_build_options.debug_options
    debug.xla_backend_optimization_level = 0
    debug.xla_llvm_disable_expensive_passes = True
    return xla_bridge.get_backend(platform), options


def run_platform(platform: str, text: str, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a static StableHLO program on a platform of JAX. Raises what that raises."""
    backend, options = _backend(platform)
    device = backend.local_devices()[0]
    with jax.enable_x64(True):
        loaded = backend.compile_and_load(text, [device], options)
        return [np.asarray(r) for r in loaded.execute([jax.device_put(a, device) for a in arrays])]


def run_xla(text: str, arrays: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """XLA's results of a static StableHLO program; None when it does not compile it.

    LLVM optimises little: the answers are XLA's, the time is ours.
    """
    try:
        return run_platform("cpu", text, arrays)
    except jax.errors.JaxRuntimeError:
        return None


class Interpreter:
    """The reference interpreter. It is started again after it has aborted."""

    def __init__(self) -> None:
        self._process: Any = None
        self._connection: Any = None
        self.aborts = 0

    def run(self, text: str, arrays: Sequence[np.ndarray], like: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """The results, of the dtypes of `like`; None when it does not run this program."""
        if not text:
            return None
        if self._process is None:
            self._start()
        passed = [a.view(f"u{a.dtype.itemsize}") if _is_carried(a.dtype) else a for a in map(np.asarray, arrays)]
        try:
            self._connection.send((text, passed))
            results = self._connection.recv()
        except (EOFError, ConnectionError):
            self.aborts += 1
            self.close()
            return None
        if results is None:
            return None
        return [r.astype(bool) if k.dtype == np.bool_ else r.view(k.dtype) for r, k in zip(results, like, strict=True)]

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._connection.close()
            self._process.join(5)
            if self._process.is_alive():
                self._process.kill()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("forkserver")  # which has imported all this already
        context.set_forkserver_preload(
            ["__main__", __name__, "shlo_disc.shape_dialect.mlir", "shlo_disc.shape_dialect.dialect.ops"]
        )
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_interpret_all, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()


def _is_carried(dtype: np.dtype) -> bool:
    return dtype in (np.dtype(bool), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


def _interpret_all(connection: multiprocessing.connection.Connection) -> None:
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what LLVM prints when it aborts
    while True:
        try:
            text, arrays = connection.recv()
        except EOFError:
            return
        connection.send(_interpret(text, arrays))


def _interpret(text: str, arrays: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    from shlo_disc.shape_dialect.dialect.context import make_context
    from shlo_disc.shape_dialect.mlir import ir, stablehlo

    with make_context(), ir.Location.unknown():
        try:
            module = ir.Module.parse(text)
            block = module.body.operations[0].regions[0].blocks[0]
            attributes = [
                ir.DenseElementsAttr.get(memoryview(np.ascontiguousarray(a)), type=v.type)
                for a, v in zip(arrays, block.arguments, strict=True)
            ]
            return [np.array(r) for r in stablehlo.eval_module(module, attributes)]
        except (ir.MLIRError, ValueError, TypeError):
            return None
