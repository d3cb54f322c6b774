# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of what the compiler has decided, which share no code with what decided it.

They read the IR that a stage leaves, as the stages after it do, and prove again that it is right. With
`Options(verify=True)` they run after the stage that they are for.
"""

from shlo_disc.verify.buffers import verify_buffers
from shlo_disc.verify.fusions import verify_fusions
from shlo_disc.verify.nested_sizes import verify_nested_sizes
from shlo_disc.verify.panels import verify_panels

__all__ = ["verify_buffers", "verify_fusions", "verify_nested_sizes", "verify_panels"]
