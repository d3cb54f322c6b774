# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of stages and passes on small modules: each file holds modules, and what is to be found in the output.

A file begins with `// RUN: opt --stage NAME --split-input-file %s | filecheck %s`, or with `--pass-pipeline='PASSES'`
in the place of the stage; `--target=TARGET` follows where it is not for CPUs. Lines `// -----` stand between its
modules. A module that is refused has `error: ` and the message as its output. A file that is called like a pass is
about that pass, which its pipeline ends with.

    python -m tests.filecheck.test_filecheck tests/filecheck/annotate/windows.mlir     # the output, to read
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options as Checks
from filecheck.parser import Parser

from shlo_disc.driver.compilation import Compilation
from shlo_disc.driver.compiler import import_stage, run_pipeline, run_text_pipeline
from shlo_disc.driver.pass_pipelines import parse_pipeline
from shlo_disc.driver.passes import PASSES
from shlo_disc.driver.stage_text import stage_text
from shlo_disc.errors import DiscError
from shlo_disc.options import Options

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FILES = sorted(HERE.rglob("*.mlir"))
RUN = re.compile(
    r"// RUN: opt --(stage|pass-pipeline)[ =](\S+|'[^']+')(?: --target=(\S+))? --split-input-file %s \| filecheck %s\n"
)

COVERED = {
    "annotate": "shape_dialect/ops",
    "expand": "transforms/expand",
    "simplify": "transforms/simplify",
}
"""A folder of tests, and the folder whose modules it has a file for, each."""

WITHOUT_PATTERNS = {
    "annotate/access", "annotate/code_size", "annotate/control_flow", "annotate/definition", "annotate/document",
    "annotate/dynamic_forms", "annotate/element_types", "annotate/segments",
    "annotate/index_maps", "annotate/lapack", "annotate/lapack_sizes", "annotate/legality", "annotate/nested_blocks",
    "annotate/propagation",
    "annotate/quantized", "annotate/recurrences", "annotate/reducers", "annotate/row_axes",
    "annotate/shapes", "annotate/size_relations", "annotate/values", "annotate/variants", "annotate/views",
    "expand/build",
    "expand/complex_constants", "expand/custom_call", "expand/library_call", "expand/reals", "simplify/index_digits",
    "simplify/dequantized_patterns", "simplify/loop_product", "simplify/narrow_integers",
    "simplify/patterns",
}  # fmt: skip
"""Modules that only help others."""


def output_of(path: Path) -> str:
    """The output of `opt` for the modules of a file."""
    text = path.read_text()
    header = RUN.match(text)
    assert header, f"{path} does not begin with a line {RUN.pattern}"
    run = _stage_of if header[1] == "stage" else _pipeline_of
    modules = re.split(r"^// -----\n", text, flags=re.M)
    return "// -----\n".join(_printed(run, module, header[2].strip("'"), header[3] or "cpu") for module in modules)


def _stage_of(c: Compilation, stage: str) -> str:
    return stage_text(run_pipeline(c, last=stage), stage)


def _pipeline_of(c: Compilation, text: str) -> str:
    run_text_pipeline(c, text)
    return str(c.current)


def _printed(run: Callable[[Compilation, str], str], module: str, argument: str, target: str) -> str:
    try:
        return run(import_stage(module, target, Options(strict=True), resume=True), argument) + "\n"
    except DiscError as error:
        return f"error: {error}\n"


def check(path: Path, output: str) -> str:
    """Describes the lines beginning with CHECK that an output does not match; "" where it matches all."""
    options = Checks(match_filename=str(path))
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        status = Matcher(options, FInput(str(path), output), Parser.from_opts(options)).run()
    return said.getvalue() if status else ""


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(HERE).with_suffix("")))
def test_output(path: Path) -> None:
    output = output_of(path)
    missed = check(path, output)
    assert not missed, f"{missed}\n{output}"


def modules() -> Iterator[str]:
    """The names that files need to have."""
    for folder, source in COVERED.items():
        names = (p.stem for p in (ROOT / "shlo_disc" / source).glob("*.py") if p.stem != "__init__")
        yield from (f"{folder}/{name}" for name in sorted(names) if f"{folder}/{name}" not in WITHOUT_PATTERNS)


@pytest.mark.parametrize("name", list(modules()))
def test_each_module_has_a_file(name: str) -> None:
    assert (HERE / f"{name}.mlir").exists()


WITHOUT_MLIR = {"translate-to-llvm-ir", "emit-object"}
"""Passes that make no module."""


@pytest.mark.parametrize("name", [name for name in PASSES if name not in WITHOUT_MLIR])
def test_each_pass_has_a_file(name: str) -> None:
    path = HERE / PASSES[name].stage / f"{name}.mlir"
    header = RUN.match(path.read_text())
    assert header is not None and header[1] == "pass-pipeline"
    assert parse_pipeline(header[2].strip("'"))[-1].name == name


def test_what_is_missing_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.mlir"
    path.write_text("// CHECK: stablehlo.add\n// CHECK-NOT: stablehlo.multiply\n// CHECK: return\n")
    assert not check(path, "stablehlo.add\nreturn\n")
    assert check(path, "stablehlo.subtract\nreturn\n")
    assert check(path, "stablehlo.add\nstablehlo.multiply\nreturn\n")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(output_of(Path(argument)))
