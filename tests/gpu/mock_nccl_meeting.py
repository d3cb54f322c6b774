# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A place where mocks of NCCL in several processes meet: a folder, whose name is the id that ranks connect by."""

from __future__ import annotations

import ctypes
import os
import pickle
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ID_BYTES = 128


def make_id(out: int) -> None:
    """Write the id of a new meeting to an address."""
    name = tempfile.mkdtemp(prefix="nccl-").encode()
    ctypes.memmove(out, name.ljust(ID_BYTES, b"\0"), ID_BYTES)


def name_of(words: tuple[int, ...]) -> str:
    """The folder of an id that is passed by value, as the words of the caller's stack."""
    return b"".join(word.to_bytes(8, "little", signed=True) for word in words).rstrip(b"\0").decode()


@dataclass
class Meeting:
    """The words of `size` ranks on subjects, as a file each."""

    folder: Path
    size: int

    def _file(self, subject: str, rank: int) -> Path:
        return self.folder / f"{subject}.{rank}"

    def say(self, subject: str, rank: int, value: Any = None) -> None:
        """Tell the others, once."""
        draft = self._file("draft", rank)
        draft.write_bytes(pickle.dumps(value))
        assert not self._file(subject, rank).exists()
        os.replace(draft, self._file(subject, rank))

    def have_all_said(self, subject: str) -> bool:
        """Tells whether every rank has said something of it."""
        return all(self._file(subject, rank).exists() for rank in range(self.size))

    def all(self, subject: str) -> list[Any]:
        """The words of all ranks."""
        files = [self._file(subject, rank) for rank in range(self.size)]
        return [pickle.loads(file.read_bytes()) for file in files]  # noqa: S301 - written by this test
