# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `import` stage: any program -> one normalised `func.func @main` and its `Signature`.

The folder's name is a Python keyword: its modules are reached with `importlib`, e.g.
`importlib.import_module("shlo_disc.import.program")`. What reads a program and tells whether it was compiled before
(`program.py`, `jax_program.py`, `fingerprint.py`) needs no MLIR; `import_program.py` and what it uses do.
"""
