# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules that are cut into parts: what stays together, and programs that are the same in parts and whole."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import llvmlite.binding as llvm
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import CompilerError
from shlo_disc.lowering.codegen import CpuTarget, routines, unlocked
from shlo_disc.lowering.codegen.native import compile_to_object, initialise
from shlo_disc.lowering.codegen.parts import MOST_PARTS, Part, parts_of
from shlo_disc.lowering.codegen.unlocked import at_a_time
from shlo_disc.runtime.elf_symbols import undefined_symbols

HOSTS = ("disc_plan", "disc_run")

MODULE = """\
; ModuleID = 'm'
source_filename = "m"

@table = internal constant [2 x i64] [i64 3, i64 4]
@pointers = internal constant [1 x ptr] [ptr @table]
@count = internal global i64 0
@digest = constant [2 x i8] c"ab"

declare i64 @llvm.smax.i64(i64, i64) #1
declare void @outside(ptr)

define internal i64 @shared(i64 %0) #0 {
  %2 = call i64 @llvm.smax.i64(i64 %0, i64 1)
  ret i64 %2
}

define void @a(ptr %0) #0 {
  store i64 1, ptr %0
  ret void
}

define void @a_entry(ptr %0) memory(argmem: readwrite) {
  call void @a(ptr %0)
  ret void
}

define void @b_entry(ptr captures(none) %0) #2 {
  %2 = call i64 @shared(i64 5)
  %3 = load ptr, ptr @pointers
  %4 = load i64, ptr %3
  %5 = add i64 %2, %4
  store i64 %5, ptr %0
  ret void
}

define void @c_entry(ptr %0) {
  %2 = call i64 @shared(i64 6)
  store i64 %2, ptr %0
  ret void
}

define void @counts_entry(ptr %0) {
  %2 = load i64, ptr @count
  store i64 %2, ptr %0
  ret void
}

define void @called(ptr %0) {
  call void @outside(ptr %0)
  ret void
}

define i64 @disc_plan(ptr %0) {
  ret i64 0
}

define void @disc_run(ptr %0, ptr %1) {
  call void %0(ptr @a_entry, ptr %1)
  call void %0(ptr @b_entry, ptr %1)
  call void %0(ptr @c_entry, ptr %1)
  call void %0(ptr @counts_entry, ptr %1)
  call void @called(ptr %1)
  ret void
}

attributes #0 = { alwaysinline }
attributes #1 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { noinline }
"""


def cut(text: str = MODULE, size: int = 1) -> list[Part]:
    return parts_of(text, ["disc_run", "disc_plan", "digest"], HOSTS, size)


def definitions(part: Part) -> set[str]:
    return set(re.findall(r"^define [^\n]*?@(\w+)\(", part.text, re.MULTILINE))


def test_functions_that_stay_together() -> None:
    parts = cut()
    assert definitions(parts[0]) == {"disc_plan", "disc_run", "called", "counts_entry"}
    rest = sorted(map(sorted, map(definitions, parts[1:])))
    assert rest == [["a", "a_entry"], ["b_entry", "c_entry", "shared"]]


def test_names_between_parts() -> None:
    first, *others = cut()
    assert set(first.exported) == {"disc_plan", "disc_run", "digest"}
    assert set(first.external) == {"a_entry", "b_entry", "c_entry"}
    assert {name for part in others for name in part.exported} == {"a_entry", "b_entry", "c_entry"}
    assert not any(part.external for part in others)
    assert "@digest = constant" in first.text
    assert "@count = internal global" in first.text
    assert "@table" not in first.text
    for part in others:
        assert "@count" not in part.text
        assert ("@table = internal constant" in part.text) == ("b_entry" in definitions(part))


def test_every_part_is_a_module() -> None:
    initialise()
    for size in (1, 300, 600, 5000):
        parts = cut(size=size)
        for part in parts:
            llvm.parse_assembly(part.text, llvm.create_context()).verify()
        defined = [name for part in parts for name in definitions(part)]
        assert sorted(defined) == sorted(definitions(Part(MODULE, (), ())))


def test_objects_of_the_parts_name_each_other() -> None:
    target = CpuTarget.named("x86-64-v3")
    for part in cut():
        data = compile_to_object(part.text, target, 1, part.exported, external=(*part.external, "outside"))
        assert undefined_symbols(data) <= {*part.external, "outside"}
    with pytest.raises(CompilerError, match="the module calls"):
        compile_to_object(cut()[0].text, target, 1, cut()[0].exported)


def test_small_modules_and_quoted_names_stay_whole() -> None:
    assert cut(size=len(MODULE)) == [Part(MODULE, ("digest", "disc_plan", "disc_run"), ())]
    quoted = MODULE.replace("@a_entry", '@"a entry"')
    assert [part.text for part in cut(quoted)] == [quoted]


def test_the_number_of_parts_is_bounded() -> None:
    kernels = "".join(f"define void @k{i}_entry(ptr %0) {{\n  ret void\n}}\n" for i in range(100))
    uses = "".join(f"  store ptr @k{i}_entry, ptr %0\n" for i in range(100))
    text = f"{kernels}define void @disc_run(ptr %0) {{\n{uses}  ret void\n}}\n"
    parts = parts_of(text, ["disc_run"], HOSTS, 1)
    assert len(parts) == MOST_PARTS
    assert parts == parts_of(text, ["disc_run"], HOSTS, 1)
    sizes = [len(definitions(part)) for part in parts[1:]]
    assert max(sizes) - min(sizes) <= 1


def test_tasks_keep_their_order_and_raise() -> None:
    numbers = range(20)
    assert at_a_time([partial(bytes, [i]) for i in numbers], list(numbers)) == [bytes([i]) for i in numbers]

    def fails() -> bytes:
        raise CompilerError("no")

    with pytest.raises(CompilerError, match="no"):
        at_a_time([lambda: b"", fails, lambda: b""], [1, 1, 1])


def test_the_longest_task_begins_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread that is taken shows the order in which the others begin."""
    begun: list[int] = []

    class OneThread(ThreadPoolExecutor):
        def __init__(self, threads: int, thread_name_prefix: str):
            super().__init__(1, thread_name_prefix)

    def task(number: int) -> bytes:
        begun.append(number)
        return bytes([number])

    monkeypatch.setattr(unlocked, "ThreadPoolExecutor", OneThread)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    sizes = [3, 1, 7, 5]
    assert at_a_time([partial(task, n) for n in range(4)], sizes) == [bytes([n]) for n in range(4)]
    assert begun == [2, 3, 0, 1]


def test_a_program_that_is_compiled_at_exit() -> None:
    """Python starts no threads there."""
    program = (
        "import atexit, jax.numpy as jnp, numpy as np, shlo_disc\n"
        "from shlo_disc.lowering.codegen import unlocked\n"
        "unlocked.os.sched_getaffinity = lambda _: {0, 1}\n"
        "def last():\n"
        "    e = shlo_disc.compile(lambda x, w: x @ w, args=(('b, 8', 'float32'), ('8, 8', 'float32')))\n"
        "    print(float(np.asarray(e(np.ones((2, 8), np.float32), np.ones((8, 8), np.float32))).sum()))\n"
        "import shlo_disc.driver.compiler, jax\n"
        "atexit.register(last)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("128.0", 0), done.stderr[-2000:]


def loop(x: Any, n: Any) -> Any:
    return jax.lax.fori_loop(0, n, lambda i, h: jnp.tanh(h) * i + jnp.sort(h), x)


def branch(x: Any, n: Any) -> Any:
    return jax.lax.cond(n > 2, lambda h: jnp.cumsum(h), lambda h: h[::-1] * 2, x)


@pytest.mark.parametrize("function", [loop, branch], ids=["loop", "branch"])
def test_programs_in_parts_do_the_same(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = (("b", "float32"), ("", "int32"))
    whole = shlo_disc.compile(function, args=spec, options=shlo_disc.Options(cache_dir=""))
    cuts = _cut_small(monkeypatch)
    parts = shlo_disc.compile(function, args=spec, options=shlo_disc.Options(cache_dir=""))
    assert len(cuts[-1]) > 1
    for size in (1, 15, 16, 17, 100):
        x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
        for n in (0, 3):
            np.testing.assert_array_equal(parts(x, np.int32(n)), whole(x, np.int32(n)))


@pytest.mark.parametrize("name", ["bert", "dien", "crnn"])
def test_models_in_parts_do_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = importlib.import_module(f"examples.{name}")
    exported = model.export(model.SMALL)
    options = shlo_disc.Options(cache_dir="")
    whole = shlo_disc.compile(exported, options=options)
    cuts = _cut_small(monkeypatch)
    parts = shlo_disc.compile(exported, options=options)
    assert len(cuts[-1]) > 2
    weights = jax.tree.map(np.asarray, model.init(model.SMALL))
    for sizes in ([1] * len(model.limits(model.SMALL)), [min(most, 5) for most in model.limits(model.SMALL)]):
        inputs = model.make_inputs(model.SMALL, *sizes)
        for mine, theirs in zip(*map(jax.tree.leaves, (parts(weights, *inputs), whole(weights, *inputs))), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def _cut_small(monkeypatch: pytest.MonkeyPatch) -> list[list[Part]]:
    """From now on every group of functions is a part; returns the parts of each module that is compiled."""
    cuts: list[list[Part]] = []

    def small(text: str, exported: Any, hosts: Any) -> list[Part]:
        cuts.append(parts_of(text, exported, hosts, 1))
        return cuts[-1]

    monkeypatch.setattr(routines, "parts_of", small)
    return cuts


def test_equal_programs_have_equal_objects() -> None:
    """The cut does not depend on time or threads."""
    options = shlo_disc.Options(cache_dir="")
    texts = [shlo_disc.compile(loop, args=(("b", "float32"), ("", "int32")), options=options) for _ in range(2)]
    first, second = (text.artifact.sections["object"] for text in texts)
    assert first == second
