# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contents of arrays: whoever writes one byte is noticed, by watches of writes and by fingerprints."""

from __future__ import annotations

import ctypes
import mmap
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import shlo_disc

PAGE = mmap.PAGESIZE
SIZES = (1, PAGE - 1, PAGE, 4 * PAGE - 1, 4 * PAGE, 5 * PAGE, 5 * PAGE + 1, 64 * PAGE - 17, 3 << 20)


@pytest.fixture(scope="module")
def program() -> Any:
    return shlo_disc.compile(lambda x: x + 1, args=(("n", "float32"),)).loaded.native


@pytest.fixture(params=["1", "0"], ids=["watched", "read"])
def watch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    monkeypatch.setenv("SHLO_DISC_WATCH_WRITES", request.param)
    yield True


def bytes_at(size: int, offset: int = 0) -> np.ndarray:
    """An array of `size` bytes of 1 that begins so many bytes behind a page's begin."""
    raw = np.ones(size + 2 * PAGE, np.uint8)
    begin = -raw.ctypes.data % PAGE + offset
    return raw[begin : begin + size]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("offset", [0, 1, PAGE - 1])
def test_a_byte_anywhere(program: Any, watch: bool, size: int, offset: int) -> None:
    array = bytes_at(size, offset)
    for place in sorted({0, size // 2, size - 1, *(p for p in (PAGE - 1 - offset, PAGE - offset) if 0 <= p < size)}):
        contents = program.contents_of([array], watch=watch)
        assert contents.hold()
        assert contents.hold()
        array[place] += 1
        assert not contents.hold()
        assert not contents.hold()


@pytest.mark.parametrize("offset", [0, 1, PAGE - 1])
def test_bytes_beside_the_array(program: Any, watch: bool, offset: int) -> None:
    raw = bytes_at(64 * PAGE)
    array = raw[PAGE + offset : -PAGE - 3]
    contents = program.contents_of([array], watch=watch)
    raw[PAGE + offset - 1] += 1
    raw[-PAGE - 3] += 1
    assert contents.hold()


def _by_store(array: np.ndarray) -> None:
    array[PAGE + 7] = 9


def _by_memmove(array: np.ndarray) -> None:
    ctypes.memmove(array.ctypes.data + 3 * PAGE, b"abc", 3)


def _by_read(array: np.ndarray) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"xyz")
        file.seek(0)
        assert os.readv(file.fileno(), [memoryview(array)[2 * PAGE : 2 * PAGE + 3]]) == 3


def _by_direct_read(array: np.ndarray) -> None:
    """A file read past the cache, by the device where it can."""
    with tempfile.NamedTemporaryFile(dir=".") as file:
        file.write(bytes(PAGE))
        file.flush()
        try:
            handle = os.open(file.name, os.O_RDONLY | os.O_DIRECT)
        except OSError:
            pytest.skip("the file system has no direct reads")
        begin = -array.ctypes.data % PAGE + PAGE
        os.readv(handle, [memoryview(array)[begin : begin + PAGE]])
        os.close(handle)


def _by_another_process(array: np.ndarray) -> None:
    """process_vm_writev from a child, which has the parent's pages to write to."""
    code = (
        "import ctypes, sys; libc = ctypes.CDLL(None, use_errno=True)\n"
        "class V(ctypes.Structure): _fields_ = [('p', ctypes.c_void_p), ('n', ctypes.c_size_t)]\n"
        "text = ctypes.create_string_buffer(b'q')\n"
        "mine, theirs = V(ctypes.addressof(text), 1), V(int(sys.argv[2]), 1)\n"
        "n = libc.process_vm_writev(int(sys.argv[1]), ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)\n"
        "sys.exit(n != 1)"
    )
    address = str(array.ctypes.data + 4 * PAGE)
    if subprocess.run([sys.executable, "-c", code, str(os.getpid()), address], check=False).returncode:
        pytest.skip("processes may not write others")


def _by_madvise(array: np.ndarray) -> None:
    begin = -array.ctypes.data % PAGE + array.ctypes.data
    assert ctypes.CDLL(None).madvise(ctypes.c_void_p(begin + PAGE), ctypes.c_size_t(2 * PAGE), mmap.MADV_DONTNEED) == 0


def _by_another_mapping(array: np.ndarray) -> None:
    """Other pages at the same address."""
    begin = -array.ctypes.data % PAGE + array.ctypes.data + PAGE
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10  # MAP_FIXED
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    assert libc.mmap(ctypes.c_void_p(begin), ctypes.c_size_t(PAGE), protection, flags, -1, ctypes.c_long(0)) == begin


def kernel_notes_writes() -> bool:
    """True where this kernel lets this process watch its own memory, asked apart from the runtime."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.syscall(323, 1)  # userfaultfd, of this process's own faults; x86-64
    if handle < 0:
        return False
    try:
        api = (ctypes.c_uint64 * 3)(0xAA, 1 | 1 << 13 | 1 << 15, 0)
        return libc.ioctl(handle, ctypes.c_ulong(0xC018AA3F), api) == 0
    finally:
        os.close(handle)


def test_what_is_watched_and_what_is_read(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {size: bytes_at(size) for size in SIZES}
    for size, array in arrays.items():
        watched = size >= 4 * PAGE and kernel_notes_writes()
        assert program.contents_of([array], watch=True).are_read != watched
        assert program.contents_of([array], watch=False).are_read
    with tempfile.TemporaryFile() as file:
        file.write(b"a" * 16 * PAGE)
        file.flush()
        mapped = np.frombuffer(mmap.mmap(file.fileno(), 16 * PAGE, access=mmap.ACCESS_READ), np.uint8)
        assert program.contents_of([mapped], watch=True).are_read
    assert program.contents_of([np.frombuffer(mmap.mmap(-1, 16 * PAGE), np.uint8)], watch=True).are_read
    monkeypatch.setenv("SHLO_DISC_WATCH_WRITES", "0")
    assert program.contents_of([arrays[3 << 20]], watch=True).are_read


WRITERS = [_by_store, _by_memmove, _by_read, _by_direct_read, _by_another_process, _by_madvise, _by_another_mapping]


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__[4:])
def test_every_writer_is_noticed(program: Any, watch: bool, write: Callable[[np.ndarray], None]) -> None:
    array = bytes_at(64 * PAGE, 5)
    contents = program.contents_of([array], watch=watch)
    assert contents.hold()
    write(array)
    assert not contents.hold()


TABLE = 512 * PAGE
"""The memory whose pages one table of pages has."""
GIVEN_BACK = {
    "all": (0, 6 * TABLE), "one table": (2 * TABLE, 3 * TABLE), "several and parts": (TABLE - PAGE, 4 * TABLE - PAGE),
    "the end of a table": (2 * TABLE - PAGE, 2 * TABLE), "the last table": (5 * TABLE, 6 * TABLE),
}  # fmt: skip


@pytest.mark.parametrize("huge", [False, True])
@pytest.mark.parametrize("part", GIVEN_BACK)
@pytest.mark.parametrize("shift", [0, 3 * PAGE + 64])
def test_pages_given_back(program: Any, watch: bool, huge: bool, part: str, shift: int) -> None:
    """Page tables go too, and the scan finds a hole. shift: of the array from where a table begins."""
    memory = mmap.mmap(-1, 8 * TABLE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
    whole = np.frombuffer(memory, np.uint8)
    first = -whole.ctypes.data % TABLE
    array = whole[first + shift : first + 6 * TABLE + shift]
    array[:] = 1
    contents = program.contents_of([array], watch=watch)
    assert contents.hold() and contents.hold()
    begin, end = GIVEN_BACK[part]
    memory.madvise(mmap.MADV_DONTNEED, first + begin, end - begin)
    assert not contents.hold()


def test_pages_that_were_never_written(program: Any, watch: bool) -> None:
    array = np.zeros(8 << 20, np.uint8)
    contents = program.contents_of([array], watch=watch)
    assert contents.hold()
    array[5 << 20] = 1
    assert not contents.hold()


def _write_shared(name: str) -> None:
    from multiprocessing.shared_memory import SharedMemory

    memory = SharedMemory(name)
    memory.buf[9 * PAGE] = 3
    memory.close()


def test_memory_shared_with_another_process(program: Any, watch: bool) -> None:
    from multiprocessing.shared_memory import SharedMemory

    memory = SharedMemory(create=True, size=32 * PAGE)
    try:
        array = np.frombuffer(memory.buf, np.uint8)
        contents = program.contents_of([array], watch=watch)
        assert contents.hold()
        child = multiprocessing.get_context("spawn").Process(target=_write_shared, args=(memory.name,))
        child.start()
        child.join()
        assert child.exitcode == 0
        assert not contents.hold()
        del contents, array
    finally:
        memory.close()
        memory.unlink()


@pytest.mark.parametrize("access", [mmap.ACCESS_WRITE, mmap.ACCESS_COPY, mmap.ACCESS_READ])
def test_memory_of_a_file(program: Any, watch: bool, access: int) -> None:
    """Written in the file, where the mapping shows it."""
    with tempfile.TemporaryFile() as file:
        file.write(b"a" * 16 * PAGE)
        file.flush()
        memory = mmap.mmap(file.fileno(), 16 * PAGE, access=access)
        array = np.frombuffer(memory, np.uint8)
        contents = program.contents_of([array], watch=watch)
        assert contents.hold()
        os.pwrite(file.fileno(), b"b", 3 * PAGE)
        assert contents.hold() == (array[3 * PAGE] == ord("a"))
        del contents, array


def test_two_of_one_array_and_of_arrays_that_overlap(program: Any, watch: bool) -> None:
    array = bytes_at(64 * PAGE, 5)
    first = program.contents_of([array], watch=watch)
    second = program.contents_of([array], watch=watch)
    assert first.hold()
    assert second.hold()
    array[PAGE * 9] += 1
    third = program.contents_of([array], watch=watch)
    assert not first.hold()
    assert not second.hold()
    assert third.hold()
    del first, second
    assert third.hold()
    part = program.contents_of([array[8 * PAGE : 20 * PAGE]], watch=watch)
    assert part.hold()
    array[PAGE * 9] += 1
    assert not part.hold()
    assert not third.hold()
    del third
    again = program.contents_of([array[8 * PAGE : 20 * PAGE]], watch=watch)
    del part
    assert again.hold()
    array[PAGE * 9] += 1
    assert not again.hold()


def test_the_child_of_a_fork(program: Any, watch: bool) -> None:
    """It sees its own writes, and the parent does not see them."""
    array = bytes_at(64 * PAGE)
    contents = program.contents_of([array], watch=watch)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            array[9 * PAGE] += 1
            changed = not contents.hold()
            own = program.contents_of([array], watch=watch)
            held = own.hold()
            array[9 * PAGE] += 1
            status = 0 if changed and held and not own.hold() else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert contents.hold()
    array[9 * PAGE] += 1
    assert not contents.hold()


def test_an_unmapped_array_leaves_no_watch(program: Any) -> None:
    """Its pages are somebody else's later."""
    for size in (64 * PAGE, 3 << 20):
        for _ in range(50):
            array = np.ones(size, np.uint8)
            contents = program.contents_of([array], watch=True)
            assert contents.hold()
            array = np.full(size, 2, np.uint8)
            other = program.contents_of([array], watch=True)
            assert other.hold()
            array[size // 2] = 5
            assert not other.hold()
            del contents, other
