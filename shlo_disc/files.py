# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of the system about files, with what to do. They keep their classes, such as FileNotFoundError."""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def reading(path: str | os.PathLike[str], wanted: str = "") -> Iterator[None]:
    """While this lasts, an OSError about a file to read says which file is near. wanted: what kind of file it is to be.

    Raises OSError, which names `path`.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None or os.fspath(error.filename) != os.fspath(path):
            raise
        advice = similar_file(path) or wanted
        text = f"{error.strerror}; {advice}" if advice else error.strerror
        raise type(error)(error.errno, text, os.fspath(path)) from None


def similar_file(path: str | os.PathLike[str]) -> str:
    """The question for a file of nearly that name, where there is no file of that name; or ""."""
    target = Path(path)
    if target.exists():
        return ""
    try:
        names = [entry.name for entry in os.scandir(target.parent) if entry.is_file()]
    except OSError:
        return f"there is no folder {str(target.parent)!r}"
    near = difflib.get_close_matches(target.name, names, 1)
    return f"did you mean {str(target.with_name(near[0]))!r}?" if near else ""


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raises OSError, which names `path`, where no file can be written there: the folder is missing, or it is one."""
    target = Path(path)
    if target.is_dir():
        text = "it is a folder: name a file in it"
        raise IsADirectoryError(errno.EISDIR, text, str(target))
    if not target.parent.exists():
        text = f"there is no folder {str(target.parent)!r}: create it first"
        raise FileNotFoundError(errno.ENOENT, text, str(target))


__all__ = ["check_folder", "reading", "similar_file"]
