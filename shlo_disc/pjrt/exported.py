# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of `jax.export`: what was exported for the CPU runs here as there, and exports for here may have our op."""

from __future__ import annotations

import dataclasses
from typing import Any

from shlo_disc.shape_dialect.custom_calls import RAGGED_DOT


def install(platform: str) -> None:
    """Let `Exported.call` on the platform take what was exported for `cpu`, and exports for it have products of groups.

    JAX exports custom calls that it knows to be stable: ours has the one form in which front ends write it.
    """
    from jax._src.export import _export
    from jax._src.interpreters import mlir

    stable = getattr(_export, "_CUSTOM_CALL_TARGETS_GUARANTEED_STABLE", None)
    if isinstance(stable, set):
        stable.add(RAGGED_DOT)

    def call(context: Any, *args: Any, exported: Any) -> Any:
        if platform not in exported.platforms:
            named = tuple(platform if name == "cpu" else name for name in exported.platforms)
            exported = dataclasses.replace(exported, platforms=named)
        return _export._call_exported_lowering(context, *args, exported=exported)

    mlir.register_lowering(_export.call_exported_p, call, platform=platform)
