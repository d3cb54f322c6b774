# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `import` stage: any program -> one normalised `func.func @main` and its `Signature`.

The folder's name is a Python keyword: the rest of the package uses it through `shlo_disc/importing.py`. What reads a
program (`program.py`, `jax_program.py`) needs no MLIR; `import_program.py` and what it uses do.
"""
