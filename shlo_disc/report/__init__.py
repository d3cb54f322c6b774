# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a compiled program does at given sizes, kernel by kernel."""

from shlo_disc.report.explanation import Explanation, KernelReport, explain

__all__ = ["Explanation", "KernelReport", "explain"]
