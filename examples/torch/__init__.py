# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models in plain PyTorch whose sizes change from call to call: `python -m examples.torch`."""
