# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bad input of every kind, with the exact text of its error; and after each bad call the next good one is right.

The tables of calls and programs are in `bad_calls.py` and `bad_programs.py`. Where jax.export has a wording for a
mistake, the installed JAX is asked for it and the two texts are compared.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import DiscError, OptionError, ProgramError, ShapeError, Unsupported, UnsupportedError
from shlo_disc.options import Options
from tests.run.bad_calls import CALLS, OWN, POLYMORPHIC, layer_sizes, obtained, sizes, text_of
from tests.run.bad_programs import ADD, HEAD, NO_DTYPE, TAIL, TEXTS, unsupported
from tests.run.call_programs import PROGRAMS, compiled, exported, steps, zeros

# ---- calls -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CALLS)
def test_bad_call(name: str) -> None:
    """The exact text; nothing ran, nothing is kept; and the next good call is right."""
    case = CALLS[name]
    executable = compiled(case.program)
    good = PROGRAMS[case.program].good()
    want = executable(*good)
    args = case.args()
    gc.collect()  # results in the tracebacks of earlier tests
    before = executable.memory_stats()
    with pytest.raises(DiscError) as caught:
        executable(*args, **dict(case.kwargs))
    assert text_of(caught.value) == (case.message + case.advice).rstrip()
    assert name not in OWN or caught.value.message.partition("\n")[0] == OWN[name]
    assert type(caught.value) is case.error
    after = executable.memory_stats()
    assert after["live_bytes"] == before["live_bytes"]
    assert after["arena_allocations"] == before["arena_allocations"], "nothing runs without its arena"
    for mine, again in zip(jax.tree.leaves(want), jax.tree.leaves(executable(*good)), strict=True):
        np.testing.assert_array_equal(mine, again)
    for argument in jax.tree.leaves(args):
        if isinstance(argument, np.ndarray) and argument.size < 10**6 and argument.dtype.kind == "f":
            assert argument.tobytes() == steps(*argument.shape).tobytes() or not argument.any()


@pytest.mark.parametrize("name", PROGRAMS)
def test_good_calls_are_right(name: str) -> None:
    args = PROGRAMS[name].good()
    for mine, xla in zip(
        jax.tree.leaves(compiled(name)(*args)), jax.tree.leaves(exported(name).call(*args)), strict=True
    ):
        np.testing.assert_allclose(mine, xla, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name, case in CALLS.items() if case.as_jax])
def test_same_text_as_jax(name: str) -> None:
    case = CALLS[name]
    with pytest.raises(ValueError) as caught:
        exported(case.program).call(*case.args(), **dict(case.kwargs))
    assert text_of(caught.value) == case.message.rstrip()


def test_a_bad_call_from_text() -> None:
    """A program without names: the symbols are named after the arguments."""
    executable = shlo_disc.compile(ADD)
    with pytest.raises(ShapeError) as caught:
        executable(zeros(3), zeros(4))
    assert text_of(caught.value) == sizes(
        POLYMORPHIC + "Found inconsistency between dimension size args[1].shape[0] (= 4) and the specification "
        "'arg0_d0' (= 3).",
        "args[0].shape = (arg0_d0,),args[1].shape = (arg0_d0,)",
        obtained("arg0_d0", 3, "arg0_d0", "args[0].shape[0]", 3),
    )
    np.testing.assert_array_equal(executable(steps(3), steps(3)), 2 * steps(3))


BY_NAME = ": they are given by name, as in s=1, b=1, or --dims s=1,b=1"
DIMS = {
    "missing": ({"b": 4}, "expected values for the dimension variables ['s', 'b'], got ['b']" + BY_NAME),
    "unknown": (
        {"b": 4, "s": 3, "q": 1},
        "expected values for the dimension variables ['s', 'b'], got ['b', 'q', 's']" + BY_NAME,
    ),
    "a string": ({"b": "4", "s": 3}, "the value of the dimension variable 'b' is no 64-bit integer: '4'"),
    "a float": ({"b": 4.0, "s": 3}, "the value of the dimension variable 'b' is no 64-bit integer: 4.0"),
    "a boolean": ({"b": True, "s": 3}, "the value of the dimension variable 'b' is no 64-bit integer: True"),
    "None": ({"b": 4, "s": None}, "the value of the dimension variable 's' is no 64-bit integer: None"),
    "none at all": ({}, "expected values for the dimension variables ['s', 'b'], got []" + BY_NAME),
    "negative": (
        {"b": 4, "s": -1},
        sizes(
            POLYMORPHIC + "Expected value >= 1 for dimension variable 's'.",
            "args[0]['w'].shape = (s, 8),args[1].shape = (b, s)",
            obtained("s", -1, "s", "args[0]['w'].shape[0]", -1),
        ),
    ),
    "too large": ({"b": 4, "s": 2**63}, f"the value of the dimension variable 's' is no 64-bit integer: {2**63}"),
    "not admissible": (
        {"b": 4, "s": 513},
        layer_sizes(
            "Input shapes do not match the symbolic shape constraint s <= 512. "
            "Expected '- s + 512' to be greater or equal to 0, but found -1. ",
            s=513,
            b=4,
        ),
    ),
    "overflow": ({"b": 2**62, "s": 3}, "The bytes of result['n'] (b,) do not fit 64 bits at this shape."),
}


@pytest.mark.parametrize("name", DIMS)
@pytest.mark.parametrize("question", ["out_shape", "peak_memory", "memory", "prepare", "cost_analysis", "explain"])
def test_bad_dims(question: str, name: str) -> None:
    dims, message = DIMS[name]
    with pytest.raises(ShapeError) as caught:
        getattr(compiled("layer"), question)(**dims)
    assert text_of(caught.value) == message.rstrip()


def test_integers_of_every_kind_are_dims() -> None:
    want = compiled("layer").out_shape(b=4, s=3)
    for kind in (np.int8, np.uint64, jnp.int32):
        assert compiled("layer").out_shape(b=kind(4), s=kind(3)) == want
        assert compiled("layer").cost_analysis(b=kind(4), s=3) == compiled("layer").cost_analysis(b=4, s=3)


@pytest.mark.parametrize("shape", [(4,), (4, 3, 1), (4.0, 3), ("4", 3), (True, 3), (2**64, 3), 4, None, "43"], ids=str)
def test_bad_shapes(shape: Any) -> None:
    with pytest.raises(ShapeError) as caught:
        compiled("layer").loaded.dims_of((8,), (3, 8), shape)
    assert caught.value.message == f"args[1] has the shape {shape}; the program takes (b, s)"
    assert compiled("layer").loaded.dims_of((8,), (3, 8), (np.int64(4), 3)) == {"s": 3, "b": 4}


def test_a_stage_that_does_not_exist() -> None:
    with pytest.raises(OptionError) as caught:
        compiled("layer").as_text("nope")
    assert caught.value.message == (
        "no stage 'nope'; stages are import, annotate, simplify, fuse, plan, kernels, host, codegen, llvm, "
        "optimized-llvm, asm"
    )


# ---- programs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEXTS)
def test_bad_program(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The exact text, with nothing printed behind it; and the next program compiles."""
    program, error, message = TEXTS[name]
    with pytest.raises(DiscError) as caught:
        shlo_disc.compile(program)
    assert caught.value.message == message
    assert type(caught.value) is error
    assert capfd.readouterr() == ("", "")
    np.testing.assert_array_equal(shlo_disc.compile(ADD)(steps(3), steps(3)), 2 * steps(3))


def test_the_position_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text(HEAD + "  foo.bar\n" + TAIL)
    with pytest.raises(ProgramError) as caught:
        shlo_disc.compile(path)
    assert caught.value.message == (
        f"the program {str(path)!r} cannot be parsed: line 2, column 3: Dialect `foo' not found for custom op 'foo.bar'"
    )


def test_a_cut_or_changed_portable_artifact_is_refused() -> None:
    """MLIR's reader ends the process on some of these; that process is never this one."""
    data = bytes(exported("layer").mlir_module_serialized)
    random = np.random.default_rng(5)
    messages = []
    for length in (5, 40, len(data) // 3, len(data) // 2, len(data) - 1):
        with pytest.raises(ProgramError, match="^the program cannot be parsed: ") as caught:
            shlo_disc.compile(data[:length])
        messages.append(caught.value.message)
    assert all("\n" not in message for message in messages)
    for _ in range(12):
        changed = bytearray(data)
        for position in random.integers(4, len(data), 4):
            changed[position] = random.integers(256)
        with contextlib.suppress(ProgramError, UnsupportedError):  # most changes are noticed; some only change a name
            shlo_disc.compile(bytes(changed))


def test_bytecode_whose_reader_aborts_is_refused() -> None:
    """The 23rd of these changes makes MLIR's reader ask for memory without end, and LLVM abort."""
    data = bytes(exported("layer").mlir_module_serialized)
    random = np.random.default_rng(0)
    for turn in range(23):
        changed = bytearray(data)
        for position in random.integers(4, len(data), 6):
            changed[position] = random.integers(256)
        if turn < 21:
            continue
        with pytest.raises(ProgramError, match="^the program cannot be parsed: "):
            shlo_disc.compile(bytes(changed))


# ---- JAX programs ------------------------------------------------------------------------------------------------


def several(x: Any) -> Any:
    """Two constructs that have no lowering, with one between them that has."""
    like_x = jax.ShapeDtypeStruct(x.shape, x.dtype)
    y = jax.ffi.ffi_call("first_target", like_x)(x)
    return jax.ffi.ffi_call("second.target", like_x)(jnp.sin(y))


def test_unsupported_jax_ops_are_listed_at_once() -> None:
    """With the op, the name that JAX gave it, the user's line, and what to do."""
    with pytest.raises(UnsupportedError) as caught:
        shlo_disc.compile(several, args=(("b", "float32"),))
    line = several.__code__.co_firstlineno
    here = __file__
    found = {c.op: c for c in caught.value.constructs}
    expected = [
        ("stablehlo.custom_call (jit(several)/ffi_call) @first_target", line + 3),
        ("stablehlo.custom_call (jit(several)/ffi_call) @second.target", line + 4),
    ]
    advice = "register a native function for it with shlo_disc.register_custom_call"
    for op, number in expected:
        assert found[op] == Unsupported(op, "", f"{here}:{number}", "this custom call has no lowering", advice)
    assert caught.value.message.startswith(f"{len(found)} unsupported construct(s):\n  - stablehlo.")


def test_a_dropped_argument_of_another_dtype() -> None:
    with pytest.raises(UnsupportedError) as caught:
        shlo_disc.compile(lambda x, y: x + 1, args=(("b", "float32"), jax.ShapeDtypeStruct((3,), "int1")))
    assert caught.value.message == unsupported(f"args[1] on int1 at <lambda>: {NO_DTYPE}")


SPECIFICATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "none": ({}, 'a JAX function needs args=, e.g. args=(("b, 768", "float32"),)'),
    "no sequence": ({"args": "b"}, 'args= is a sequence such as (("b, 768", "float32"),), not \'b\''),
    "no outer tuple": (
        {"args": ("b", "float32")},
        "args= has one entry for each argument: write args=(('b', 'float32'),)",
    ),
    "two names": (
        {"args": (("b b", "float32"),)},
        "args= has 'b b': commas separate sizes: write 'b, b'",
    ),
    "unknown dtype": (
        {"args": (("b", "float33"),)},
        "unknown dtype 'float33' in ('b', 'float33'); did you mean 'float32'?",
    ),
    "constraints as a string": (
        {"args": (("b", "float32"),), "constraints": "b <= 3"},
        "constraints= is a sequence of strings: write constraints=('b <= 3',)",
    ),
    "no constraint": (
        {"args": (("b", "float32"),), "constraints": ("b <> 3",)},
        "constraints= compares sizes by <=, >= or ==, and 'b <> 3' does not: write each one by itself",
    ),
    "constraints that contradict": (
        {"args": (("b", "float32"),), "constraints": ("b <= 3", "b >= 4")},
        "no call can satisfy the constraints 'b <= 3' and 'b >= 4' together: change one of them, or leave it out",
    ),
    "a size that no argument determines": (
        {"args": (("a*b", "float32"),)},
        "Cannot solve for values of dimension variables {'a', 'b'}. We can only solve linear uni-variate constraints. "
        "Using the following polymorphic shapes specifications: args[0].shape = (a*b,). "
        "Unprocessed specifications: 'a*b' for dimension size args[0].shape[0]. "
        "Please see https://docs.jax.dev/en/latest/export/shape_poly.html"
        "#dimension-variables-must-be-solvable-from-the-input-shapes for more details.",
    ),
}


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_bad_specification(name: str) -> None:
    keywords, message = SPECIFICATIONS[name]
    with pytest.raises(ProgramError) as caught:
        shlo_disc.compile(lambda x: x + 1, **keywords)
    text = text_of(caught.value).replace("{'b', 'a'}", "{'a', 'b'}")  # JAX prints a set
    assert text == message


# ---- options -----------------------------------------------------------------------------------------------------

OPTIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "no Options": (
        lambda: shlo_disc.compile(ADD, options={"threads": 1}),  # type: ignore[arg-type]
        "options must be a shlo_disc.Options, not {'threads': 1}: write options=shlo_disc.Options(threads=1)",
    ),
    "negative threads": (lambda: Options(threads=-1), "threads must be an integer of at least 0, not -1"),
    "a million threads": (lambda: Options(threads=10**6), "threads must be an integer of at most 4096, not 1000000"),
    "threads as a string": (lambda: Options(threads="2"), "threads must be an integer of at least 0, not '2'"),  # type: ignore[arg-type]
    "level": (lambda: Options(opt_level=7), "opt_level must be 0, 1, 2 or 3, not 7"),
    "cpu": (
        lambda: Options(cpu="zen4"),
        "cpu must be 'host', one of ('x86-64-v3', 'x86-64-v4', 'sapphirerapids'), or several of these, not 'zen4'",
    ),
    "output": (
        lambda: Options(output="torch"),
        "output must be 'numpy', 'jax', 'buffer' or None, not 'torch'",
    ),
    "hints as a list": (
        lambda: Options(hints=[1]),  # type: ignore[arg-type]
        "hints must map symbols to sizes, e.g. {'s': 128}, not [1]",
    ),
    "an Options for jit": (
        lambda: shlo_disc.jit(options={"threads": 1}),  # type: ignore[call-overload]
        "options must be a shlo_disc.Options, not {'threads': 1}: write options=shlo_disc.Options(threads=1)",
    ),
    "compile_once as a string": (
        lambda: shlo_disc.jit(compile_once="no"),  # type: ignore[call-overload]
        "compile_once must be True or False, not 'no'",
    ),
    "filter as a string": (
        lambda: shlo_disc.jit(filter="no"),  # type: ignore[call-overload]
        "filter must be True or False, not 'no'",
    ),
    "trust as a string": (
        lambda: shlo_disc.load("no.disc", trust="no"),  # type: ignore[arg-type]
        "trust must be True or False, not 'no'",
    ),
    "copy as a string": (
        lambda: shlo_disc.compile(ADD).bind(copy="no"),  # type: ignore[arg-type]
        "copy must be True or False, not 'no'",
    ),
    "verify as a string": (lambda: Options(verify="no"), "verify must be one of (True, False), not 'no'"),  # type: ignore[arg-type]
    "a negative hint": (
        lambda: Options(hints={"s": -1}),
        "the hint for 's' must be an integer of at least 0, not -1",
    ),
    "a hint for no symbol": (
        lambda: shlo_disc.compile(ADD, options=Options(hints={"q": 1})),
        "the hint for 'q' names no symbol; the symbols are ['arg0_d0']",
    ),
    "args for text": (
        lambda: shlo_disc.compile(ADD, args=(("b", "float32"),)),
        "args=, kwargs= and constraints= apply to a JAX function; this program states its own shapes",
    ),
    "constraints for an Exported": (
        lambda: shlo_disc.compile(exported("odd"), constraints=("k <= 3",)),
        "args=, kwargs= and constraints= apply to a JAX function; an Exported has its own",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_bad_options(name: str) -> None:
    work, message = OPTIONS[name]
    with pytest.raises(OptionError) as caught:
        work()
    assert caught.value.message == message


@pytest.mark.parametrize("target", ["tpu", "cuda:sm_10", "CPU", ""])
def test_bad_target(target: str) -> None:
    with pytest.raises(DiscError) as caught:
        shlo_disc.compile(ADD, target=target)
    assert caught.value.message.startswith(f"unknown target {target!r}; targets are 'cpu'")


def test_there_are_enough_cases() -> None:
    assert len(CALLS) + len(TEXTS) + len(SPECIFICATIONS) + len(OPTIONS) >= 45
