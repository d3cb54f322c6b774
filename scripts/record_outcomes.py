# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A pytest plugin that writes a line of JSON when a test begins and when it has ended: a death can then be placed."""

from __future__ import annotations

import json
import os
import zlib
from typing import Any

import pytest

_SKIP = "RECORD_SKIP"
_PART = "RECORD_PART"
_KIND = "RECORD_KIND"
_FILE = "RECORD_FILE"


def _write(row: dict[str, Any]) -> None:
    with open(os.environ[_FILE], "a") as file:
        file.write(json.dumps(row) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Tells JAX's tests what kind of device they are on: they know platforms by their names only."""
    kind = os.environ.get(_KIND)
    if kind:
        import jax
        import jax._src.test_util

        jax.config.update("jax_test_dut", kind)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests of other parts, and those that have run already, which a file names."""
    number, parts = map(int, os.environ.get(_PART, "0/1").split("/"))
    done: set[str] = set()
    if path := os.environ.get(_SKIP):
        with open(path) as file:
            done.update(file.read().splitlines())

    def is_wanted(item: pytest.Item) -> bool:
        return item.nodeid not in done and zlib.crc32(item.nodeid.encode()) % parts == number

    config.hook.pytest_deselected(items=[item for item in items if not is_wanted(item)])
    items[:] = [item for item in items if is_wanted(item)]


def pytest_runtest_logstart(nodeid: str, location: tuple[str, int | None, str]) -> None:
    """A test begins."""
    _write({"test": nodeid})


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A phase of a test has ended: its call, or whatever kept it from being called."""
    if report.when == "call" or report.outcome != "passed":
        reason = ""
        if report.outcome != "passed":
            text = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "longreprtext", "")
            reason = text.strip()[-1500:]
        _write({"test": report.nodeid, "outcome": report.outcome, "reason": reason, "seconds": report.duration})
