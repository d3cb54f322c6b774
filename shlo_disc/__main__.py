# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc`: the command line, see `shlo_disc.tools.cli`."""

from __future__ import annotations

import sys

from shlo_disc.tools.cli import main

sys.exit(main())
