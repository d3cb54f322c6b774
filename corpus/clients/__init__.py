# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entries by client of JAX, a file each; `_` ends the names so that they are not those of the clients."""
