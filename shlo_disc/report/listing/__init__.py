# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code of a program, kernel by kernel: IR, machine code and the user's lines. Of an artifact it needs no MLIR."""

from shlo_disc.report.listing.listing import HOST, Kernel, Listing, Source, artifact_listing

__all__ = ["HOST", "Kernel", "Listing", "Source", "artifact_listing"]
