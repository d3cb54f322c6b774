# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One program from source to artifact: stages, passes, caching, recovery."""
