# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc.jit`: one compilation for every size, and the promise to keep it at one."""

from __future__ import annotations

import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ArgumentTypeError, OptionError, RecompileError


def mlp(x: Any, w: Any) -> Any:
    """Two products with something between them."""
    return jnp.tanh(x @ w) @ w.T


def test_jit_compiles_once_for_fifty_sizes() -> None:
    traces = []

    @shlo_disc.jit(dynamic="b, ...")
    def rows(x: Any) -> Any:
        """Sums."""
        traces.append(x.shape)
        return jnp.exp(x).sum(1)

    assert (rows.__name__, rows.__doc__, rows.compile_count) == ("rows", "Sums.", 0)
    with pytest.raises(OptionError, match="^no call has compiled .* yet: call it"):
        _ = rows.executable
    for size in range(1, 51):
        x = np.linspace(-1, 1, size * 7, dtype=np.float32).reshape(size, 7)
        np.testing.assert_allclose(rows(x), np.exp(x).sum(1), rtol=1e-5)
    assert rows.compile_count == len(traces) == 1
    assert rows.executable.compile_count == 1


def test_jit_with_one_specification_for_each_argument() -> None:
    function = shlo_disc.jit(mlp, dynamic=("b, ...", None), constraints=("b <= 64",))
    w = np.ones((32, 48), np.float32)
    for size in (1, 5, 64):
        assert function(np.ones((size, 32), np.float32), w).shape == (size, 32)
    with pytest.raises(RecompileError, match="b <= 64"):
        function(np.ones((65, 32), np.float32), w)
    assert function.compile_count == 1


@pytest.mark.parametrize(
    "argument",
    [np.ones((3, 8), np.float32), np.ones((3, 7), np.float16), np.ones(3, np.float32)],
    ids=["size", "dtype", "rank"],
)
def test_compile_once_is_a_promise(argument: np.ndarray) -> None:
    function = shlo_disc.jit(lambda x: x * 2, dynamic="b, ...")
    function(np.ones((2, 7), np.float32))
    with pytest.raises(RecompileError, match="^this call does not fit the one compiled program: "):
        function(argument)
    assert function.compile_count == 1
    again = shlo_disc.jit(lambda x: x * 2, dynamic="b, ...", compile_once=False)
    again(np.ones((2, 7), np.float32))
    if argument.ndim == 2:
        np.testing.assert_array_equal(again(argument), argument * 2)
        assert again.compile_count == 2
        again(np.ones((9, 7), np.float32))
        assert again.compile_count == 2


WIDE = {
    "float64": lambda n: np.arange(n) / 7,
    "int64": lambda n: np.arange(n) - 2,
    "uint64": lambda n: np.arange(n, dtype=np.uint64),
    "complex128": lambda n: np.arange(n) * (1 + 2j),
    "big-endian float64": lambda n: (np.arange(n) / 7).astype(">f8"),
    "big-endian int32": lambda n: np.arange(n).astype(">i4"),
}


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("x64", [False, True])
def test_numpys_dtypes_are_those_that_jax_makes_of_them(name: str, x64: bool) -> None:
    def twice(x: Any) -> Any:
        return x * 2

    with jax.enable_x64(x64):
        function = shlo_disc.jit(twice, dynamic="n")
        for size in (3, 17, 3):
            x = WIDE[name](size)
            want = jax.jit(twice)(x.astype(x.dtype.newbyteorder("=")))
            got = function(x)
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
        assert function.compile_count == 1


def test_numbers_and_lists_of_numbers_have_the_types_that_jax_gives_them() -> None:
    def scaled(x: Any, numbers: Any) -> Any:
        return [x * number for number in numbers]

    function = shlo_disc.jit(scaled, dynamic=("n", None))
    for numbers in ([2, 2.5, True, 1j, np.float64(3), np.int64(4)], [-1, 0.5, False, 2j, np.float64(0), np.int64(5)]):
        x = jnp.arange(5, dtype=jnp.bfloat16)
        for mine, other in zip(function(x, numbers), jax.jit(scaled)(x, numbers), strict=True):
            assert mine.dtype == other.dtype
            np.testing.assert_array_equal(np.asarray(mine), np.asarray(other))
    assert function.compile_count == 1


def test_a_number_of_another_type_does_not_fit() -> None:
    """As with jax.jit: 3 is no 3.0, and a number no array."""

    def half(x: Any, n: Any) -> Any:
        return x * n, n / 2, n * n

    def types(function: Any, number: Any) -> list[Any]:
        return [leaf.dtype for leaf in function(jnp.ones(3, jnp.bfloat16), number)]

    numbers = (3.0, 3, np.float32(3), jnp.asarray(3.0), np.int32(3), True)
    again = shlo_disc.jit(half, compile_once=False)
    assert [types(again, n) for n in numbers] == [types(jax.jit(half), n) for n in numbers]
    assert again.compile_count == 5, "a weak jax.Array is as a Python number"
    once = shlo_disc.jit(half)
    once(jnp.ones(3, jnp.bfloat16), 3.0)
    with pytest.raises(RecompileError, match=r"args\[1\] is a Python int, and the program was compiled for "):
        once(jnp.ones(3, jnp.bfloat16), 3)
    with pytest.raises(RecompileError, match=r"args\[1\] is a NumPy number of float32"):
        once(jnp.ones(3, jnp.bfloat16), np.float32(3))
    with pytest.raises(RecompileError, match=r"args\[1\] is a list, and the program takes an array"):
        once(jnp.ones(3, jnp.bfloat16), [3.0])
    assert once(jnp.ones(3, jnp.bfloat16), 4.0)[0].tolist() == [4, 4, 4]


def test_a_number_that_32_bits_do_not_hold() -> None:
    function = shlo_disc.jit(lambda n: n + 1)
    assert function(3) == 4
    with pytest.raises(RecompileError, match="the Python int 1099511627776, which it cannot hold"):
        function(2**40)


@pytest.mark.parametrize("transform", [jax.jit, jax.grad, jax.vmap])
def test_a_call_while_jax_traces(transform: Any) -> None:
    function = shlo_disc.jit(lambda x: jnp.sin(x))
    x = jnp.arange(3.0) if transform is jax.vmap else 0.5
    np.testing.assert_allclose(transform(function)(x), transform(jnp.sin)(x), rtol=1e-6)
    function(jnp.float32(1.0) if transform is jax.vmap else 1.0)
    assert function.compile_count == 1


def test_sizes_change_while_jax_traces() -> None:
    function = shlo_disc.jit(lambda x: (x * x).sum(), dynamic="b")
    for n in (2, 5):
        x = jnp.arange(n, dtype=jnp.float32)
        np.testing.assert_allclose(jax.jit(jax.grad(function))(x), 2 * x)
    assert function.compile_count == 1


def test_arrays_of_a_weak_type() -> None:
    function = shlo_disc.jit(lambda x: x * 2, dynamic="b")
    function(jnp.full(3, 0.5))
    with pytest.raises(RecompileError, match=r"for a Python number \(float32\)\. .*, such as jnp.full\(3, 0.5\)"):
        function(jnp.full(3, 0.5, jnp.float32))


def test_empty_batches() -> None:
    w = np.ones((8, 3), np.float32)
    function = shlo_disc.jit(lambda x: jax.nn.softmax(jnp.tanh(x @ w)), dynamic="b - 1, ...")
    for n in (3, 0, 1, 16):
        assert function(np.ones((n, 8), np.float32)).shape == (n, 3)
    assert function.compile_count == 1
    with pytest.raises(RecompileError, match="Expected value >= 1 for dimension variable 'b'"):
        refusing = shlo_disc.jit(lambda x: x * 2, dynamic="b")
        refusing(np.ones(2, np.float32))
        refusing(np.ones(0, np.float32))


def test_what_is_no_array_is_not_a_want_of_compiles() -> None:
    function = shlo_disc.jit(lambda x: x * 2, dynamic="b")
    function(np.ones(3, np.float32))
    for wrong in ("text", np.ones(3, object), np.array(["a"])):
        with pytest.raises(ArgumentTypeError):
            function(wrong)
    with pytest.raises(RecompileError, match="takes x: the call gives 2 by position"):
        function(np.ones(3, np.float32), 4)
    assert function.compile_count == 1


def test_first_calls_from_many_threads_compile_once() -> None:
    function = shlo_disc.jit(lambda x: jnp.tanh(x), dynamic="b")
    failures: list[BaseException] = []

    def call(size: int) -> None:
        try:
            np.testing.assert_allclose(function(np.ones(size, np.float32)), np.tanh(np.ones(size)), rtol=1e-6)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call, args=(size,)) for size in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert function.compile_count == 1


# ---- as jax.jit has it ----------------------------------------------------------------------------------------------


def scaled(x: Any, times: int, name: str = "sum") -> Any:
    """Another program for each `times` and `name`."""
    assert isinstance(times, int | float)
    return getattr(jnp, name)(x * times, axis=1)


@pytest.mark.parametrize("static", [{"static_argnums": (1, 2)}, {"static_argnames": ["times", "name"]}])
def test_static_arguments(static: Any) -> None:
    function = shlo_disc.jit(scaled, dynamic=("b, ...",), **static)
    for size in (2, 5):
        x = np.arange(size * 3, dtype=np.float32).reshape(size, 3)
        np.testing.assert_allclose(function(x, 2), 2 * x.sum(1))
        np.testing.assert_allclose(function(x, times=2), 2 * x.sum(1))
        np.testing.assert_allclose(function(x, 2, name="max"), 2 * x.max(1))
        np.testing.assert_allclose(function(x, 3), 3 * x.sum(1))
    assert function.compile_count == 4, "by position and by name are different calls, as in jax.jit"


def test_static_arguments_in_front_and_from_the_end() -> None:
    first = shlo_disc.jit(lambda n, x: x[:, :n], static_argnums=0, dynamic=(None, "b, ..."))
    last = shlo_disc.jit(lambda x, n: x[:, :n], static_argnums=-1, dynamic="b, ...")
    for size in (2, 5):
        x = np.arange(size * 3, dtype=np.float32).reshape(size, 3)
        np.testing.assert_array_equal(first(2, x), x[:, :2])
        np.testing.assert_array_equal(last(x, 1), x[:, :1])
    assert (first.compile_count, last.compile_count) == (1, 1)


def test_equal_values_of_different_types_are_different() -> None:
    function = shlo_disc.jit(lambda x, n: x * n, static_argnums=1)
    x = np.arange(3)
    assert function(x, 2).dtype == np.int32 and function(x, 2.0).dtype == np.float32


def test_static_arguments_that_are_none() -> None:
    for wrong in ({"static_argnums": 2}, {"static_argnums": -3}, {"static_argnames": "z"}, {"static_argnums": "a"}):
        with pytest.raises(OptionError, match="static_arg"):
            shlo_disc.jit(lambda x, y: x + y, **wrong)
    with pytest.raises(OptionError, match="cannot be donated"):
        shlo_disc.jit(lambda x, y: x + y, static_argnums=0, donate_argnums=0)
    with pytest.raises(ArgumentTypeError, match="static argument 1 has to be hashable, and list is not"):
        shlo_disc.jit(lambda x, y: x, static_argnums=1)(np.ones(2, np.float32), [1])


def test_methods() -> None:
    class Layer:
        def __init__(self, width: int):
            self.width = width

        @shlo_disc.jit(static_argnums=0, dynamic=(None, "b, ..."))
        def __call__(self, x: Any) -> Any:
            return x[:, : self.width] + self.width

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    layers = Layer(2), Layer(3)
    for layer in layers:
        np.testing.assert_array_equal(layer(x), x[:, : layer.width] + layer.width)
        np.testing.assert_array_equal(layer(x[:2]), x[:2, : layer.width] + layer.width)
    assert Layer.__call__.compile_count == 2


def test_donated_arguments_are_deleted() -> None:
    function = shlo_disc.jit(lambda n, x, y: x * n + y, static_argnums=0, donate_argnums=1, dynamic=(None, "b", "b"))
    for size in (3, 7):
        x, y = jnp.arange(float(size)), jnp.ones(size)
        np.testing.assert_array_equal(function(2, x, y), np.arange(size) * 2 + 1)
        assert x.is_deleted() and not y.is_deleted()


def test_a_second_size_is_told_of_dynamic() -> None:
    function = shlo_disc.jit(lambda x: x + 1)
    function(np.ones(3, np.float32))
    with pytest.raises(RecompileError, match=r"args\[0\].shape\[0\] is meant to change, dynamic= says so"):
        function(np.ones(4, np.float32))


def test_specifications_for_another_number_of_arguments() -> None:
    with pytest.raises(OptionError, match="dynamic= has 1 entry, and the call has 2 positional arguments"):
        shlo_disc.jit(lambda x, y: x + y, dynamic=("b",))(np.ones(2, np.float32), np.ones(2, np.float32))


def test_sizes_by_the_names_of_arguments() -> None:
    """However a call passes them, beside static arguments, and with arguments that it leaves out."""

    def combined(x: Any, y: Any = 1.0, power: int = 1, *, z: Any = 0.0) -> Any:
        return x**power + y + z

    for options in ({"static_argnames": "power"}, {"filter": True}):
        for args, kwargs in ((("x",), ("y",)), ((), ("x", "y", "z")), (("x", "y"), ()), (("x",), ("z",))):
            names = {"x": "n", "y": "n", "z": "n"}
            function = shlo_disc.jit(combined, dynamic=names, **options)  # type: ignore[call-overload]
            for size in (3, 5):
                x = np.arange(size, dtype=np.float32)
                result = function(*(x for _ in args), power=2, **dict.fromkeys(kwargs, x))
                others = len(args) + len(kwargs) - 1
                np.testing.assert_array_equal(result, x**2 + others * x + ("y" not in (*args, *kwargs)))
            assert function.compile_count == 1
    twice = shlo_disc.jit(combined, dynamic={"x": "n", "z": "n"}, compile_once=False)
    ones = np.ones(3, np.float32)
    np.testing.assert_array_equal(twice(ones), 2 * ones)
    for size in (3, 4):
        ones = np.ones(size, np.float32)
        np.testing.assert_array_equal(twice(ones, z=ones), 3 * ones)
    assert twice.compile_count == 2
    for changed in ({"z": "n"}, {"x": "n"}):
        fixed = shlo_disc.jit(lambda x, *, z: x.sum() + z.sum(), dynamic=changed)
        fixed(ones, z=ones)
        with pytest.raises(RecompileError, match="or with a dict of entries by the names of arguments"):
            fixed(*(ones[:2] if "z" in changed else ones,), z=ones if "z" in changed else ones[:2])


def test_names_that_are_no_arguments() -> None:
    for options in ({}, {"filter": True}):
        with pytest.raises(OptionError, match="dynamic= names 'xs', which is no argument of the function: did you"):
            shlo_disc.jit(lambda x, y: x + y, dynamic={"xs": "n"}, **options)  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="'k', which is no argument of the function: it takes x, y"):
        shlo_disc.jit(lambda x, y: x + y, dynamic={"k": "n"})
    with pytest.raises(OptionError, match=r"or by name, as in dynamic=\{'x': 'n'\}"):
        shlo_disc.jit(lambda x, y: x + y, dynamic=("n",))(x=np.ones(2), y=np.ones(2))


def test_sizes_that_an_operation_of_the_function_refuses() -> None:
    """No program would take them, so the error does not say to compile another."""
    rows = shlo_disc.jit(lambda x: x.reshape(x.shape[0], x.shape[1] // 4, 4), dynamic="b, s")
    assert rows(np.ones((2, 8), np.float32)).shape == (2, 2, 4)
    with pytest.raises(
        RecompileError, match=r"requires b\*s == .*, and b is 2, .* and s is 9, .*: pass sizes"
    ) as refused:
        rows(np.ones((2, 9), np.float32))
    assert "compile_once" not in str(refused.value)
