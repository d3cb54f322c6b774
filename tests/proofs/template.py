# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that rewrites are proved on, and the running of the real rewrite on them.

`T(b 4)` in the text of a template is the type of a tensor of f32 of these sizes, `T(b 4, i32)` that of another element
type, and `S(b 4)` the op `disc.shape` with these sizes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from shlo_disc.lowering_cpu.policy import CPU_POLICY
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.shape_dialect.compile_state import compiling_for
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir, rewrite
from shlo_disc.transforms.simplify import patterns
from shlo_disc.transforms.simplify.data_movement import Pattern

Row = tuple[str, Pattern]


@dataclass(frozen=True)
class Template:
    """A program on which a rule fires, or one on which it has to refuse.

    rule: as `rule_name` has it. arguments: the types of `%a`, `%b` and so on. body: the ops, which end with a `return`
    and the types of the results. refused: why the rule must not fire.
    """

    rule: str
    arguments: tuple[str, ...]
    body: str
    functions: str = ""
    target: str = "cpu"
    has_bits: bool = False
    refused: str = ""

    @property
    def text(self) -> str:
        """The module."""
        names = ", ".join(f"%{'abcdefgh'[i]}: {type_}" for i, type_ in enumerate(self.arguments))
        results = re.search(r"(?:^|\n)\s*return [^:]*:\s*(.*)", self.body, re.S)
        result = results[1].strip() if results else ""
        return _expanded(f"{self.functions}\nfunc.func @main({names}) -> ({result}) {{\n{self.body}\n}}")


def _expanded(text: str) -> str:
    text = re.sub(r"T\(([^(),]*)(?:, ([^)]*))?\)", lambda m: tensor(m[1].split(), m[2] or "f32"), text)
    return re.sub(r"S\(([^)]*)\)", lambda m: _shape(m[1].split()), text)


def tensor(sizes: list[str], element: str = "f32") -> str:
    """The text of a type."""
    dims = "".join(("?" if _is_symbolic(size) else size) + "x" for size in sizes)
    encoding = f", [{', '.join(map(_dim, sizes))}]" if any(map(_is_symbolic, sizes)) else ""
    return f"tensor<{dims}{element}{encoding}>"


def _is_symbolic(size: str) -> bool:
    return not size.isdigit()


def _dim(size: str) -> str:
    return f'@"{size}"' if _is_symbolic(size) else size


def _shape(sizes: list[str]) -> str:
    return f'"disc.shape"() {{dims = [{", ".join(map(_dim, sizes))}]}} : () -> tensor<{len(sizes)}xi64>'


def rule_name(row: Row) -> str:
    """The name of a rule: its op and its function, as `transpose: transpose_of_transpose`."""
    op, pattern = row
    return f"{op.removeprefix('stablehlo.')}: {pattern.__name__}"


@contextmanager
def prepared(target: str = "cpu") -> Iterator[None]:
    """A context for modules, compiled for a target."""
    policy = GPU_POLICY if target == "cuda" else CPU_POLICY
    with make_context(), ir.Location.unknown(), compiling_for(policy):
        yield


def rewritten(template: Template, row: Row, times: int | None = None) -> tuple[ir.Module, ir.Module, int]:
    """The program before and after a rule, and how often the rule fired."""
    before, after = ir.Module.parse(template.text), ir.Module.parse(template.text)
    fired = 0

    def counted(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
        nonlocal fired
        if times is not None and fired >= times:
            return True
        found = row[1](op, rewriter)
        fired += found is None
        return found

    patterns.apply([(row[0], counted)], after)
    return before, after, fired


Changed = Callable[[Pattern], Pattern]
