# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of `jax.export` that were exported for the CPU: on this platform they are what they are there."""

from __future__ import annotations

import dataclasses
from typing import Any


def install(platform: str) -> None:
    """Let `Exported.call` on the platform take what was exported for `cpu`."""
    from jax._src.export import _export
    from jax._src.interpreters import mlir

    def call(context: Any, *args: Any, exported: Any) -> Any:
        if platform not in exported.platforms:
            named = tuple(platform if name == "cpu" else name for name in exported.platforms)
            exported = dataclasses.replace(exported, platforms=named)
        return _export._call_exported_lowering(context, *args, exported=exported)

    mlir.register_lowering(_export.call_exported_p, call, platform=platform)
