# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules that several tests export."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class Applied(torch.nn.Module):
    """A function of `x`."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)
