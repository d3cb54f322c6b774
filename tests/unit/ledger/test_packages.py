# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX_SHLO_DISC_EXPLAIN warns of the user's functions; one line stands for those of installed packages."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from shlo_disc.driver.ledger.book import LEDGER
from shlo_disc.driver.ledger.identity import read_identity
from shlo_disc.pjrt import observation
from tests.pjrt.streams import artifact

SOURCE = """
def unrolled(x):
    for _ in range(x.shape[0]):
        x = x * 2
    return x
"""


def unrolled(x: Any) -> Any:
    for _ in range(x.shape[0]):
        x = x * 2
    return x


@pytest.fixture
def installed(tmp_path: Path) -> Any:
    """`unrolled` as a function of an installed package."""
    path = tmp_path / "site-packages" / "layers" / "loops.py"
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("layers_loops", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.unrolled


@pytest.fixture
def explaining(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(observation.EXPLAIN_VARIABLE, "1")
    monkeypatch.setattr(observation, "observe_programs", lambda on: None)
    monkeypatch.setattr(observation, "_has_told_of_packages", False)
    LEDGER.clear()
    yield
    LEDGER.clear()


def compile_sizes(function: Any) -> None:
    """As the plugin does for programs that are compiled for their own sizes."""
    for size in (3, 4, 5):
        program = artifact(function, (np.ones(size, np.float32),))
        observation.before_compile(program, 0)
        observation.after_compile(program, "compiled", 1.0)


def test_the_package_of_a_function(installed: Any) -> None:
    found = {
        name: read_identity(artifact(function, (np.ones(3, np.float32),))).identity.package
        for name, function in {"own": unrolled, "installed": installed, "of jax": jnp.cumsum}.items()
    }
    assert found == {"own": "", "installed": "layers", "of jax": "jax"}


@pytest.mark.usefixtures("explaining")
def test_warnings(installed: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "shlo_disc.pjrt.generalize"):
        for function in (installed, jnp.cumsum, unrolled):
            compile_sizes(function)
    first, *others = [record.getMessage() for record in caplog.records]
    assert first.startswith("functions of installed packages, such as 'unrolled' of layers, are compiled for one shape")
    assert len(others) == 2 and all(f"({__file__}" in text for text in others)
