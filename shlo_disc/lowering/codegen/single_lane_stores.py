# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masked stores of one lane become scalar stores.

LLVM's x86 back end (22.1) makes a truncating masked store of `trunc` and `masked.store`, and then, for a constant mask
of one lane, a scalar store of the element *before* the truncation: it writes two, four or eight times the bytes of the
element, past the end of the buffer. Such masks are the tails of one element. The scalar store is also shorter code.
"""

from __future__ import annotations

import re

import llvmlite.binding as llvm

_NAME = r'%(?:[\w.$-]+|"[^"]+")'
_STORE = re.compile(
    r"^  (?:tail )?call void @llvm\.masked\.store\.v\d+i\d+\.p0\(<\d+ x (?P<element>i\d+)> (?P<value>" + _NAME + r"), "
    r"ptr (?:\w+\(\w+\) )*align (?P<align>\d+) (?P<pointer>" + _NAME + r"), "
    r"<(?P<lanes>\d+) x i1> <(?P<mask>[^>]*)>\).*$",
    re.MULTILINE,
)


def without_single_lane_stores(module: llvm.ModuleRef) -> str | None:
    """The module's text with such stores replaced; None when there are none."""
    if not any(f.name.startswith("llvm.masked.store.") for f in module.functions):
        return None
    text = str(module)
    replaced = replace_single_lane_stores(text)
    return None if replaced == text else replaced


def replace_single_lane_stores(text: str) -> str:
    """LLVM IR in which no masked store of integers has a constant mask of one lane."""
    return _STORE.sub(_scalar_store, text)


def _scalar_store(found: re.Match[str]) -> str:
    mask = [flag.strip() == "i1 true" for flag in found["mask"].split(",")]
    if sum(mask) != 1:
        return found[0]
    lane, element = mask.index(True), found["element"]
    name = f"%single.{found.start()}"
    return (
        f"  {name}.element = extractelement <{found['lanes']} x {element}> {found['value']}, i64 {lane}\n"
        f"  {name}.address = getelementptr {element}, ptr {found['pointer']}, i64 {lane}\n"
        f"  store {element} {name}.element, ptr {name}.address, align {found['align']}"
    )
