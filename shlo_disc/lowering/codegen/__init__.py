# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM dialect -> LLVM IR -> object code or PTX."""

from .cpu_target import CpuTarget
from .llvm_text import to_llvm_ir
from .masked_loads import split_masked_loads
from .narrow_floats import legalize_small_floats
from .native import code_text, compile_to_object
from .object_store import ObjectStore
from .pipelines import CPU_PIPELINE, lower_to_llvm
from .ptx import assemble, compile_to_ptx, data_layout
from .routines import Routines, compile_with_routines, names_of, view_routines

__all__ = [
    "CPU_PIPELINE", "CpuTarget", "ObjectStore", "Routines", "assemble", "code_text", "compile_to_object",
    "compile_to_ptx", "compile_with_routines", "data_layout", "legalize_small_floats", "lower_to_llvm", "names_of",
    "split_masked_loads", "to_llvm_ir", "view_routines",
]  # fmt: skip
