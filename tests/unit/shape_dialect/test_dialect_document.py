# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page and the IRDL of the dialect are what its declarations say."""

from __future__ import annotations

from pathlib import Path

import pytest

from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dialect.document import IRDL_FILE, dialect_document, examples, irdl_text
from shlo_disc.shape_dialect.dialect.host_ops import DiscHost
from shlo_disc.shape_dialect.dialect.ops import Disc
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.verifier import verify_dialect

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
    long = {"disc_host.convolution", "disc_host.attention", "disc_host.attention_gradient"}
    assert {*examples(), *long} == {op.OPERATION_NAME for op in (*Disc.operations, *DiscHost.operations)}


@pytest.mark.parametrize("name", [name for name in examples() if name.startswith("disc.")])
def test_example(name: str) -> None:
    """Each is right in a module that has what it names."""
    symbols = [f'"disc.symbol"() {{name = "{s}"}} : () -> ()' for s in "sn" if f'name = "{s}"' not in examples()[name]]
    text = examples()[name]
    is_inside = name in ("disc.shape", "disc.bind", "disc.nonzero", "disc.piece")
    above, inside = ("", text) if is_inside else (text, "")
    arguments = "%x: tensor<?xf32, [@s]>"
    more = ", %count: tensor<1xi32>, %mask: tensor<?xi1, [@s]>, %weights: tensor<12x64x64xf32>, %i: tensor<i32>"
    more = more if is_inside else ""
    module = "\n".join([*symbols, above, f"func.func @main({arguments}{more}) -> tensor<?xf32, [@s]> {{", inside])
    with make_context(), ir.Location.unknown():
        parsed = ir.Module.parse(module + "\nreturn %x : tensor<?xf32, [@s]>\n}")
        verify_dialect(parsed)


@pytest.mark.parametrize("name", [name for name in examples() if name.startswith("disc_host.")])
def test_example_of_a_host_program(name: str) -> None:
    plan, size, constant = (examples()[f"disc_host.{n}"] for n in ("plan", "size", "constant"))
    above = "" if name == "disc_host.plan" else plan
    numbers = ", ".join(f"%n{i}: index" for i in range(10))
    inside = "" if name in ("disc_host.plan", "disc_host.size", "disc_host.constant") else examples()[name]
    with make_context(), ir.Location.unknown():
        parsed = ir.Module.parse(
            f"""module attributes {{disc.stage = "host"}} {{
            {examples()["disc.signature"]}
            "disc.symbol"() {{name = "s"}} : () -> ()
            "disc.symbol"() {{data, name = "n"}} : () -> ()
            {above or plan}
            memref.global "private" constant @constant_0 : memref<64x32xf32> = dense<1.0>
            func.func @disc_run(%x: memref<?xi8>, %y: memref<?xi8>, %arena: memref<?xi8>) {{
              {size}
              {constant}
              {inside}
              return
            }}
            module @kernels {{
              func.func @softmax(%x: memref<?x64xf32>, %y: memref<?x64xf32>, %from: index, %to: index, %s: index)
                  attributes {{disc.dynamic_dims = array<i64: 0, 0>}} {{
                return
              }}
              func.func @product_f32_mk_kn(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>, {numbers})
                  attributes {{disc.dynamic_dims = array<i64>}} {{
                return
              }}
            }}
            }}"""
        )
        verify_dialect(parsed)
