# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The PJRT plugin as JAX finds it: the module that the entry point of group `jax_plugins` names."""

from __future__ import annotations

from .register import PLATFORM, initialize

__all__ = ["PLATFORM", "initialize"]
