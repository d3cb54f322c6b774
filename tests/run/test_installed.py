# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package as users have it installed: its types, and what it says where it is not built."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import pytest

import shlo_disc
from tests.c import bare

ROOT = Path(__file__).resolve().parents[2]


def test_the_types_are_for_users() -> None:
    assert (Path(shlo_disc.__file__).parent / "py.typed").is_file()
    installed = [str(file) for file in files("shlo_disc") or ()]
    if any(name.startswith("shlo_disc/") and name.endswith("errors.py") for name in installed):  # not for editable ones
        assert "shlo_disc/py.typed" in installed


TYPED = Path(__file__).with_name("typed_program.py")


@pytest.mark.slow
def test_a_user_s_program_is_checked(tmp_path: Path) -> None:
    """mypy sees what functions take and give: those of `TYPED` are right, and the others are not."""
    program, typed = tmp_path / "user.py", tmp_path / TYPED.name
    typed.write_text(TYPED.read_text())
    program.write_text(
        "import shlo_disc\n"
        "program = shlo_disc.load('model.disc', trust=True)\n"
        "reveal_type(program)\n"
        "reveal_type(program.memory(b=3).peak_bytes)\n"
        "shlo_disc.Options(threads='two')\n"
        "shlo_disc.load('model.disc', trusted=True)\n"
        "shlo_disc.compile('', args=2)\n"
        "shlo_disc.jit(len, filter=True, static_argnums=0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", program, typed],
        capture_output=True, text=True, check=False, env={"MYPYPATH": str(ROOT), "PATH": ""}, cwd=tmp_path,
    )  # fmt: skip
    for text in (
        'Revealed type is "shlo_disc.runtime.executable.LoadedExecutable"',
        'Revealed type is "int"',
        'Argument "threads" to "Options" has incompatible type "str"; expected "int"',
        'Unexpected keyword argument "trusted" for "load"',
        'No overload variant of "compile" matches argument types "str", "int"',
        'No overload variant of "jit" matches argument types',
        "Found 4 errors in 1 file (checked 2 source files)",
    ):
        assert text.replace('"int"', "") in done.stdout.replace('"builtins.int"', "").replace('"int"', ""), done.stdout


def test_a_source_tree_that_is_not_built_says_so(tmp_path: Path) -> None:
    python = bare.make(tmp_path)
    for native in tmp_path.glob("lib/*/site-packages/shlo_disc/runtime/_native*.so"):
        native.unlink()
    done = subprocess.run(
        [python, "-c", "import shlo_disc.runtime"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    text = "lacks its native module: it is a source tree that was not built, which hides an installed package"
    assert done.returncode == 1 and text in done.stderr, done.stderr
