# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong programs and the exact texts of their errors, for `test_bad_input.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shlo_disc.errors import DiscError, ProgramError, UnsupportedError

HEAD = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
TAIL = "  return %x : tensor<?xf32>\n}"
ADD = """func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %y : tensor<?xf32>
  return %0 : tensor<?xf32>
}"""
SOURCES = (
    "a program is a jax.export.Exported, StableHLO or a serialized Exported (str, bytes or a path), or a JAX function "
    "with args="
)
ENTRY = "the module must have a function @main or exactly one public function, not "
NO_LOWERING = "this op has no lowering"
NO_DTYPE = "this dtype has no lowering; convert to a supported dtype first"


def unsupported(*constructs: str) -> str:
    """The text of an UnsupportedError."""
    return f"{len(constructs)} unsupported construct(s):\n" + "\n".join(f"  - {c}" for c in constructs)


def identity_of(type_: str) -> str:
    """The identity of one type."""
    return f"func.func @main(%x: {type_}) -> {type_} {{\n  return %x : {type_}\n}}"


TEXTS: dict[str, tuple[Any, type[DiscError], str]] = {
    # Not readable.
    "empty": ("", ProgramError, "the program is empty"),
    "blank": ("\n  \n", ProgramError, "the program is empty"),
    "no bytes": (b"", ProgramError, "the program is empty"),
    "no path": (
        "/nowhere/module.mlir",
        ProgramError,
        "cannot read the program '/nowhere/module.mlir': No such file or directory; there is no folder '/nowhere'",
    ),
    "a directory": (Path("/"), ProgramError, "cannot read the program '/': Is a directory"),
    "a path with NUL": ("a\0b", ProgramError, "cannot read the program 'a\\x00b': embedded null byte"),
    "other bytes": (
        b"PX\x03\x04\xff\xfe",
        ProgramError,
        "the program is neither text (byte 4 is not UTF-8) nor MLIR bytecode (it does not start with 'ML\\xefR')",
    ),
    "a zip archive": (
        b"PK\x03\x04\xff\xfe",
        ProgramError,
        "the program is neither text nor MLIR bytecode, but a zip archive: if torch.export.save wrote it, call "
        "shlo_disc.compile(torch.export.load(file))",
    ),
    "other text": (
        b"hello",
        ProgramError,
        "the program cannot be parsed: line 1, column 1: custom op 'hello' is unknown (tried 'builtin.hello' as well)",
    ),
    "an integer": (3, ProgramError, f"cannot compile an object of type int: {SOURCES}"),
    "None": (None, ProgramError, f"cannot compile an object of type NoneType: {SOURCES}"),
    "the first bytes of bytecode": (
        b"ML\xefR",
        ProgramError,
        "the program cannot be parsed: attempting to parse a byte at the end of the bytecode",
    ),
    "bytecode of another age": (
        b"ML\xefR" + bytes(range(200)),
        ProgramError,
        "the program cannot be parsed: bytecode version 578437695752307201 is newer than the current version 6",
    ),
    # Not parsed, with the position.
    "unknown op": (
        HEAD + "  foo.bar\n" + TAIL,
        ProgramError,
        "the program cannot be parsed: line 2, column 3: Dialect `foo' not found for custom op 'foo.bar'",
    ),
    "unknown value": (
        HEAD + "  %0 = stablehlo.add %x, %y : tensor<?xf32>\n" + TAIL,
        ProgramError,
        "the program cannot be parsed: line 2, column 26: use of undeclared SSA value name",
    ),
    "unclosed": (
        HEAD,
        ProgramError,
        "the program cannot be parsed: line 1, column 54: expected operation name in quotes",
    ),
    "unknown function": (
        HEAD + "  %0 = call @f(%x) : (tensor<?xf32>) -> tensor<?xf32>\n" + TAIL,
        ProgramError,
        "the program cannot be parsed: line 2, column 8: 'func.call' op 'f' does not reference a valid function",
    ),
    "brackets": (
        "module {\n" * 300 + "}" * 300,
        ProgramError,
        "the program cannot be parsed: line 257: more than 256 brackets are open",
    ),
    "a deep type": (
        "func.func @main(%x: " + "tuple<" * 50_000 + "f32" + ">" * 50_000 + ") {\n  return\n}",
        ProgramError,
        "the program cannot be parsed: line 1: more than 256 brackets are open",
    ),
    "a string in no encoding": (
        HEAD + '  stablehlo.custom_call @f(%x) {a = "\\FF"} : (tensor<?xf32>) -> ()\n' + TAIL,
        ProgramError,
        "the program cannot be parsed: line 2: a string is not UTF-8",
    ),
    # Not verified.
    "sizes of an op": (
        'func.func @main(%x: tensor<3xf32>, %y: tensor<4xf32>) -> tensor<3xf32> {\n  %0 = "stablehlo.add"(%x, %y)'
        " : (tensor<3xf32>, tensor<4xf32>) -> tensor<3xf32>\n  return %0 : tensor<3xf32>\n}",
        ProgramError,
        "the program cannot be parsed: line 2, column 8: 'stablehlo.add' op requires the same shape for all operands "
        "and results",
    ),
    "result type": (
        "func.func @main(%x: tensor<?xf32>) -> tensor<?xi32> {\n" + TAIL,
        ProgramError,
        "the program cannot be parsed: line 2, column 3: type of return operand 0 ('tensor<?xf32>') doesn't match "
        "function result type ('tensor<?xi32>') in function @main",
    ),
    "two of one name": (
        HEAD + TAIL + "\n" + HEAD + TAIL,
        ProgramError,
        "the program cannot be parsed: line 4, column 1: redefinition of symbol named 'main'",
    ),
    # No entry.
    "no function": ("module {\n}", ProgramError, ENTRY + "0"),
    "no public function": (HEAD.replace("@main", "private @f") + TAIL, ProgramError, ENTRY + "0"),
    "two public functions": (
        HEAD.replace("@main", "@f") + TAIL + "\n" + HEAD.replace("@main", "@g") + TAIL,
        ProgramError,
        ENTRY + "2",
    ),
    "no body": ("func.func private @main(tensor<?xf32>)\n", ProgramError, "the entry function has no body"),
    # Sizes.
    "sizes that never agree": (
        "func.func @main(%x: tensor<3x?xf32>, %y: tensor<?x4xf32>) -> tensor<?x?xf32> {\n"
        "  %0 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<3x?xf32>, tensor<3x?xf32>) -> tensor<6x?xf32>\n"
        "  %c = stablehlo.constant dense<[5, 4]> : tensor<2xi32>\n"
        "  %1 = stablehlo.dynamic_reshape %y, %c : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x?xf32>\n"
        '  %2 = "stablehlo.add"(%0, %1) : (tensor<6x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>\n'
        "  return %2 : tensor<?x?xf32>\n}",
        ProgramError,
        "stablehlo.add at line 5: the sizes 6 and 5 must be equal and never are",
    ),
    "a size from data in a loop": (
        "func.func @main(%f: tensor<f32>, %n: tensor<1xi32>) -> tensor<1xi32> {\n"
        "  %0 = stablehlo.while(%c = %n) : tensor<1xi32> cond {\n"
        "    %zero = stablehlo.constant dense<false> : tensor<i1>\n"
        "    stablehlo.return %zero : tensor<i1>\n"
        "  } do {\n"
        "    %1 = stablehlo.dynamic_broadcast_in_dim %f, %c, dims = [] : "
        "(tensor<f32>, tensor<1xi32>) -> tensor<?xf32>\n"
        "    %2 = stablehlo.get_dimension_size %1, dim = 0 : (tensor<?xf32>) -> tensor<i32>\n"
        "    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>\n"
        "    stablehlo.return %3 : tensor<1xi32>\n"
        "  }\n"
        "  return %0 : tensor<1xi32>\n}",
        UnsupportedError,
        unsupported(
            "stablehlo.dynamic_broadcast_in_dim at line 6: its size depends on the elements of a tensor, not on the "
            "sizes of the arguments; compute the size from argument shapes, or from at most 64 integers outside of "
            "loops and branches"
        ),
    ),
    "a size that no argument determines": (
        identity_of('tensor<?xf32, [@"a*b"]>'),
        ProgramError,
        "the sizes of the arguments do not determine the symbols ['a', 'b'], which are in args[0].shape[0] = a*b; pass "
        "an argument of size a*symbol + b, or several whose sizes are linear in them",
    ),
    "a size that is no expression": (
        identity_of('tensor<?xf32, [@"b +"]>'),
        ProgramError,
        "cannot read the dimension expression 'b +': expected a name, a number or an operation, found the end at "
        "position 3",
    ),
    "another encoding": (
        identity_of("tensor<?xf32, #stablehlo.bounds<4>>"),
        ProgramError,
        "the encoding of tensor<?xf32, #stablehlo.bounds<4>> is not a list of sizes such as [@b, 768]",
    ),
    "too few sizes": (
        identity_of("tensor<?x?xf32, [@b]>"),
        ProgramError,
        "the encoding of tensor<?x?xf32, [@b]> does not have one size for each dimension, equal where static",
    ),
    "an assertion that fails": (
        HEAD + "  %c = stablehlo.constant dense<false> : tensor<i1>\n  stablehlo.custom_call @shape_assertion(%c) "
        '{error_message = "no", has_side_effect = true} : (tensor<i1>) -> ()\n' + TAIL,
        ProgramError,
        "line 3: no call can satisfy 0 == 1, which the program asserts",
    ),
    # Not supported.
    "arguments of other types": (
        "func.func @main(%a: memref<?xf32>, %b: tensor<?xi128>, %c: tensor<2xi3>,\n"
        "    %d: !stablehlo.token, %e: tensor<*xf32>, %f: index, %x: tensor<?xtf32>) {\n  return\n}",
        UnsupportedError,
        unsupported(
            f"argument 0 on memref<?xf32> at line 1: {NO_DTYPE}",
            f"argument 1 on i128 at line 1: {NO_DTYPE}",
            f"argument 2 on i3 at line 1: {NO_DTYPE}",
            f"argument 3 on !stablehlo.token at line 1: {NO_DTYPE}",
            f"argument 4 on tensor<*xf32> at line 1: {NO_DTYPE}",
            f"argument 5 on index at line 1: {NO_DTYPE}",
            f"argument 6 on tf32 at line 1: {NO_DTYPE}",
        ),
    ),
    "a function without a body": (
        "func.func private @f(tensor<?xf32>) -> tensor<?xf32>\n"
        + HEAD
        + "  %0 = call @f(%x) : (tensor<?xf32>) -> tensor<?xf32>\n  return %0 : tensor<?xf32>\n}",
        UnsupportedError,
        unsupported(f"func.call at line 3: {NO_LOWERING}; give the function a body"),
    ),
    "recursion": (
        HEAD + "  %0 = call @main(%x) : (tensor<?xf32>) -> tensor<?xf32>\n  return %0 : tensor<?xf32>\n}",
        UnsupportedError,
        unsupported("func.call at line 2: recursion has no lowering; write a loop"),
    ),
    "two blocks": (
        HEAD + "  cf.br ^bb1\n^bb1:\n" + TAIL,
        UnsupportedError,
        unsupported(f"cf.br at line 2: {NO_LOWERING}; write the function as one block"),
    ),
    "another dialect": (
        HEAD + "  %0 = arith.addf %x, %x : tensor<?xf32>\n  return %0 : tensor<?xf32>\n}",
        UnsupportedError,
        unsupported(f"arith.addf at line 2: {NO_LOWERING}"),
    ),
    "elements elsewhere": (
        "func.func @main() -> tensor<4xf32> {\n  %0 = stablehlo.constant dense_resource<a> : tensor<4xf32>\n"
        "  return %0 : tensor<4xf32>\n}",
        UnsupportedError,
        unsupported("stablehlo.constant at line 2: a constant whose elements are not in the program has no lowering"),
    ),
    "several at once": (
        "func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xcomplex<f32>>) {\n"
        "  %0 = stablehlo.custom_call @f(%x) : (tensor<?xf32>) -> tensor<?xf32>\n"
        "  %1 = stablehlo.complex %0, %0 : tensor<?xcomplex<f32>>\n"
        "  %2 = stablehlo.remainder %1, %1 : tensor<?xcomplex<f32>>\n"
        "  return %0, %2 : tensor<?xf32>, tensor<?xcomplex<f32>>\n}",
        UnsupportedError,
        unsupported(
            "stablehlo.custom_call @f at line 2: this custom call has no lowering; "
            "register a native function for it with shlo_disc.register_custom_call",
            f"stablehlo.remainder on complex<f32> at line 4: {NO_DTYPE}",
        ),
    ),
}
