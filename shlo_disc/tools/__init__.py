# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs about programs: the command line and what it runs."""
