# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Example models in plain JAX, each exported once with symbolic sizes.

Every model module has the same face, written down in `examples.model.Model`: two configurations (`SMALL`, `BASE`),
`init`, `forward`, `make_inputs` and `export`.
"""
