# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `disc` dialect: its ops, attributes and type encodings."""
