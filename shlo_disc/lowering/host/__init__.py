# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stage `host`, the same for every target: calls of kernels and of the runtime become a program of `disc_host`."""

from __future__ import annotations

from shlo_disc.lowering.host.build import build_host

__all__ = ["build_host"]
