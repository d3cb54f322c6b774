# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The differential fuzzer: random StableHLO programs, compiled once, against XLA and the reference interpreter.

Run it with `python -m tests.fuzz --seed N --count M --jobs J`.
"""
