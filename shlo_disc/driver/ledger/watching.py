# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A watched process writes its ledger into a folder, from which the process that started it reads."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

from .document import SCHEMA, FunctionRow, ProgramRow, document

WATCH_VARIABLE = "SHLO_DISC_WATCH"
"""Names the folder, for the processes that `python -m shlo_disc watch` starts."""

_SECONDS = 1.0  # between two times that the ledger is written


class Writer:
    """Writes the ledger of this process: at most a second after it changes, and at the end by `flush`."""

    def __init__(self, folder: str):
        self._timer: threading.Timer | None = None
        self._path = Path(folder) / f"{os.getpid()}.json"
        self._lock = threading.Lock()
        self._next = 0.0

    def changed(self) -> None:
        """Write the ledger, later if that was done just before: a signal may end the process without `flush`."""
        if time.monotonic() >= self._next:
            self.flush()
        elif self._timer is None or not self._timer.is_alive():
            self._timer = threading.Timer(_SECONDS, self.flush)
            self._timer.daemon = True
            self._timer.start()

    def flush(self) -> None:
        """Write the ledger. A folder that has gone is no error: whoever watched has ended."""
        from .book import LEDGER

        with self._lock:
            self._next = time.monotonic() + _SECONDS
            new = self._path.with_suffix(f".{os.getpid()}.new")
            try:
                new.write_text(json.dumps(document(LEDGER.rows())))
                new.replace(self._path)
            except OSError:
                return


def read_folder(folder: Path) -> list[FunctionRow]:
    """The functions of all processes that wrote into a folder, those with most seconds in compiles first."""
    rows: dict[tuple[str, str], FunctionRow] = {}
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text())
        if found.get("schema") != SCHEMA:
            continue
        for row in map(FunctionRow.from_json, found["functions"]):
            key = row.name, row.place
            rows[key] = _together(rows[key], row) if key in rows else row
    return sorted(rows.values(), key=lambda row: (-row.seconds, row.name, row.place))


def _together(one: FunctionRow, other: FunctionRow) -> FunctionRow:
    """The same function in two processes."""
    programs: tuple[ProgramRow, ...] = (*one.programs, *other.programs)
    return FunctionRow(
        one.name, one.place, one.is_users, one.calls + other.calls, max(one.forms, other.forms),
        max(one.shape_count, other.shape_count), tuple(dict.fromkeys((*one.shapes, *other.shapes))), programs,
        one.why or other.why,
    )  # fmt: skip


__all__ = ["WATCH_VARIABLE", "Writer", "read_folder"]
