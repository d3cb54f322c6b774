# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A worker of `shlo_disc reduce` whose compiler overwrites a column while other columns still read it."""

from __future__ import annotations

from shlo_disc.tools.reduce.worker import main
from shlo_disc.transforms import decisions

if __name__ == "__main__":
    decisions.TURNED_OFF = {"in-place.spreads-along-columns"}
    main()
