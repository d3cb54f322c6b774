# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page and the IRDL of the dialect are what its declarations say."""

from __future__ import annotations

from pathlib import Path

import pytest

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.document import IRDL_FILE, dialect_document, examples, irdl_text
from shlo_disc.shape_dialect.dialect.ops import Disc, make_context
from shlo_disc.shape_dialect.dialect.verifier import verify_dialect

ROOT = Path(__file__).parents[3]


def test_the_page_is_up_to_date() -> None:
    """Written by `python -m shlo_disc dialect > docs/dialect.md`."""
    assert (ROOT / "docs" / "dialect.md").read_text() == dialect_document()


def test_the_irdl_is_up_to_date() -> None:
    """Written by `python -m shlo_disc dialect --irdl`."""
    assert IRDL_FILE.read_text() == irdl_text()
    with make_context(), ir.Location.unknown():
        assert ir.Module.parse(IRDL_FILE.read_text()).operation.verify()


def test_every_op_has_an_example() -> None:
    assert set(examples()) == {op.OPERATION_NAME for op in Disc.operations}


@pytest.mark.parametrize("name", examples())
def test_example(name: str) -> None:
    """Each is right in a module that has what it names."""
    symbols = [f'"disc.symbol"() {{name = "{s}"}} : () -> ()' for s in "sn" if f'name = "{s}"' not in examples()[name]]
    text = examples()[name]
    is_inside = name in ("disc.shape", "disc.bind", "disc.nonzero")
    above, inside = ("", text) if is_inside else (text, "")
    arguments = "%x: tensor<?xf32, [@s]>"
    more = ", %count: tensor<1xi32>, %mask: tensor<?xi1, [@s]>" if is_inside else ""
    module = "\n".join([*symbols, above, f"func.func @main({arguments}{more}) -> tensor<?xf32, [@s]> {{", inside])
    with make_context(), ir.Location.unknown():
        parsed = ir.Module.parse(module + "\nreturn %x : tensor<?xf32, [@s]>\n}")
        verify_dialect(parsed)
