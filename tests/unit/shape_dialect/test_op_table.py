# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of ops, row by row: it is complete, its rows are lowered or refused as they say, and the page shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import stablehlo
from shlo_disc.shape_dialect.ops import FAMILIES, LOWERINGS, TABLE, OpDef
from shlo_disc.shape_dialect.ops.document import ops_document

ROOT = Path(__file__).parents[3]
LOWERED = [row for row in TABLE.values() if row.lowering]


def ops_of_the_bindings() -> set[str]:
    """Every op of the StableHLO dialect: the bindings do not list them, their library names them all."""
    context = make_context()
    libraries = Path(stablehlo.__file__).parent.glob("*.so")
    names = {name.decode() for path in libraries for name in re.findall(rb"stablehlo\.[a-z_0-9-]+", path.read_bytes())}
    return {name for name in names if context.is_registered_operation(name)}


def test_every_op_has_a_row() -> None:
    ops = ops_of_the_bindings()
    assert len(ops) > 100
    assert ops - set(TABLE) == set()
    assert {name for name in TABLE if name.startswith("stablehlo.")} - ops == set()


def test_an_op_has_one_row() -> None:
    assert len(TABLE) == sum(len(family.OPS) for family in FAMILIES)


@pytest.mark.parametrize("row", LOWERED, ids=lambda row: row.name)
def test_a_lowered_row(row: OpDef) -> None:
    """It says for which types, its tests exist, and the walk over shapes knows it, if it gets that far."""
    assert row.dtypes
    if row.spec:  # an op of the specification, not one that the compiler makes for itself
        assert row.dtypes & row.spec
        assert (ROOT / row.tests).is_file()
    assert row.lowering in ("import", "control") or row.infer is not None or row.name.startswith("@")


def test_lowerings_are_used() -> None:
    assert {row.lowering for row in LOWERED} <= set(LOWERINGS)


def test_a_refused_row_says_why() -> None:
    assert all(row.reason for row in TABLE.values() if not row.lowering or row.dtypes < row.spec)


def test_the_page_is_up_to_date() -> None:
    """`python -m shlo_disc ops > docs/ops.md` writes it."""
    assert (ROOT / "docs" / "ops.md").read_text() == ops_document()
