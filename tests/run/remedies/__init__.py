# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors whose messages say what to do, and programs that do it; `test_remedies.py` runs them."""
