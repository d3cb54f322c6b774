# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Marks of tests for GPUs: their requirements on a machine that has none."""

from __future__ import annotations

import pytest

from tests.gpu.no_driver import has_driver, has_libdevice

needs_libdevice = pytest.mark.skipif(not has_libdevice(), reason="libdevice is absent: pip install '.[cuda]'")
"""For programs that are compiled to PTX."""

needs_no_driver = pytest.mark.skipif(has_driver(), reason="NVIDIA's own driver is here; a process has one")
"""For what goes over the mock driver."""

needs_mock_driver = [needs_no_driver, needs_libdevice]
"""For programs that are called."""
