# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that are written as they shall be: LLVM selects their instructions and optimises nothing else of them.

Such are the micro-kernels of matrix products. Optimising them takes LLVM as long as all other kernels of a model and
changes nothing. A function says so by the attribute "disc-finished".
"""

from __future__ import annotations

import re
from collections.abc import Collection

import llvmlite.binding as llvm

_GROUP = re.compile(r'^attributes (#\d+) = \{ "disc-finished" \}$', re.MULTILINE)
_NAME = re.compile(r"^define [^\n]*?@\"?([\w.$-]+)", re.MULTILINE)
_CONTEXT = re.compile(r"^(?:declare|attributes) .*$", re.MULTILINE)


def split_finished(ir_text: str) -> tuple[str, str]:
    """The module's text with declarations for its finished functions, and that of a module of these; "" for none."""
    group = _GROUP.search(ir_text)
    if group is None:
        return ir_text, ""
    definition = re.compile(rf"^define ([^\n]*) {group[1]} \{{$.*?^\}}$", re.MULTILINE | re.DOTALL)
    finished = [found[0] for found in definition.finditer(ir_text)]
    return definition.sub(r"declare \1", ir_text), "\n".join([*_CONTEXT.findall(ir_text), *finished])


def names_of(finished: str) -> list[str]:
    """The finished functions."""
    return _NAME.findall(finished)


def link_finished(
    module: llvm.ModuleRef, finished: str, context: llvm.ContextRef, exported: Collection[str] | None
) -> None:
    """Add the finished functions to a module of `context`. Those that are not `exported` become internal."""
    if not finished:
        return
    added = llvm.parse_assembly(finished, context)
    added.triple, added.data_layout = module.triple, module.data_layout
    module.link_in(added)
    module.verify()
    for name in names_of(finished):
        if exported is not None and name not in exported:
            module.get_function(name).linkage = "internal"


__all__ = ["link_finished", "names_of", "split_finished"]
