# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects that are joined load, call and read each other as if they had been one."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.codegen import CpuTarget, compile_to_object
from shlo_disc.lowering.codegen.objects import join_objects
from shlo_disc.runtime import _native
from shlo_disc.runtime.elf_symbols import defined_symbols, functions, undefined_symbols

CALLER = """
@table = internal constant [3 x ptr] [ptr @twice, ptr @third, ptr @local]
@wide = internal constant <4 x i64> <i64 1, i64 2, i64 3, i64 4>
declare i64 @twice(i64)
declare i64 @third(i64)
define i64 @local(i64 %x) noinline {
  %v = load volatile <4 x i64>, ptr @wide
  %e = extractelement <4 x i64> %v, i32 3
  %y = add i64 %x, %e
  ret i64 %y
}
define i64 @main(i64 %x, i64 %which) {
  %p = getelementptr [3 x ptr], ptr @table, i64 0, i64 %which
  %f = load ptr, ptr %p
  %y = call i64 %f(i64 %x)
  %z = call i64 @twice(i64 %y)
  ret i64 %z
}
"""
# A jump table, a constant of a register, and a name that the caller has, too.
CALLEES = """
@numbers = internal constant <4 x i64> <i64 10, i64 20, i64 30, i64 40>
define i64 @local(i64 %x) noinline {
  %y = mul i64 %x, 5
  ret i64 %y
}
define i64 @twice(i64 %x) {
  %y = add i64 %x, %x
  ret i64 %y
}
define i64 @third(i64 %x) {
  %v = load volatile <4 x i64>, ptr @numbers
  switch i64 %x, label %else [i64 0, label %a  i64 1, label %b  i64 2, label %c  i64 3, label %d  i64 4, label %e]
a:
  %a0 = extractelement <4 x i64> %v, i32 0
  ret i64 %a0
b:
  %b0 = extractelement <4 x i64> %v, i32 1
  ret i64 %b0
c:
  %c0 = call i64 @local(i64 %x)
  ret i64 %c0
d:
  ret i64 77
e:
  ret i64 -5
else:
  %y = sdiv i64 %x, 3
  ret i64 %y
}
"""


def objects() -> list[bytes]:
    target = CpuTarget.host()
    caller = compile_to_object(CALLER, target, 1, {"main"}, external=("twice", "third"))
    return [caller, compile_to_object(CALLEES, target, 1, {"twice", "third"})]


def expected(x: int, which: int) -> int:
    third = {0: 10, 1: 20, 2: 10, 3: 77, 4: -5}.get(x, int(x / 3))
    return 2 * (2 * x, third, x + 4)[which]


@pytest.mark.parametrize("backwards", (False, True))
def test_they_call_and_read_each_other(backwards: bool) -> None:
    parts = objects()
    joined = join_objects(parts[::-1] if backwards else parts, {"main"})
    assert not undefined_symbols(joined) and defined_symbols(joined) == {"main"}
    assert {"main", "local", "twice", "third"} <= functions(joined).keys()
    code = _native.ObjectCode(joined)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(code.function("main"))
    for which in range(3):
        for x in (-7, 0, 1, 2, 3, 4, 5, 100):
            assert call(x, which) == expected(x, which), (x, which)


def test_joining_is_the_same_each_time_and_in_steps() -> None:
    first, second = objects()
    once = join_objects([first, second], {"main"})
    assert once == join_objects(objects(), {"main"})
    again = join_objects([join_objects([first]), second], {"main"})
    assert _native.ObjectCode(again).function_names == _native.ObjectCode(once).function_names


def test_a_linker_takes_what_was_joined(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "joined.o").write_bytes(join_objects(objects(), {"main"}))
    subprocess.run([compiler, "-shared", "-o", "joined.so", "joined.o", "-Wl,-z,text"], cwd=tmp_path, check=True)
    main = ctypes.CDLL(str(tmp_path / "joined.so")).main
    main.restype, main.argtypes = ctypes.c_int64, [ctypes.c_int64, ctypes.c_int64]
    assert [main(x, w) for x in (2, 3, 9) for w in range(3)] == [expected(x, w) for x in (2, 3, 9) for w in range(3)]


def test_what_cannot_be_joined() -> None:
    with pytest.raises(CompilerError, match="two objects define twice"):
        join_objects([objects()[1]] * 2, {"twice"})
    with pytest.raises(CompilerError, match="is not ELF64"):
        join_objects([b"\x7fELF" + bytes(100)])
    with pytest.raises(CompilerError, match="would call|calls third"):
        compile_to_object(CALLER, CpuTarget.host(), 1, {"main"}, external=("twice",))
