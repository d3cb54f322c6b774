# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with few rows: a generated kernel that reads the right-hand side where it lies.

BLAS packs the right-hand side on every call, which costs more than the product itself when there are few rows to share
it. This kernel walks the right-hand side once, `DEPTH` of its rows at a time from left to right, so that memory sees
`DEPTH` forward streams, and adds to the result, which stays in cache; `ROWS` rows by one block of columns are held in
registers. The guard on the number of rows is part of the plan: the version that is not chosen is given no work.
Register blocking after Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.lowering_cpu.dot import BlasDot
from shlo_disc.shape_dialect.expr import Expr, ceildiv
from shlo_disc.shape_dialect.facts import Facts, Relation

ROWS = 6
DEPTH = 8
"""Rows of the right-hand side walked together: more would fall into the same cache sets at strides of whole pages."""

FEWEST_ROWS, MOST_ROWS = 4, 24
"""Where the generated kernel is used; measured against OpenBLAS at the sizes of BERT (fewer rows go to its gemv)."""

_NAMES = {0: "f32", 1: "f64"}
_BITS = {0: 32, 1: 64}


@dataclass(frozen=True)
class FewRowsDot:
    """The sizes of one launch: arguments after the pointers, blocks of columns, and the multiply-adds of a block."""

    kernel: str
    sizes: tuple[Expr, ...]
    blocks: Expr
    block_cost: Expr


def match_few_rows(dot: BlasDot, vector_bits: int) -> FewRowsDot | None:
    """The kernel's form of a product without batch whose right-hand side and result have unit stride along n."""
    one = Expr.const(1)
    if dot.batch or dot.n.rhs != one or dot.n.result != one:
        return None
    sizes = (dot.m.size, dot.n.size, dot.k.size, dot.m.lhs, dot.k.lhs, dot.k.rhs, dot.m.result)
    lanes = columns(dot.dtype, vector_bits)
    cost = dot.m.size * dot.k.size * (lanes // 8)
    return FewRowsDot(f"few_rows_dot_{_NAMES[dot.dtype]}", sizes, ceildiv(dot.n.size, lanes), cost)


def columns(dtype: int, vector_bits: int) -> int:
    """Columns of a block: four registers."""
    return 4 * vector_bits // _BITS[dtype]


def is_few(rows: Expr, facts: Facts) -> Expr:
    """1 when the kernel takes a product of so many rows, else 0."""
    bounds = (Relation.ge(rows, FEWEST_ROWS), Relation.le(rows, MOST_ROWS))
    proved = [facts.prove(b) for b in bounds]
    if None not in proved or False in proved:
        return Expr.const(int(all(proved)))
    above = Expr.minimum(Expr.maximum(rows - (FEWEST_ROWS - 1), 0), 1)
    below = Expr.minimum(Expr.maximum(MOST_ROWS + 1 - rows, 0), 1)
    return facts.simplify(above * below)


def kernel_text(dtype: int, vector_bits: int) -> str:
    """The kernel: columns [64*begin, 64*end) of C[m, n] = A[m, k] * B[k, n]."""
    element = _NAMES[dtype]
    lanes = columns(dtype, vector_bits)
    name = f"few_rows_dot_{element}"
    vector = f"vector<{lanes}x{element}>"
    buffer = f"memref<?x{element}>"
    return f"""
func.func private @{name}(%a: {buffer}, %b: {buffer}, %c: {buffer}, %begin: index, %end: index,
    %m: index, %n: index, %k: index, %a_m: index, %a_k: index, %b_k: index, %c_m: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant {ROWS} : index
  %depth = arith.constant {DEPTH} : index
  %lanes = arith.constant {lanes} : index
  %zero = arith.constant dense<0.0> : {vector}
  %last = arith.subi %m, %c1 : index
  %first_column = arith.muli %begin, %lanes : index
  %end_column = arith.muli %end, %lanes : index
  %past = arith.minui %end_column, %n : index
  %width = arith.subi %past, %first_column : index
  %tail = arith.remui %width, %lanes : index
  %main = arith.subi %past, %tail : index
  %has_tail = arith.cmpi ugt, %tail, %c0 : index
  %mask = vector.create_mask %tail : vector<{lanes}xi1>
  scf.for %row = %c0 to %m step %c1 {{
    %offset = arith.muli %row, %c_m : index
    scf.for %column = %first_column to %main step %lanes {{
      %place = arith.addi %offset, %column : index
      vector.store %zero, %c[%place] : {buffer}, {vector}
    }}
    scf.if %has_tail {{
      %place = arith.addi %offset, %main : index
      vector.maskedstore %c[%place], %mask, %zero : {buffer}, vector<{lanes}xi1>, {vector}
    }}
  }}
  scf.for %kb = %c0 to %k step %depth {{
    %limit = arith.addi %kb, %depth : index
    %ke = arith.minui %limit, %k : index
    scf.for %column = %first_column to %main step %lanes {{
      scf.for %row = %c0 to %m step %rows {{
{_rows("%column")}
{_tile(element, vector, buffer, masked=False)}
      }}
    }}
    scf.if %has_tail {{
      scf.for %row = %c0 to %m step %rows {{
{_rows("%main")}
{_tile(element, vector, buffer, masked=True)}
      }}
    }}
  }}
  return
}}
"""


def _rows(column: str) -> str:
    """Row numbers and offsets of a tile; rows past the end repeat the last one."""
    lines = []
    for i in range(ROWS):
        lines += [
            f"        %i{i} = arith.constant {i} : index",
            f"        %r{i} = arith.addi %row, %i{i} : index",
            f"        %s{i} = arith.minui %r{i}, %last : index",
            f"        %ao{i} = arith.muli %s{i}, %a_m : index",
            f"        %co{i} = arith.muli %s{i}, %c_m : index",
            f"        %cp{i} = arith.addi %co{i}, {column} : index",
        ]
    return "\n".join([*lines, f"        %here = arith.addi %c0, {column} : index"])


def _tile(element: str, vector: str, buffer: str, masked: bool) -> str:
    mask_type = vector.replace(element, "i1")
    tail = f", %mask, %zero : {buffer}, {mask_type}, {vector} into {vector}" if masked else f" : {buffer}, {vector}"
    load = "vector.maskedload" if masked else "vector.load"
    carried = ", ".join(f"%acc{i} = %old{i}" for i in range(ROWS))
    types = ", ".join([vector] * ROWS)
    results = ", ".join(f"%n{i}" for i in range(ROWS))
    return "\n".join(
        [
            *(f"        %old{i} = {load} %c[%cp{i}]{tail}" for i in range(ROWS)),
            f"        %sum:{ROWS} = scf.for %kk = %kb to %ke step %c1 iter_args({carried}) -> ({types}) {{",
            "          %bo = arith.muli %kk, %b_k : index",
            "          %bi = arith.addi %bo, %here : index",
            f"          %bv = {load} %b[%bi]{tail}",
            "          %ka = arith.muli %kk, %a_k : index",
            *(line for i in range(ROWS) for line in _multiply_add(i, element, vector, buffer)),
            f"          scf.yield {results} : {types}",
            "        }",
            *(line for i in range(ROWS) for line in _store(i, vector, buffer, mask_type if masked else "")),
        ]
    )


def _multiply_add(i: int, element: str, vector: str, buffer: str) -> list[str]:
    return [
        f"          %ai{i} = arith.addi %ao{i}, %ka : index",
        f"          %av{i} = memref.load %a[%ai{i}] : {buffer}",
        f"          %ab{i} = vector.broadcast %av{i} : {element} to {vector}",
        f"          %n{i} = math.fma %ab{i}, %bv, %acc{i} : {vector}",
    ]


def _store(i: int, vector: str, buffer: str, mask_type: str) -> list[str]:
    """Write a row of a tile, unless it lies past the end."""
    write = f"vector.store %sum#{i}, %c[%cp{i}] : {buffer}, {vector}"
    if mask_type:
        write = f"vector.maskedstore %c[%cp{i}], %mask, %sum#{i} : {buffer}, {mask_type}, {vector}"
    return [f"        %in{i} = arith.cmpi ult, %r{i}, %m : index", f"        scf.if %in{i} {{ {write} }}"]


def entry_text(dtype: int) -> str:
    """The entry point: raw pointers become flat views, since all strides are arguments."""
    element = _NAMES[dtype]
    struct = "!llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>"
    lines = [
        "  %zero = llvm.mlir.constant(0 : i64) : i64",
        "  %one = llvm.mlir.constant(1 : i64) : i64",
        "  %all = llvm.mlir.constant(9223372036854775807 : i64) : i64",
        f"  %undef = llvm.mlir.undef : {struct}",
    ]
    for i in range(3):
        fields = (("0", f"%p{i}"), ("1", f"%p{i}"), ("2", "%zero"), ("3, 0", "%all"), ("4, 0", "%one"))
        lines += [
            f"  %pa{i} = llvm.getelementptr %args[{i}] : (!llvm.ptr) -> !llvm.ptr, i64",
            f"  %p{i} = llvm.load %pa{i} : !llvm.ptr -> !llvm.ptr",
        ]
        value = "%undef"
        for step, (place, source) in enumerate(fields):
            lines.append(f"  %d{i}_{step} = llvm.insertvalue {source}, {value}[{place}] : {struct}")
            value = f"%d{i}_{step}"
        lines.append(f"  %m{i} = builtin.unrealized_conversion_cast {value} : {struct} to memref<?x{element}>")
    for i in range(7):
        lines += [
            f"  %wa{i} = llvm.getelementptr %args[{i + 3}] : (!llvm.ptr) -> !llvm.ptr, i64",
            f"  %w{i} = llvm.load %wa{i} : !llvm.ptr -> i64",
            f"  %x{i} = builtin.unrealized_conversion_cast %w{i} : i64 to index",
        ]
    lines += [
        "  %b = builtin.unrealized_conversion_cast %begin : i64 to index",
        "  %e = builtin.unrealized_conversion_cast %end : i64 to index",
    ]
    types = ", ".join([*[f"memref<?x{element}>"] * 3, *["index"] * 9])
    operands = ", ".join(["%m0", "%m1", "%m2", "%b", "%e", *(f"%x{i}" for i in range(7))])
    body = "\n".join(lines)
    name = f"few_rows_dot_{element}"
    return (
        f"llvm.func @{name}_entry(%args: !llvm.ptr, %begin: i64, %end: i64) {{\n{body}\n"
        f"  func.call @{name}({operands}) : ({types}) -> ()\n  llvm.return\n}}"
    )
