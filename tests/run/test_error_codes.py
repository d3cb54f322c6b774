# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each error has a code, each code a page, and each page an example that raises that error."""

from __future__ import annotations

import importlib
import json
import linecache
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import shlo_disc
from shlo_disc import errors
from shlo_disc.driver.isolated.client import close_processes
from shlo_disc.errors import ALL_CODES, C_CODES, CODES, DiscError, OptionError, code_of
from shlo_disc.runtime import AllocationError, callbacks, native_module
from shlo_disc.shape_dialect import custom_calls
from shlo_disc.tools.cli import main
from shlo_disc.tools.commands.why import index, page

PAGES = Path(__file__).parents[2] / "docs" / "errors"
NAMES = [code.name for code in CODES]
_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def parts_of(name: str) -> dict[str, str]:
    """The blocks of a page: its example, and what that says."""
    return dict(_BLOCK.findall((PAGES / f"{name}.md").read_text()))


def test_each_code_has_a_page_and_each_page_a_code() -> None:
    """The examples of the codes of the C API are those of tests/c/test_errors.py."""
    every = [*NAMES, *(code.name for code in C_CODES)]
    assert sorted(path.stem for path in PAGES.glob("DISC-*.md")) == sorted(every)
    assert len(set(every)) == len(every) and all(re.fullmatch(r"DISC-[A-Z]\d{3}", name) for name in every)
    for code in CODES:
        text = (PAGES / f"{code.name}.md").read_text()
        assert text.startswith(f"# {code.name}: {code.title}\n\nRaised as `{code.error}`.\n\n"), code.name
        assert set(parts_of(code.name)) == {"python", "text"} and len(text.rpartition("```")[2].strip()) > 20


def test_the_index_is_that_of_the_table() -> None:
    """`python -m shlo_disc why > docs/errors/index.md` writes it."""
    assert (PAGES / "index.md").read_text() == index()


@pytest.mark.parametrize("name", NAMES)
def test_each_example_raises_its_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    callbacks.install_for_exports()
    ours = {name: found for name, found in custom_calls._registered.items() if name in custom_calls.OF_THIS_PROCESS}
    monkeypatch.setattr(custom_calls, "_registered", ours)
    request.addfinalizer(native_module.install_lapack.__wrapped__)
    text = parts_of(name)["python"]
    monkeypatch.setitem(linecache.cache, name, (len(text), None, text.splitlines(keepends=True), name))
    example = compile(text, name, "exec")
    names: dict[str, object] = {"__name__": "__main__"}
    with pytest.raises(DiscError) as caught:
        exec(example, names)  # noqa: S102 - the page of this repository
    names.clear()
    close_processes()
    assert caught.value.code == name
    first, *more = caught.value.message.splitlines()
    assert parts_of(name)["text"].split() and str(caught.value).split()[-1] == f"[{name}]"
    shown = f"{first} ... [{name}]" if more else f"{first} [{name}]"
    assert plain(" ".join(parts_of(name)["text"].split())) == plain(" ".join(shown.split()))
    assert caught.value.remedy and caught.value.remedy == page(name).rpartition("```\n")[2].strip()


def plain(message: str) -> str:
    """Without what depends on the machine: numbers, files, and links to documentation that moves."""
    return re.sub(r"^\S+:\d+:|(?<!\S)/\S+|\d+|https://\S+", "N", message)


def classes() -> list[type[DiscError]]:
    """All classes of errors that users meet."""
    for module in pkgutil.iter_modules(shlo_disc.__path__):
        if module.name not in ("__main__", "torch"):
            importlib.import_module(f"shlo_disc.{module.name}")
    inner = {"NotGeneralError"}  # caught where it is raised
    return [kind for kind in [*DiscError.__subclasses__(), DiscError] if kind.__name__ not in inner]


@pytest.mark.parametrize("kind", [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, DiscError)])
def test_each_class_has_a_code_for_whatever_it_says(kind: type[DiscError]) -> None:
    general = [code for code in CODES if code.error == kind.__name__ and not code.words]
    assert len(general) == (kind is not DiscError)


def test_no_class_is_forgotten() -> None:
    named = {code.error for code in CODES}
    assert {kind.__name__ for kind in classes()} == named | {"DiscError"}


def test_the_text_ends_with_the_code() -> None:
    error = errors.ShapeError("Rank mismatch for args[0]")
    assert str(error) == "Rank mismatch for args[0] [DISC-S101]" and error.message == "Rank mismatch for args[0]"
    assert str(errors.ShapeError(str(error))) == str(error)  # raised again, by its text
    assert str(errors.CompilerError("it failed\nTo see it again: opt x")).endswith("opt x\n[DISC-C100]")
    assert str(AllocationError(3, "no memory")) == "no memory [DISC-M101]"
    assert str(DiscError("of no code")) == "of no code" and DiscError("of no code").remedy == ""


def test_codes_follow_from_class_and_words() -> None:
    assert errors.ShapeError("Rank mismatch for args[0]: ...").code == "DISC-S101"
    assert errors.ShapeError("whatever").code == "DISC-S100"
    assert AllocationError(3, "no memory").code == "DISC-M101"
    assert code_of(["ValueError"], "Rank mismatch for") == ""
    general = [i for i, code in enumerate(CODES) if not code.words]
    for i in general:
        assert not any(code.error == CODES[i].error for code in CODES[i + 1 :])  # nothing comes after it


def test_the_command_line_says_the_code_and_explains_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["info", str(tmp_path / "nowhere.mlir")]) == 1
    first = capsys.readouterr().err
    assert first.startswith("shlo_disc: error")
    path = tmp_path / "wrong.mlir"
    path.write_text("func.func @main(")
    assert main(["opt", str(path)]) == 1
    assert capsys.readouterr().err.startswith("shlo_disc: error[DISC-P102]: the program ")
    done = subprocess.run(
        [sys.executable, "-m", "shlo_disc", "why", "p102"], capture_output=True, text=True, check=True
    )
    assert done.stdout == (PAGES / "DISC-P102.md").read_text() == page("DISC-P102")
    assert main(["why"]) == 0 and capsys.readouterr().out == index()
    assert main(["why", "s101", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["codes"]
    assert row["code"] == "DISC-S101" and row["error"] == "ShapeError" and row["page"] == page("S101")
    assert main(["why", "--json"]) == 0 and len(json.loads(capsys.readouterr().out)["codes"]) == len(ALL_CODES)
    assert main(["why", "DISC-Z999"]) == 2
    assert "no error has the code 'DISC-Z999'" in capsys.readouterr().err
    with pytest.raises(OptionError):
        page("../../README")
    assert os.path.isdir(PAGES)
