# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A worker of `shlo_disc reduce` whose compiler cannot write epilogues of products."""

from __future__ import annotations

from typing import Any

from shlo_disc.lowering_cpu import kernels
from shlo_disc.tools.reduce.worker import main


def fail(frame: Any) -> None:
    """Takes the place of a kernel's writer."""
    raise KeyError("tile")


if __name__ == "__main__":
    kernels.OWN_KERNELS["epilogue"] = fail  # type: ignore[assignment]
    main()
