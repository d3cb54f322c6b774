# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Callbacks to Python in what `shlo_disc.compile` and `shlo_disc.jit` are given: results, order, errors, lifetimes."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import shlo_disc
from shlo_disc.errors import ArtifactError, CustomCallError, UnsupportedError

SIZES = (1, 7, 8, 9, 67)
ROW = (("n", "float32"),)


def same_shape(x: Any) -> Any:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def ramp(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.float32) - 2


def pure(x: Any) -> Any:
    return jax.pure_callback(np.sin, same_shape(x), x)


class Seen:
    """The arguments of the callbacks of a function with effects, in their order."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def note(self, *arrays: Any) -> None:
        self.seen += [np.asarray(a).tolist() for a in arrays]

    def function(self, x: Any) -> Any:
        """Ordered callbacks of several kinds, in a loop of as many trips as data says, and in a branch."""
        y = io_callback(lambda a: self.note(a) or a + 1, same_shape(x), x, ordered=True)

        def body(i: Any, c: Any) -> Any:
            jax.debug.callback(self.note, i, c.sum(), ordered=True)
            return c * 2

        y = jax.lax.fori_loop(0, x[0].astype(int), body, y)
        jax.lax.cond(y.sum() > 40, lambda: io_callback(lambda: self.note(-1), None, ordered=True), lambda: None)
        return y, x.shape[0]


def test_results() -> None:
    program = shlo_disc.compile(lambda x: (pure(x) + 1, pure(x * 2).sum()), args=ROW)
    for n in SIZES:
        x = ramp(n)
        whole, total = program(x)
        np.testing.assert_array_equal(whole, np.sin(x) + 1)
        np.testing.assert_allclose(total, np.sin(x * 2).sum(), rtol=1e-5, atol=1e-5)
    assert program.compile_count == 1


def test_order_and_trips_as_with_jax() -> None:
    ours, theirs = Seen(), Seen()
    program, jitted = shlo_disc.compile(ours.function, args=ROW), jax.jit(theirs.function)
    for n in SIZES:
        x = np.full(n, n % 4, np.float32)
        jax.tree.map(np.testing.assert_array_equal, program(x), jitted(x))
        jax.effects_barrier()
        assert ours.seen == theirs.seen


def test_print_of_jit(capfd: pytest.CaptureFixture[str]) -> None:
    @shlo_disc.jit(dynamic="n")
    def function(x: Any) -> Any:
        jax.debug.print("{n} rows, largest {m:.1f}", n=x.shape[0], m=x.max())
        return x * 2

    for n in (3, 5):
        np.testing.assert_array_equal(function(ramp(n)), ramp(n) * 2)
    assert capfd.readouterr().out == "3 rows, largest 0.0\n5 rows, largest 2.0\n"


def test_mapped() -> None:
    """One call after the other, and one of all rows."""
    for method in ("sequential", "expand_dims"):
        function = jax.vmap(lambda x, method=method: jax.pure_callback(np.cos, same_shape(x), x, vmap_method=method))
        program = shlo_disc.compile(function, args=(("b, n", "float32"),))
        for b, n in ((1, 3), (4, 9)):
            x = ramp(b * n).reshape(b, n)
            np.testing.assert_array_equal(program(x), np.cos(x))


def test_callbacks_of_a_gradient() -> None:
    seen: list[float] = []

    @jax.custom_vjp
    def square(x: Any) -> Any:
        return x * x

    def backward(x: Any, g: Any) -> Any:
        jax.debug.callback(lambda total: seen.append(float(total)), g.sum())
        return (2 * x * g,)

    square.defvjp(lambda x: (x * x, x), backward)
    program = shlo_disc.compile(square, args=ROW)
    for n in SIZES:
        np.testing.assert_array_equal(jax.grad(lambda x: program(x).sum())(jnp.asarray(ramp(n))), 2 * ramp(n))
    assert seen == list(SIZES)


# ---- failures --------------------------------------------------------------------------------------------------------


def refuse(_: Any) -> Any:
    raise ValueError("not this one")


@pytest.mark.parametrize(
    ("callback", "words"),
    [
        (refuse, "ValueError: not this one"),
        (lambda a: a[1:], r"Incorrect output shape.*Expected: \(3,\), Actual: \(2,\)"),
        (lambda a: a.astype(np.int32), "Incorrect output dtype"),
        (lambda a: (a, a), "Mismatched number of outputs"),
    ],
)
def test_what_fails_is_told(callback: Any, words: str) -> None:
    program = shlo_disc.compile(lambda x: jax.pure_callback(callback, same_shape(x), x), args=ROW)
    with pytest.raises(CustomCallError, match=words):
        program(ramp(3))


def test_a_call_after_one_that_failed() -> None:
    limit = 3

    def small(x: Any) -> Any:
        if len(x) > limit:
            raise ValueError("too long")
        return x

    program = shlo_disc.compile(lambda x: jax.pure_callback(small, same_shape(x), x) + 1, args=ROW)
    for n in (3, 4, 2, 5, 1):
        if n > limit:
            with pytest.raises(CustomCallError, match="too long"):
                program(ramp(n))
        else:
            np.testing.assert_array_equal(program(ramp(n)), ramp(n) + 1)


JAXS_OWN = """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}
"""


def test_jaxs_own_programs_cannot_take_theirs_along() -> None:
    with pytest.raises(UnsupportedError, match=r"give the function itself to shlo_disc\.compile"):
        shlo_disc.compile(JAXS_OWN)


def test_a_callback_beside_something_that_is_refused() -> None:
    def two(x: Any) -> Any:
        return pure(x) + jax.ffi.ffi_call("unknown_function", same_shape(x))(x)

    with pytest.raises(UnsupportedError) as caught:
        shlo_disc.compile(two, args=ROW)
    assert [construct.op for construct in caught.value.constructs] != []
    assert all("unknown_function" in construct.op for construct in caught.value.constructs)


# ---- lifetimes -------------------------------------------------------------------------------------------------------


class Model:
    """The object that a callback belongs to."""

    def offset(self, x: Any) -> Any:
        return x + 5

    def function(self, x: Any) -> Any:
        return jax.pure_callback(self.offset, same_shape(x), x)


def test_the_program_keeps_its_callbacks_and_nothing_else_does() -> None:
    model = Model()
    there = weakref.ref(model)
    program = shlo_disc.compile(model.function, args=ROW)
    del model
    gc.collect()
    np.testing.assert_array_equal(program(ramp(4)), ramp(4) + 5)
    assert there() is not None
    del program
    jax.clear_caches()
    gc.collect()
    assert there() is None


def test_programs_of_one_function_have_callbacks_of_their_own() -> None:
    """JAX lowers a function once for each of its types."""
    first = shlo_disc.compile(pure, args=ROW)
    second, third = shlo_disc.compile(pure, args=ROW), shlo_disc.compile(pure, args=ROW)
    del first, third
    gc.collect()
    np.testing.assert_array_equal(second(ramp(4)), np.sin(ramp(4)))


def test_an_export_with_callbacks_within_another_function() -> None:
    """`lower().exported` has them as long as the program lives that it came from."""
    lowered = shlo_disc.jit(pure, dynamic="n").lower(ramp(3))
    program = shlo_disc.compile(lambda x: lowered.exported.call(x) + 1, args=ROW)
    for n in SIZES:
        np.testing.assert_array_equal(program(ramp(n)), np.sin(ramp(n)) + 1)


def test_what_is_bound_or_loaded_keeps_them_too() -> None:
    def function(w: Any, x: Any) -> Any:
        return pure(x) * w

    bound = shlo_disc.compile(function, args=(np.float32(0), *ROW)).bind(np.float32(2))
    loaded = shlo_disc.compile(function, args=(np.float32(0), *ROW)).loaded
    gc.collect()
    np.testing.assert_array_equal(bound(ramp(4)), np.sin(ramp(4)) * 2)
    np.testing.assert_array_equal(loaded(np.float32(2), ramp(4)), np.sin(ramp(4)) * 2)


def test_nothing_is_written_of_what_only_this_process_has(tmp_path: Path) -> None:
    cached = tmp_path / "cache"
    program = shlo_disc.compile(pure, args=ROW, options=shlo_disc.Options(cache_dir=cached))
    assert not cached.exists() or not any(cached.iterdir())
    for write in (program.save, program.export_library):
        with pytest.raises(ArtifactError, match="calls a function of Python, which no other process has"):
            write(tmp_path / "sines.so")
    for thing in (program, program.artifact):
        with pytest.raises((TypeError, ArtifactError), match="calls a function of Python"):
            pickle.dumps(thing)
    assert copy.deepcopy(program) is program
    caller = shlo_disc.compile(lambda x: program(x) * 2, args=ROW)
    np.testing.assert_array_equal(caller(ramp(5)), np.sin(ramp(5)) * 2)
    with pytest.raises(ArtifactError, match="calls another compiled program"):
        caller.save(tmp_path / "caller.disc")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []


def test_compiled_apart() -> None:
    """The callback stays here."""
    program = shlo_disc.compile(pure, args=ROW, options=shlo_disc.Options(isolate=True))
    np.testing.assert_array_equal(program(ramp(4)), np.sin(ramp(4)))


def test_threads() -> None:
    seen: list[int] = []
    failures: list[BaseException] = []

    def note(a: Any) -> None:
        seen.append(len(a))

    def function(x: Any) -> Any:
        jax.debug.callback(note, x)
        return pure(x)

    program = shlo_disc.compile(function, args=ROW)

    def work(n: int) -> None:
        try:
            for _ in range(20):
                np.testing.assert_array_equal(program(ramp(n)), np.sin(ramp(n)))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(seen) == sorted(list(range(1, 9)) * 20)
