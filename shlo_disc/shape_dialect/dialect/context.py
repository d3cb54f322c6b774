# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MLIR contexts with StableHLO and our dialects."""

from __future__ import annotations

import threading

from shlo_disc.shape_dialect.dialect.host_ops import DiscHost
from shlo_disc.shape_dialect.dialect.ops import Disc
from shlo_disc.shape_dialect.mlir import BUILT, ir, stablehlo

_loading = threading.Lock()


def make_context() -> ir.Context:
    """A fresh context. Thread-safe, which the loading of our dialects is not by itself."""
    with _loading:
        context = ir.Context(load_on_create_dialects=BUILT)
        stablehlo.register_dialect(context)
        with context, ir.Location.unknown():
            Disc.load()
            DiscHost.load()
    return context
