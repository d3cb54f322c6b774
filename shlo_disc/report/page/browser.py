# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pages as files that a browser shows."""

from __future__ import annotations

import os
import tempfile
import webbrowser
from pathlib import Path

BROWSERS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
"""Variables of which one is set where a page can be shown. Without them, Python would find browsers of terminals."""


def temporary_page() -> Path:
    """A new empty file for a page. Who asks for it, or the system, removes it."""
    descriptor, name = tempfile.mkstemp(prefix="shlo_disc-", suffix=".html")
    os.close(descriptor)
    return Path(name)


def show_page(page: Path) -> bool:
    """Open a page in the user's browser; False where there is no display, or no browser."""
    if not any(os.environ.get(name) for name in BROWSERS):
        return False
    return webbrowser.open(page.resolve().as_uri())


__all__ = ["show_page", "temporary_page"]
