# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small hand-written programs that follow the native interface, for tests of the runtime.

Each is LLVM IR with a `disc_plan` and a `disc_run`, compiled by llvmlite to a relocatable object.
"""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding as llvm

from shlo_disc.runtime import Artifact

TRIPLE = "x86_64-unknown-linux-gnu"

RUNTIME_TYPE = "%rt = type { ptr, ptr, ptr }\n"


@functools.cache
def compile_ir(text: str, optimize: bool = True) -> bytes:
    """LLVM IR text to an ELF relocatable object, as the compiler's code generator makes it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(TRIPLE)
    machine = target.create_target_machine(opt=2 if optimize else 0, reloc="pic", codemodel="small")
    module = llvm.parse_assembly(text)
    module.triple = TRIPLE
    module.verify()
    return machine.emit_object(module)


def symbol(name: str, argument: int, dim: int, **options: Any) -> dict[str, Any]:
    """A header entry for one dimension variable; options: min, max, scale, offset."""
    solve = {"argument": argument, "dim": dim, "scale": options.get("scale", 1), "offset": options.get("offset", 0)}
    return {"name": name, "min": options.get("min", 1), "max": options.get("max"), "solve": solve}


def array(path: str, shape: list[int | str], dtype: str = "f32") -> dict[str, Any]:
    """A header entry for one argument or result."""
    return {"path": path, "dtype": dtype, "shape": shape, "donated": False}


def header(**fields: Any) -> dict[str, Any]:
    """A header with defaults for everything that is not given."""
    result: dict[str, Any] = {
        "format": 1,
        "name": "program",
        "target": {"triple": TRIPLE, "features": []},
        "symbols": [],
        "arguments": [],
        "results": [],
        "checks": [],
        "constants": [],
        "entry": {"plan": "disc_plan", "run": "disc_run"},
        "pytree": {},
    }
    result.update(fields)
    dims = sum(len(entry["shape"]) for entry in (*result["arguments"], *result["results"]))
    result.setdefault("plan_words", 1 + dims)
    return result


# y[b, 8] = x[b, 8] + 1 through an arena of the same size, in parallel ranges of rows. Words: 0 arena; 1, 2 x's dims;
# 3, 4 y's dims; 5 b. The plan refuses b > 1000000 (check 0) and sizes whose bytes overflow (check 1).
ADD_ONE_IR = (
    RUNTIME_TYPE
    + """
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)

define i64 @disc_plan(ptr %symbols, ptr %words) {
  %b = load i64, ptr %symbols
  %m = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %b, i64 32)
  %bytes = extractvalue { i64, i1 } %m, 0
  %over = extractvalue { i64, i1 } %m, 1
  %w1 = getelementptr i64, ptr %words, i64 1
  store i64 %b, ptr %w1
  %w2 = getelementptr i64, ptr %words, i64 2
  store i64 8, ptr %w2
  %w3 = getelementptr i64, ptr %words, i64 3
  store i64 %b, ptr %w3
  %w4 = getelementptr i64, ptr %words, i64 4
  store i64 8, ptr %w4
  br i1 %over, label %overflow, label %sized
overflow:
  ret i64 2
sized:
  store i64 %bytes, ptr %words
  %big = icmp sgt i64 %b, 1000000
  br i1 %big, label %refuse, label %good
refuse:
  ret i64 1
good:
  ret i64 0
}

define void @copy_rows(ptr %args, i64 %begin, i64 %end) {
entry:
  %source = load ptr, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  %target = load ptr, ptr %p1
  %first = mul i64 %begin, 8
  %last = mul i64 %end, 8
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %sp = getelementptr float, ptr %source, i64 %i
  %v = load float, ptr %sp
  %tp = getelementptr float, ptr %target, i64 %i
  store float %v, ptr %tp
  %next = add i64 %i, 1
  %done = icmp sge i64 %next, %last
  br i1 %done, label %exit, label %loop
exit:
  ret void
}

define void @add_rows(ptr %args, i64 %begin, i64 %end) {
entry:
  %p1 = getelementptr i64, ptr %args, i64 1
  %source = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  %target = load ptr, ptr %p2
  %first = mul i64 %begin, 8
  %last = mul i64 %end, 8
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %sp = getelementptr float, ptr %source, i64 %i
  %v = load float, ptr %sp
  %w = fadd float %v, 1.0
  %tp = getelementptr float, ptr %target, i64 %i
  store float %w, ptr %tp
  %next = add i64 %i, 1
  %done = icmp sge i64 %next, %last
  br i1 %done, label %exit, label %loop
exit:
  ret void
}

define void @disc_run(ptr %rt, ptr %buffers, ptr %words, ptr %arena) {
  %args = alloca [3 x ptr]
  %x = load ptr, ptr %buffers
  %yp = getelementptr ptr, ptr %buffers, i64 1
  %y = load ptr, ptr %yp
  store ptr %x, ptr %args
  %a1 = getelementptr ptr, ptr %args, i64 1
  store ptr %arena, ptr %a1
  %a2 = getelementptr ptr, ptr %args, i64 2
  store ptr %y, ptr %a2
  %w1 = getelementptr i64, ptr %words, i64 1
  %b = load i64, ptr %w1
  %launch = load ptr, ptr %rt
  call void %launch(ptr %rt, ptr @copy_rows, ptr %args, i64 %b, i64 64, i64 0)
  call void %launch(ptr %rt, ptr @add_rows, ptr %args, i64 %b, i64 64, i64 1)
  ret void
}
"""
)


def add_one() -> Artifact:
    """x[b, 8] -> x + 1, f32."""
    checks = [
        {
            "kind": "constraint",
            "message": "Input shapes do not match the symbolic shape constraint b <= 1000000. "
            "Expected '- b + 1000000' to be greater or equal to 0, but found b = {b}, bytes = {0}.",
            "operands": [0],
        },
        {"kind": "overflow", "message": "The arena does not fit 64 bits at b = {b}.", "operands": []},
    ]
    fields = header(
        name="add_one",
        symbols=[symbol("b", 0, 0)],
        arguments=[array("args[0]", ["b", 8])],
        results=[array("result", ["b", 8])],
        checks=checks,
    )
    return Artifact.of(fields, compile_ir(ADD_ONE_IR))


Dim = int | dict[str, int]
"""A size: a number, or coefficients by symbol name with "" for the constant."""


def dim_text(dim: Dim) -> int | str:
    """The size as headers write it, as jax.export prints it: "2*b + 1"."""
    if isinstance(dim, int):
        return dim
    terms = [name if scale == 1 else f"{scale}*{name}" for name, scale in dim.items() if name]
    return " + ".join(terms + ([str(dim[""])] if dim.get("") else []))


def _plan_ir(symbols: list[str], dims: list[Dim], arena: int, checks: list[tuple[str, str, int]]) -> str:
    """A plan that stores linear sizes and then evaluates checks `symbol predicate constant`, which must hold."""
    lines: list[str] = []
    for index, name in enumerate(symbols):
        lines += [f"  %p.{name} = getelementptr i64, ptr %symbols, i64 {index}", f"  %{name} = load i64, ptr %p.{name}"]
    for index, dim in enumerate([arena, *dims]):
        terms = {"": dim} if isinstance(dim, int) else dim
        lines.append(f"  %v{index}.0 = add i64 0, {terms.get('', 0)}")
        step = 0
        for name, scale in terms.items():
            if name:
                lines += [
                    f"  %v{index}.m{step} = mul i64 %{name}, {scale}",
                    f"  %v{index}.{step + 1} = add i64 %v{index}.{step}, %v{index}.m{step}",
                ]
                step += 1
        lines += [
            f"  %w{index} = getelementptr i64, ptr %words, i64 {index}",
            f"  store i64 %v{index}.{step}, ptr %w{index}",
        ]
    lines.append("  br label %check0")
    for index, (name, predicate, constant) in enumerate(checks):
        lines += [
            f"check{index}:",
            f"  %c{index} = icmp {predicate} i64 %{name}, {constant}",
            f"  br i1 %c{index}, label %check{index + 1}, label %fail{index}",
            f"fail{index}:",
            f"  ret i64 {index + 1}",
        ]
    lines += [f"check{len(checks)}:", "  ret i64 0"]
    body = "\n".join(lines)
    return f"define i64 @disc_plan(ptr %symbols, ptr %words) {{\n{body}\n}}\n"


def _copy_ir(position: int, target: int, rank: int, first_word: int, item: int) -> str:
    """Copies argument `position` to buffer `target` by a library call."""
    lines = [f"  %n{target}.0 = add i64 0, {item}"]
    for dim in range(rank):
        lines += [
            f"  %d{target}.{dim} = getelementptr i64, ptr %words, i64 {first_word + dim}",
            f"  %s{target}.{dim} = load i64, ptr %d{target}.{dim}",
            f"  %n{target}.{dim + 1} = mul i64 %n{target}.{dim}, %s{target}.{dim}",
        ]
    lines += [
        f"  %ap{target} = getelementptr ptr, ptr %buffers, i64 {position}",
        f"  %a{target} = load ptr, ptr %ap{target}",
        f"  %rp{target} = getelementptr ptr, ptr %buffers, i64 {target}",
        f"  %r{target} = load ptr, ptr %rp{target}",
        f"  %u{target} = call ptr @memcpy(ptr %r{target}, ptr %a{target}, i64 %n{target}.{rank})",
    ]
    return "\n".join(lines)


ITEM = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
ITEM |= {"u8": 1, "u16": 2, "u32": 4, "u64": 8}


def identity(
    arguments: list[tuple[str, list[Dim], str]],
    symbols: list[dict[str, Any]] | None = None,
    *,
    arena: int = 0,
    checks: list[tuple[str, str, int, dict[str, Any]]] = (),  # type: ignore[assignment]
    **fields: Any,
) -> Artifact:
    """A program that returns its arguments. Arguments are (path, shape, dtype)."""
    symbols = symbols or []
    dims = [dim for _, shape, _ in arguments for dim in shape]
    names = [str(entry["name"]) for entry in symbols]
    plan = _plan_ir(names, [*dims, *dims], arena, [(name, op, constant) for name, op, constant, _ in checks])
    word, copies = 1 + len(dims), []
    for index, (_, shape, dtype) in enumerate(arguments):
        copies.append(_copy_ir(index, len(arguments) + index, len(shape), word, ITEM[dtype]))
        word += len(shape)
    body = "\n".join(copies)
    run = f"define void @disc_run(ptr %rt, ptr %buffers, ptr %words, ptr %arena) {{\n{body}\n  ret void\n}}\n"
    specs = [array(path, [dim_text(dim) for dim in shape], dtype) for path, shape, dtype in arguments]
    results = [{**spec, "path": f"result[{index}]"} for index, spec in enumerate(specs)]
    head = header(
        symbols=symbols,
        arguments=specs,
        results=results,
        checks=[check for *_, check in checks],
        **{"name": "identity", **fields},
    )
    return Artifact.of(head, compile_ir("declare ptr @memcpy(ptr, ptr, i64)\n" + plan + run))
