# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The object loader: relocations, protection, refusals, and damage that must never crash it."""

from __future__ import annotations

import ctypes
import math
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shlo_disc.errors import ArtifactError
from shlo_disc.runtime import Client
from shlo_disc.runtime._native import ObjectCode

from .programs import ADD_ONE_IR, add_one, compile_ir

MANY_RELOCATIONS_IR = """
@table = internal constant [4 x i64] [i64 11, i64 22, i64 33, i64 44]
@pointers = internal constant [2 x ptr] [ptr @double_it, ptr @triple_it]
@external = constant i32 77
declare double @exp(double)
declare float @tanhf(float)
declare ptr @memset(ptr, i32, i64)

define i64 @double_it(i64 %x) noinline { %y = mul i64 %x, 2
  ret i64 %y }
define i64 @triple_it(i64 %x) noinline { %y = mul i64 %x, 3
  ret i64 %y }
define i64 @look_up(i64 %i) {
  %p = getelementptr [4 x i64], ptr @table, i64 0, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}
define i64 @indirect(i64 %i, i64 %x) {
  %p = getelementptr [2 x ptr], ptr @pointers, i64 0, i64 %i
  %f = load ptr, ptr %p
  %v = call i64 %f(i64 %x)
  ret i64 %v
}
define i32 @through_the_table_of_addresses() { %v = load i32, ptr @external
  ret i32 %v }
define ptr @address_of_library_function() { ret ptr @exp }
define double @library(double %x) { %e = call double @exp(double %x)
  ret double %e }
define float @library_f32(float %x) { %e = call float @tanhf(float %x)
  ret float %e }
define i64 @switch(i64 %x) {
  switch i64 %x, label %d [ i64 0, label %a
    i64 1, label %b
    i64 2, label %c
    i64 3, label %e
    i64 4, label %f ]
a: br label %d
b: br label %d
c: br label %d
e: br label %d
f: br label %d
d:
  %r = phi i64 [ -1, %0 ], [ 9, %a ], [ 4, %b ], [ 100, %c ], [ 3, %e ], [ 77, %f ]
  ret i64 %r
}
define void @clear(ptr %p, i64 %n) { %r = call ptr @memset(ptr %p, i32 0, i64 %n)
  ret void }
"""


@pytest.mark.parametrize("optimize", [False, True])
def test_relocations(optimize: bool) -> None:
    code = ObjectCode(compile_ir(MANY_RELOCATIONS_IR, optimize))

    def function(name: str, result: type, *arguments: type) -> ctypes._CFuncPtr:  # type: ignore[name-defined]
        return ctypes.CFUNCTYPE(result, *arguments)(code.function(name))

    i64, f64 = ctypes.c_int64, ctypes.c_double
    assert [function("look_up", i64, i64)(i) for i in range(4)] == [11, 22, 33, 44]
    assert [function("indirect", i64, i64, i64)(i, 7) for i in range(2)] == [14, 21]
    assert function("through_the_table_of_addresses", ctypes.c_int32)() == 77
    assert function("library", f64, f64)(1.5) == math.exp(1.5)
    assert abs(function("library_f32", ctypes.c_float, ctypes.c_float)(0.5) - math.tanh(0.5)) < 1e-6
    assert [function("switch", i64, i64)(i) for i in range(-1, 6)] == [-1, 9, 4, 100, 3, 77, -1]
    address = function("address_of_library_function", ctypes.c_void_p)()
    assert ctypes.CFUNCTYPE(f64, f64)(address)(2.0) == math.exp(2.0)
    data = ctypes.create_string_buffer(b"abcdefgh", 8)
    function("clear", None, ctypes.c_void_p, i64)(ctypes.addressof(data), 5)
    assert data.raw == b"\0\0\0\0\0fgh"


def permissions(address: int) -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        match = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line)
        assert match
        if int(match[1], 16) <= address < int(match[2], 16):
            return match[3]
    return ""


def test_nothing_is_writable_and_executable_and_the_mapping_goes_away() -> None:
    code = ObjectCode(compile_ir(MANY_RELOCATIONS_IR))
    address = code.function("look_up")
    assert permissions(address) == "r-xp"
    pages = {permissions(address - address % 4096 + offset) for offset in range(0, code.mapped_bytes, 4096)}
    assert pages == {"r-xp", "r--p"}
    del code
    assert permissions(address) != "r-xp"


REFUSED = {
    "puts": "declare i32 @puts(ptr)\ndefine i32 @f(ptr %x) { %r = call i32 @puts(ptr %x)\n ret i32 %r }",
    "some_variable": "@some_variable = external global i32\n"
    "define i32 @f() { %v = load i32, ptr @some_variable\n ret i32 %v }",
    "writable": "@g = global i32 5\ndefine i32 @f() { %v = load i32, ptr @g\n ret i32 %v }",
    "writable data in .bss": "@g = internal global [9 x i32] zeroinitializer\n"
    "define void @f(i64 %i) { %p = getelementptr i32, ptr @g, i64 %i\n store i32 1, ptr %p\n ret void }",
    "thread-local|relocation type": "@g = thread_local global i32 5\ndefine ptr @f() { ret ptr @g }",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(ArtifactError, match=text):
        ObjectCode(compile_ir(REFUSED[text]))


def test_not_an_object() -> None:
    good = compile_ir(ADD_ONE_IR)
    for data in (b"", b"\x7fELF", b"text" * 100, good[:63], good[:18] + b"\xb7\0" + good[20:]):
        with pytest.raises(ArtifactError):
            ObjectCode(data)
    with pytest.raises(ArtifactError, match="no function 'missing'"):
        ObjectCode(good).function("missing")


FUZZ = """
import random, sys
from shlo_disc.errors import ArtifactError
from shlo_disc.runtime._native import ObjectCode
data = open(sys.argv[1], "rb").read()
rng = random.Random(int(sys.argv[2]))
accepted = refused = 0
def attempt(mutant):
    global accepted, refused
    try:
        ObjectCode(bytes(mutant)).function_names
        accepted += 1
    except (ArtifactError, MemoryError, UnicodeDecodeError):
        refused += 1
for length in range(len(data)):
    attempt(data[:length])
for _ in range(int(sys.argv[3])):
    mutant = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        position = rng.randrange(len(data))
        if rng.random() < 0.5:
            mutant[position] ^= 1 << rng.randrange(8)
        else:
            mutant[position] = rng.choice((0, 1, 127, 128, 255))
    attempt(mutant)
# The tables at the end and the header at the start are where damage can mislead the loader.
for _ in range(int(sys.argv[3])):
    mutant = bytearray(data)
    start = rng.choice((0, len(data) - 64 * rng.randrange(1, 12)))
    for _ in range(rng.choice((1, 2, 8))):
        mutant[min(start + rng.randrange(64), len(data) - 1)] = rng.randrange(256)
    attempt(mutant)
print(accepted, refused)
"""


@pytest.mark.parametrize("source", [ADD_ONE_IR, MANY_RELOCATIONS_IR])
def test_damaged_objects_never_crash(tmp_path: Path, source: str) -> None:
    path = tmp_path / "object.o"
    path.write_bytes(compile_ir(source))
    seed = random.Random(source).randrange(1000)
    done = subprocess.run(
        [sys.executable, "-c", FUZZ, str(path), str(seed), "3000"],
        capture_output=True, text=True, timeout=300, cwd=os.getcwd(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert sum(map(int, done.stdout.split())) == 6000 + path.stat().st_size


def test_perf_map_only_when_asked() -> None:
    path = Path(f"/tmp/perf-{os.getpid()}.map")
    client = Client(threads=1)
    path.unlink(missing_ok=True)
    client.load(add_one())
    assert not path.exists()
    client.load(add_one(), perf_map=True)
    try:
        assert re.search(r"^[0-9a-f]+ [0-9a-f]+ disc_run$", path.read_text(), re.MULTILINE)
        assert path.stat().st_mode & 0o777 == 0o600
    finally:
        path.unlink()
