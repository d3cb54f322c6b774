# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Signed entries of a store that may be slow, down or altered: none of that fails a compile."""

from __future__ import annotations

import atexit
import contextlib
import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from shlo_disc.errors import OptionError

from .signatures import EXTRA_BYTES, KEY_FILE_VARIABLE, checked, signed
from .stores import Store, visible

_LOGGER = logging.getLogger("shlo_disc")
_T = TypeVar("_T")

SECONDS_TO_READ = 10.0
SECONDS_TO_WRITE = 60.0
SECONDS_TO_FLUSH = 10.0
SECONDS_LEFT_ALONE = 60.0
"""Time without requests after one that failed."""
MOST_PENDING = 64
"""Entries that wait to be written; further ones are dropped."""

_MARKER = "key.check"
"""Name of the entry that says by its signature which key a store's entries are signed with."""


class StoreClient:
    """Entries of `store`, signed with `key`. Reads have a time limit, and a thread writes.

    Counts `hits`, `misses`, `refused`, `written` and `failed` in `counts`.
    """

    def __init__(self, store: Store, key: bytes, url: str):
        self.counts: Counter[str] = Counter()
        self._store, self._key, self._url = store, key, visible(url)
        self._lock = threading.Lock()
        self._pending: queue.Queue[tuple[str, bytes]] = queue.Queue(MOST_PENDING)
        self._writer: threading.Thread | None = None
        self._left_alone_until = 0.0
        self._has_warned = self._has_marked = False
        atexit.register(self.flush)

    def load(self, name: str, limit: int) -> bytes | None:
        """The data of an entry; None without one of at most `limit` bytes that was signed with the key as this one."""
        if self._is_left_alone():
            return None
        try:
            entry = _within(SECONDS_TO_READ, lambda: self._store.get(name, limit + EXTRA_BYTES + 1))
        except Exception as error:  # of any implementation
            self._fail(error)
            return None
        if entry is None:
            self._count("misses")
            return None
        data = checked(self._key, name, entry) if len(entry) <= limit + EXTRA_BYTES else None
        if data is None:
            self._refuse(name)
            return None
        self._count("hits")
        return data

    def store(self, name: str, data: bytes) -> None:
        """Write an entry in the background. Those that the store cannot take are dropped."""
        try:
            self._pending.put_nowait((name, data))
        except queue.Full:
            self._count("failed")
            return
        with self._lock:
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_pending, name="cache store", daemon=True)
                self._writer.start()

    def flush(self, seconds: float = SECONDS_TO_FLUSH) -> bool:
        """Wait until entries are written, for so many seconds at most; tells whether they are."""
        with self._pending.all_tasks_done:
            return self._pending.all_tasks_done.wait_for(lambda: not self._pending.unfinished_tasks, seconds)

    def examine(self) -> str:
        """Try the store and the key, and say what works.

        Raises OptionError where the store cannot be reached or its entries have another key.
        """
        try:
            entry = _within(SECONDS_TO_READ, lambda: self._store.get(_MARKER, EXTRA_BYTES + 1))
        except Exception as error:
            raise OptionError(f"the cache store {self._url} cannot be reached: {_brief(error)}") from None
        if entry is not None and checked(self._key, _MARKER, entry) is None:
            raise OptionError(
                f"the cache store {self._url} has entries of another key than {KEY_FILE_VARIABLE} names, or was altered"
            )
        known = "entries of this key" if entry is not None else "no entries"
        try:
            _within(SECONDS_TO_READ, self._mark)
        except Exception as error:
            return f"{self._url}: {known}; it can only be read ({_brief(error)})"
        return f"{self._url}: {known}; it can be read and written"

    def _mark(self) -> None:
        self._store.put(_MARKER, signed(self._key, _MARKER, b""))

    def _write_pending(self) -> None:
        while True:
            name, data = self._pending.get()
            with contextlib.suppress(Exception):
                self._write(name, data)
            del data
            self._pending.task_done()

    def _write(self, name: str, data: bytes) -> None:
        if self._is_left_alone():
            self._count("failed")
            return
        try:
            _within(SECONDS_TO_WRITE, lambda: self._put(name, data))
        except Exception as error:
            self._fail(error)
            return
        self._count("written")

    def _put(self, name: str, data: bytes) -> None:
        if not self._has_marked and self._store.get(_MARKER, 1) is None:
            self._mark()
        self._has_marked = True
        self._store.put(name, signed(self._key, name, data))

    def _is_left_alone(self) -> bool:
        return time.monotonic() < self._left_alone_until

    def _fail(self, error: Exception) -> None:
        """Leave the store alone for a while; the first time with a warning."""
        self._count("failed")
        self._left_alone_until = time.monotonic() + SECONDS_LEFT_ALONE
        level = logging.DEBUG if self._has_warned else logging.WARNING
        self._has_warned = True
        text = "the cache store %s cannot be used, and is tried again every %d seconds: %s"
        _LOGGER.log(level, text, self._url, SECONDS_LEFT_ALONE, _brief(error))

    def _refuse(self, name: str) -> None:
        self._count("refused")
        text = "the cache store %s: entry %s is refused: it was altered, or signed with another key or as another entry"
        _LOGGER.warning(text, self._url, name)

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1


def _within(seconds: float, work: Callable[[], _T]) -> _T:
    """The result of `work`, which a thread does. Raises what it raises, and TimeoutError where that takes longer."""
    answer: Future[_T] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=run, name="cache store request", daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        if answer.done():
            raise
        raise TimeoutError(f"no answer within {seconds:g} seconds") from None


def _brief(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


__all__ = ["StoreClient"]
