# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands of `python -m shlo_disc`, a file each: what they take, and what they print.

A file has `add_NAME(commands)`, which adds the command to the parser of `tools/cli.py`, and the function that runs it.
What several commands take or print has its place in `common.py`. What a command does is done elsewhere in the package.
"""
