# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `import` stage: any program -> one normalised `func.func @main` and its `Signature`.

What reads a program (`program.py`, `jax_program.py`) needs no MLIR; `import_program.py` and what it uses do.
"""
