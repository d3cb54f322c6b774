# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Public functions of JAX under `jax.jit` on the plugin's platform, at many sizes: rows of `function_programs.py`."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import IO, Any

import pytest

from tests.pjrt.function_programs import ROWS
from tests.pjrt.plugin import ROOT

_MOST_ROWS = 50  # of a process, whose memory grows with XLA's programs
_SECONDS = 300.0  # of a row


class Worker:
    """A process that does rows one after the other, and another one after so many, or after one that ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._rows = 0

    def faults(self, row: str) -> list[str]:
        """The faults of a row."""
        if self._process is None or self._rows == _MOST_ROWS:
            self._start()
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise RuntimeError("the process has no pipes")
        self._rows += 1
        process.stdin.write(row + "\n")
        process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            is_ready = bool(selector.select(_SECONDS))
        line = process.stdout.readline() if is_ready else ""
        if not line:
            self.stop()
            self._errors.seek(0)
            reason = f"status {process.returncode}" if is_ready else f"no result after {_SECONDS:g} seconds"
            return [f"the process ended: {reason}: {self._errors.read()[-4000:]}"]
        found: dict[str, Any] = json.loads(line)
        assert found["row"] == row, found
        return list(found["faults"])

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process:
            self._process.kill()
            self._process.communicate()
        self._process, self._rows = None, 0

    def _start(self) -> None:
        self.stop()
        self._errors.seek(0)
        self._errors.truncate()
        environment = {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "shlo_disc,cpu", "JAX_SHLO_DISC_EXPLAIN": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.pjrt.function_programs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **environment},
        )


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.stop()


@pytest.mark.parametrize("row", ROWS)
def test_row(worker: Worker, row: str) -> None:
    """Results as XLA has them at each size, and few programs."""
    assert worker.faults(row) == []


def test_the_row_that_ends_a_process_is_told(worker: Worker) -> None:
    (told,) = worker.faults("no row of the table")
    assert "status 1" in told and "KeyError" in told
