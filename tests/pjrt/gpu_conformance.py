# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`jax_programs` on the platform of GPUs, over the mock driver.

`JAX_PLATFORMS=shlo_disc_cuda,cpu python -m tests.pjrt.gpu_conformance` prints what `jax_programs` prints.
"""

from __future__ import annotations

from tests.pjrt import program_table

REFUSED = {
    "functions_of_the_user": "own_potrf",
    "programs_that_are_called_by_jax": "shlo_disc_call",
}
"""Functions that GPUs lack, as the refusal names them, for each program that needs one."""

OF_PROCESSORS = frozenset(
    {"arrays_and_caches", "memory_statistics", "programs_for_a_topology", "weights_that_others_write"}
)
"""Programs about topologies, about memory that the platform shares with XLA's CPU, or about memory that is released at
once, and not when the work that was given is done."""


if __name__ == "__main__":
    program_table.PLATFORM = "shlo_disc_cuda"
    from tests.pjrt.gpu_programs import over_mock_driver

    over_mock_driver()
    from tests.pjrt import jax_programs

    jax_programs.print_outcomes()
