# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Remedies of errors work when they are followed literally."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.run.remedies import (
    calls,
    commands,
    empties,
    files,
    jitted,
    kinds_of_numbers,
    loops,
    methods,
    objects,
    plugin,
    refused_sizes,
    settings,
    shapes,
    specifications,
    tables,
    torch_programs,
    traced,
    traced_sizes,
    wanted_numbers,
)
from tests.run.remedies.case import Case


def cases_of(module: ModuleType) -> list[type[Case]]:
    """The cases that a module defines."""
    return [
        found
        for found in vars(module).values()
        if inspect.isclass(found) and issubclass(found, Case) and not inspect.isabstract(found)
    ]


MODULES = (
    specifications, shapes, empties, traced, traced_sizes, refused_sizes, wanted_numbers, calls, jitted, settings,
    kinds_of_numbers, methods, objects, files, commands, torch_programs, plugin, tables, loops,
)  # fmt: skip
CASES = [case for module in MODULES for case in cases_of(module)]


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_the_remedy_works(kind: type[Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind.needs:
        pytest.importorskip(kind.needs)
    monkeypatch.chdir(tmp_path)
    case = kind()
    with pytest.raises(kind.error) as caught:
        case.provoke()
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    found = re.search(case.remedy, text, re.DOTALL)
    assert found, text
    actual, expected = case.follow(found)
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-5)


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 40 and len({case.__name__ for case in CASES}) == len(CASES)
