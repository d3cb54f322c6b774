# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The inputs that a kernel may overwrite with its results.

A kernel may write a result where an argument is if it reads of the argument, for each element or row, nothing but what
it then overwrites (`fusion/in_place.py`), or if it only changes some elements of what is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.fusion import Gemm, Scatter, Update, accumulators_of, updates_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.views import readers_of
from shlo_disc.shape_dialect.utils.regions import callee_of
from shlo_disc.transforms.decisions import Pattern
from shlo_disc.transforms.fusion.in_place import Overwrite, may_write_where

Functions = Mapping[str, func.FuncOp]


def may_overwrite(fusion: func.FuncOp, argument: int, result: int, functions: Functions) -> bool:
    """Tells whether the kernel of `fusion` may write a result where an argument of the same type is."""
    found = Overwrite(fusion, argument, result)
    if isinstance(found.what, Gemm):
        return EPILOGUE_IN_PLACE.match(lambda f: _followed(f, functions), found) is not None
    if isinstance(found.what, Scatter | Update):
        return UPDATE_IN_PLACE.match(lambda f: f, found) is not None
    return may_write_where(fusion, argument, result)


# ---- kernels that change some elements ------------------------------------------------------------------------------

UPDATE_IN_PLACE = Pattern[Overwrite]("update-in-place", "a scatter or update changes some elements of an argument")


@UPDATE_IN_PLACE.requires("the result starts from this argument")
def _starts_from_it(found: Overwrite) -> bool:
    return updates_of(found.fusion)[found.result] == found.argument


@UPDATE_IN_PLACE.requires("the argument is read for nothing else")
def _read_once(found: Overwrite) -> bool:
    return len(list(found.source.uses)) == 1


# ---- epilogues ------------------------------------------------------------------------------------------------------

EPILOGUE_IN_PLACE = Pattern["_Followed"]("epilogue-in-place", "an epilogue writes a result where an argument is")


@dataclass(frozen=True)
class _Followed:
    """The epilogue `call` makes the result, as its `index`th, and reads the argument as its operand `position`."""

    readers: int
    call: ir.Operation
    position: int
    index: int
    fusion: func.FuncOp
    functions: Functions


def _followed(found: Overwrite, functions: Functions) -> _Followed | None:
    readers = list(readers_of(found.source))
    call = defining_op(found.output)
    if call is None or call.name != "func.call" or not readers:
        return None
    positions = [position for reader, position in readers if reader == call]
    if not positions:
        return None
    fusion = functions[callee_of(call)]
    return _Followed(len(readers), call, positions[0], list(call.results).index(found.output), fusion, functions)


@EPILOGUE_IN_PLACE.requires("only this epilogue reads the argument, and once: no product and no other epilogue does")
def _only_reader(found: _Followed) -> bool:
    return found.readers == 1


@EPILOGUE_IN_PLACE.requires("the sums do not lie where the result goes, before the argument is read")
def _holds_no_sums(found: _Followed) -> bool:
    return accumulators_of(found.fusion) != found.index


@EPILOGUE_IN_PLACE.requires("the epilogue's own kernel may overwrite it")
def _kernel_may(found: _Followed) -> bool:
    return may_overwrite(found.fusion, found.position, found.index, found.functions)
