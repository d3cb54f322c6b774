# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc bisect`: which decision, and which stage, makes a program's results wrong; see `search`."""
