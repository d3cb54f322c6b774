# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dialect as a page, `docs/dialect.md`, and as IRDL, `disc.irdl.mlir`: both are what the declarations say."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from shlo_disc.shape_dialect.dialect import host, problems
from shlo_disc.shape_dialect.dialect.attribute_rules import ATTRIBUTES
from shlo_disc.shape_dialect.dialect.buffers import ArenaBuffer, ResultBuffer
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dialect.declarations import Bounds, Symbol, Wording
from shlo_disc.shape_dialect.dialect.fusion import KINDS
from shlo_disc.shape_dialect.dialect.fusion_rules import FUSIONS
from shlo_disc.shape_dialect.dialect.host_ops import DiscHost
from shlo_disc.shape_dialect.dialect.library import LibraryFunction
from shlo_disc.shape_dialect.dialect.op_rules import RULES
from shlo_disc.shape_dialect.dialect.ops import LOCAL, Disc
from shlo_disc.shape_dialect.dialect.parts import Part
from shlo_disc.shape_dialect.dialect.records import layout_of
from shlo_disc.shape_dialect.dialect.signature import Declared, TensorSpec
from shlo_disc.shape_dialect.dialect.window import Window
from shlo_disc.shape_dialect.mlir import ir

IRDL_FILE = Path(__file__).parent / "disc.irdl.mlir"

_OPS: dict[str, tuple[type | None, str]] = {
    "disc.symbol": (Symbol, '"disc.symbol"() {max = 512 : i64, min = 1 : i64, name = "s"} : () -> ()'),
    "disc.dim": (Bounds, '"disc.dim"() {min = 1 : i64, name = "2*s"} : () -> ()'),
    "disc.constraint": (Wording, '"disc.constraint"() {origin = "add at line 3", relation = "s <= 512"} : () -> ()'),
    "disc.signature": (
        Declared,
        '"disc.signature"() {arguments = [{dims = [@s], dtype = "f32", path = "args[0]"}], kept = array<i64: 0>, '
        'name = "main", results = [{dims = [@s], dtype = "f32", path = "result"}]} : () -> ()',
    ),
    "disc.shape": (None, '%0 = "disc.shape"() {dims = [@s, 4]} : () -> tensor<2xi64>'),
    "disc.bind": (None, '"disc.bind"(%count) {symbols = [@n]} : (tensor<1xi32>) -> ()'),
    "disc.nonzero": (None, '%0 = "disc.nonzero"(%mask) : (tensor<?xi1, [@s]>) -> tensor<?xi32, [@n]>'),
    "disc.piece": (
        Part,
        '%0 = "disc.piece"(%weights, %i) {part = {offset = 0 : i64, starts = [{bits = 32 : i64, element = 0 : i64, '
        "most = 11 : i64, step = 16384 : i64}]}} : (tensor<12x64x64xf32>, tensor<i32>) -> tensor<64x64xf32>",
    ),
    "disc_host.plan": (
        host.Plan,
        '"disc_host.plan"() {call = {arena = @"64*s", checks = [], writes = array<i64: 0>}} : () -> ()',
    ),
    "disc_host.size": (host.Size, '%size = "disc_host.size"() {call = {value = @"64*s"}} : () -> index'),
    "disc_host.constant": (
        host.Constant, '%weights = "disc_host.constant"() {call = {name = @constant_0}} : () -> memref<?xi8>',
    ),
    "disc_host.packed": (
        host.Packed,
        '%packed = "disc_host.packed"(%weights) {call = {element = "f32", k = 64 : i64, k_stride = 32 : i64, '
        'n = 32 : i64, n_stride = 1 : i64, tile = {format = {element = "f32", multiplier = "f32"}, is_x86, '
        "lanes = 16 : i64, rows = 14 : i64}}} : (memref<?xi8>) -> memref<?xi8>",
    ),
    "disc_host.launch": (
        host.KernelUse,
        '"disc_host.launch"(%x, %y) {call = {grain = 64 : i64, items = @s, kernel = @softmax, sizes = [@s]}, '
        'fusion = "row_reduce_0", kind = "row_reduce"} : (memref<?xi8>, memref<?xi8>) -> ()',
    ),
    "disc_host.gemm": (
        host.Gemm,
        '"disc_host.gemm"(%x, %weights, %y) {call = {products = [{problem = {batch = [], element = "f32", '
        "k = {lhs = 1 : i64, result = 0 : i64, rhs = 32 : i64, size = 64 : i64}, lhs = 0 : i64, "
        "m = {lhs = 64 : i64, result = 32 : i64, rhs = 0 : i64, size = @s}, "
        "n = {lhs = 0 : i64, result = 1 : i64, rhs = 1 : i64, size = 32 : i64}, rhs = 1 : i64}, result = 2 : i64}], "
        'tile = {format = {element = "f32", multiplier = "f32"}, is_x86, lanes = 16 : i64, rows = 14 : i64}}, '
        'fusion = "dot_0"} : (memref<?xi8>, memref<?xi8>, memref<?xi8>) -> ()',
    ),
    "disc_host.product": (
        host.DeviceProduct,
        '"disc_host.product"(%x, %weights, %y) {call = {kernel = {grain = 1 : i64, items = @"floordiv(s + 63, 64)", '
        "kernel = @product_f32_mk_kn, sizes = [@s, 32, 64, 64, 1, 32, 1, 32], threads = 256 : i64}, "
        'precision = "full", problem = {batch = [], element = "f32", '
        "k = {lhs = 1 : i64, result = 0 : i64, rhs = 32 : i64, size = 64 : i64}, lhs = 0 : i64, "
        "m = {lhs = 64 : i64, result = 32 : i64, rhs = 0 : i64, size = @s}, "
        "n = {lhs = 0 : i64, result = 1 : i64, rhs = 1 : i64, size = 32 : i64}, rhs = 1 : i64}}, "
        'fusion = "dot_0"} : (memref<?xi8>, memref<?xi8>, memref<?xi8>) -> ()',
    ),
    "disc_host.convolution": (host.ConvolutionCall, ""),
    "disc_host.attention": (host.AttentionCall, ""),
    "disc_host.attention_gradient": (host.AttentionGradientCall, ""),
    "disc_host.library": (
        host.LibraryCall,
        '"disc_host.library"(%x, %y) {call = {dims = [[@s, 64], [@s, 64]], function = {operands = [f32], '
        'parameters = {}, results = [f32]}, target = "my_function"}, fusion = "library_0"} '
        ": (memref<?xi8>, memref<?xi8>) -> ()",
    ),
    "disc_host.part": (
        Part,
        '%part = "disc_host.part"(%weights, %x) {call = {offset = 0 : i64, starts = [{bits = 32 : i64, '
        "element = 0 : i64, most = 11 : i64, step = 4096 : i64}]}} : (memref<?xi8>, memref<?xi8>) -> memref<?xi8>",
    ),
    "disc_host.copy": (
        host.Bytes, '"disc_host.copy"(%x, %y) {call = {bytes = @"4*s"}} : (memref<?xi8>, memref<?xi8>) -> ()',
    ),
    "disc_host.clear": (host.Bytes, '"disc_host.clear"(%y) {call = {bytes = @"4*s"}} : (memref<?xi8>) -> ()'),
    "disc_host.bind": (
        host.Bind, '"disc_host.bind"(%x) {call = {element = si32, symbols = ["n"]}} : (memref<?xi8>) -> ()',
    ),
}  # fmt: skip
"""The attributes of each op, and an example."""

_INTRODUCTION = """# The dialects disc and disc_host

The stages of the compiler print two dialects besides those of MLIR and StableHLO. `disc` holds the facts about sizes,
the fusions and the buffers, up to the stage `kernels`. `disc_host` is the host program: what a call runs. The module
contains every decision of a stage.

This page is generated from `shlo_disc/shape_dialect/dialect/` by `python -m shlo_disc dialect`. With `--irdl` the
command prints the dialects as IRDL, MLIR's format for dialect definitions. The package contains that text as
`disc.irdl.mlir`, with which tools that load IRDL can open our dumps.

A size is a number, a symbol `@s`, or an expression of symbols in the normal form and spelling of `jax.export`, `@"2*s +
1"`. The encoding of a tensor type holds its sizes, one entry for each dimension: `tensor<?x768xf32, [@s, 768]>`. The
entry of a static dimension is its number; the entry of a `?` is a size over declared symbols. After `annotate` every
`?` has such an entry. Entries of attributes are omitted if they have their default.
"""


_HOST = """## The host program

After `host`, a program has one function for each of its segments (the parts of a program between reads of
data-dependent sizes). The arguments of the function are buffers, `memref<?xi8>`: those of all arguments, then of all
results, then the arenas of the segments. Parts of an arena are `memref.view`s, loops and branches are `scf`. The
parameters of our ops are in the attribute `call`, a dictionary. Further attributes are for readers only: the names and
kinds of fusions, and the choices of kernels at run time.
"""


_FUSIONS = """
## Fusions

`#disc.fusion<"row_reduce", {collapsed, columns = 1 : i64}>`: the kind, and its parameters. `collapsed`: every operand
is read at the index that is written, up to broadcasts, and axes are merged as far as possible.
"""


def dialect_document() -> str:
    """The whole page, in Markdown."""
    records: list[Any] = [ResultBuffer, ArenaBuffer, LibraryFunction, Window, TensorSpec, host.ChosenKernel, host.Guard]
    records += [host.Check, host.GemmTile, host.PackedFormat, host.GemmProduct, host.GemmEpilogue]
    records += [cls for _, cls in inspect.getmembers(problems, is_dataclass) if cls.__module__ == problems.__name__]
    return "\n".join(
        [
            _INTRODUCTION,
            "## Ops\n",
            *(_op(name) for name in _OPS if name.startswith("disc.")),
            _HOST,
            *(_op(name) for name in _OPS if name.startswith("disc_host.")),
            "## Attributes\n",
            *_table(("attribute", "on", "stage", "meaning"), _attributes()),
            _FUSIONS,
            *(_kind(name) for name in sorted(KINDS)),
            "## Entries\n",
            *(_record(cls) for cls in records),
        ]
    )


def irdl_text() -> str:
    """The dialect in IRDL."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            for dialect in (Disc, DiscHost):
                dialect._emit_dialect()
        return f"{module}\n"


def examples() -> dict[str, str]:
    """The example of each op that has one; those of a convolution and of an attention are long."""
    return {name: text for name, (_, text) in _OPS.items() if text}


def _op(name: str) -> str:
    cls = next(op for op in (*Disc.operations, *DiscHost.operations) if name == op.OPERATION_NAME)
    record, example = _OPS[name]
    checks = [_first_line(check) for check in (LOCAL.get(name), RULES.get(name)) if check is not None]
    lines = [f"### `{name}`\n", _flat(cls.__doc__), *([f"```mlir\n{example}\n```\n"] if example else [])]
    if record is not None:
        lines += [*_fields(record)[1:], "", *_paragraphs(record)[1:]]
    return "\n".join([*lines, f"Verified: {' '.join(checks)}\n"])


def _attributes() -> Iterator[tuple[str, str, str, str]]:
    for name in sorted(ATTRIBUTES):
        use = ATTRIBUTES[name]
        ops = ", ".join(f"`{op}`" if op else "the module" for op in use.ops)
        yield f"`{name}`", ops, use.stage, _first_line(use.check)


def _kind(name: str) -> str:
    cls = KINDS[name]
    check = FUSIONS.get(cls)
    lines = [f"### `{name}`\n", _flat(cls.__doc__), *_fields(cls, but="collapsed")[1:]]
    return "\n".join([*lines, f"\nVerified: {_first_line(check)}\n" if check else ""])


def _record(cls: type) -> str:
    return "\n".join([f"### {cls.__name__}\n", _flat(cls.__doc__), *_fields(cls)[1:], ""])


def _fields(cls: type, but: str = "") -> list[str]:
    hints = get_type_hints(cls)
    rows = [
        (f"`{name}`", _of(hints[name]) or codec.text, "" if default is MISSING else f"`{_shown(default)}`")
        for name, codec, default in layout_of(cls)
        if name != but
    ]
    return ["", *_table(("entry", "is", "default"), rows)] if rows else []


def _of(hint: Any) -> str:
    """The name of the dataclass in a field's type, if there is one."""
    for part in (hint, *get_args(hint)):
        if is_dataclass(part):
            return f"{'array of ' if str(hint).startswith('tuple') else ''}{part.__name__}"  # type: ignore[union-attr]
    return ""


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return "[]"
    if default is None or default is False:
        return "absent"
    return f'"{default}"' if isinstance(default, str) else str(default)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    cells = list(head)
    lines = [cells, ["--"] * len(cells), *(list(row) for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _flat(text: str | None) -> str:
    """A docstring in lines of the page's width."""
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(_filled(paragraph) for paragraph in paragraphs) + "\n"


def _paragraphs(cls: type) -> list[str]:
    return [_filled(paragraph) + "\n" for paragraph in inspect.cleandoc(cls.__doc__ or "").split("\n\n")]


def _filled(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 120)


def _first_line(function: Any) -> str:
    return (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")


__all__ = ["IRDL_FILE", "dialect_document", "examples", "irdl_text"]
