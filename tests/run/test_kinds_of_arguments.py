# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of every kind, beside what `jax.jit` makes of them, or refused with an error that says why."""

from __future__ import annotations

import collections
import enum
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ArgumentTypeError, OptionError, ProgramError
from shlo_disc.runtime import Client
from shlo_disc.shape_dialect.dtypes import BY_NUMPY

BASE = np.arange(12, dtype=np.float32).reshape(3, 4)
READ_ONLY = BASE.copy()
READ_ONLY.flags.writeable = False
MASKED = np.ma.masked_array(BASE, BASE > 5)


class Size(enum.IntEnum):
    """Numbers with names."""

    SMALL = 3


class Plain(np.ndarray):
    """A class of arrays that means nothing else."""


class Converts:
    """An object with `__array__`."""

    def __init__(self, array: Any):
        self._array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._array


class ReadOnlyDlpack:
    """An array that cannot be exported without saying that it is read-only."""

    def __dlpack__(self, **options: Any) -> Any:
        return READ_ONLY.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return READ_ONLY.__dlpack_device__()


def twice(tree: Any) -> Any:
    """Every leaf but booleans added to itself."""
    return jax.tree.map(lambda x: x if x.dtype == bool else x + x, tree)


TAKEN: dict[str, Any] = {
    "empty": np.zeros((0, 4), np.float32),
    "of no dimensions": np.array(3, np.float32),
    "read-only": READ_ONLY,
    "Fortran order": np.asfortranarray(BASE),
    "negative strides": BASE[::-1, ::-2],
    "strides of zero": np.broadcast_to(np.float32(2), (3, 4)),
    "unaligned": np.frombuffer(b"\0" + BASE.tobytes(), np.uint8)[1:].view(np.float32),
    "matrix": np.matrix(BASE),
    "subclass": BASE.view(Plain),
    "booleans": BASE > 5,
    "complex": BASE.astype(np.complex64) * 1j,
    "bfloat16": BASE.astype(ml_dtypes.bfloat16),
    "float8": BASE.astype(ml_dtypes.float8_e4m3fn),
    "int4": np.arange(-4, 4).astype(ml_dtypes.int4),
    "uint2": np.arange(4).astype(ml_dtypes.uint2),
    "NumPy's numbers": [np.float32(2), np.bool_(True), np.int8(3)],
    "a number with a name": Size.SMALL,
    "numbers at the ends": [float("inf"), -0.0, -(2**31) // 2],
    "nothing": None,
    "empty containers": [(), {}, [None]],
    "containers": collections.OrderedDict(b=BASE, a=[None, (BASE,)]),
}


@pytest.mark.parametrize("name", TAKEN)
def test_as_jax_has_it(name: str) -> None:
    value = TAKEN[name]
    got, want = shlo_disc.jit(twice)(value), jax.jit(twice)(value)
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for mine, other in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(other))


@pytest.fixture(scope="module")
def doubled() -> shlo_disc.Executable:
    return shlo_disc.compile(lambda x: x + x, args=(("n, m", "float32"),))


@pytest.mark.parametrize("make", [ReadOnlyDlpack, lambda: Converts(BASE)], ids=["DLPack", "__array__"])
def test_objects_of_other_libraries(doubled: shlo_disc.Executable, make: Any) -> None:
    np.testing.assert_array_equal(doubled(make()), 2 * BASE)


@pytest.mark.parametrize("value", [MASKED, Converts(MASKED), MASKED.astype(np.float64)], ids=["array", "object", "f64"])
def test_masked_arrays_are_refused(doubled: shlo_disc.Executable, value: Any) -> None:
    calls = [doubled, doubled.bind, shlo_disc.jit(lambda x: x + x)]
    calls += [] if isinstance(value, Converts) else [Client().buffer_from_host]
    for call in calls[:2] if isinstance(value, Converts) else calls:
        with pytest.raises((ArgumentTypeError, shlo_disc.RecompileError), match="is a masked array"):
            call(value)


@pytest.mark.parametrize(
    "value", ["a", b"a", {1}, object(), np.array(["a"]), BASE.astype(object), BASE.astype(np.longdouble)]
)
def test_what_is_no_array_of_numbers(doubled: shlo_disc.Executable, value: Any) -> None:
    for call in (doubled, shlo_disc.jit(lambda x: x + x)):
        with pytest.raises(ArgumentTypeError):
            call(value)
    with pytest.raises(ProgramError if isinstance(value, str) else ArgumentTypeError):  # a text is taken for a shape
        shlo_disc.compile(lambda x: x + x, args=(value,))


@pytest.mark.parametrize("value", [None, "a", BASE.astype(object), jax.random.key(0)], ids=str)
def test_buffers_of_what_programs_do_not_take(value: Any) -> None:
    with pytest.raises(ArgumentTypeError):
        Client().buffer_from_host(value)


@pytest.mark.parametrize("value", [np.float32(3), np.array(3.0), 3.0, [1, 2], BASE[::-1], BASE.astype(">f4")], ids=str)
def test_buffers_have_the_shape_of_what_they_are_of(value: Any) -> None:
    buffer = Client().buffer_from_host(value)
    assert buffer.shape == np.shape(value)
    np.testing.assert_array_equal(np.asarray(buffer), value)


def test_static_arguments() -> None:
    def scaled(x: Any, n: Any) -> Any:
        return x * 2 if n == "a" else x

    for options in ({"static_argnums": 1}, {"static_argnames": "n"}):
        jitted = shlo_disc.jit(jax.jit(scaled, **options))
        for call in (lambda n: jitted(BASE[0], n), lambda n: jitted(BASE[0], n=n)):  # noqa: B023
            np.testing.assert_array_equal(call("a"), 2 * BASE[0])
            np.testing.assert_array_equal(call("b"), BASE[0])
    program = shlo_disc.compile(jax.jit(scaled, static_argnums=1), args=(("n", "float32"), "a"))
    np.testing.assert_array_equal(program(BASE[0]), 2 * BASE[0])


def test_static_arguments_of_functions_of_jax() -> None:
    """Most functions of `jax.numpy` are made by `jax.jit`, with axes and the like as static arguments."""
    np.testing.assert_array_equal(shlo_disc.jit(jnp.sort)(-BASE), np.sort(-BASE))
    sort = shlo_disc.jit(jnp.sort, dynamic="n, m")
    for axis in (0, 1, None):
        np.testing.assert_array_equal(sort(-BASE, axis=axis), np.sort(-BASE, axis=axis))
        np.testing.assert_array_equal(sort(-BASE, axis), np.sort(-BASE, axis=axis))


@pytest.mark.parametrize("static", ["n, 4", ("a", 4), ("relu", "tanh", 3), ("b", 4, "float32")], ids=str)
def test_static_arguments_that_look_like_shapes(static: Any) -> None:
    function = jax.jit(lambda x, mode: x * len(mode), static_argnums=1)
    program = shlo_disc.compile(function, args=(("n", "float32"), static))
    np.testing.assert_array_equal(program(BASE[0]), len(static) * BASE[0])


@pytest.mark.parametrize("dynamic", [3, ("n", "m"), "n, 5", "n,,m"], ids=str)
def test_wrong_dynamic(dynamic: Any) -> None:
    with pytest.raises(OptionError, match="dynamic"):
        shlo_disc.jit(lambda x: x + x, dynamic=dynamic)(BASE)


STATED: list[tuple[Any, str, str, str]] = [
    ((("b, 4", "float64"),), "args[0]", "float64", "float32"),
    (({"ids": ("b", np.int64)},), "args[0]['ids']", "int64", "int32"),
    ((("b", "u64"),), "args[0]", "uint64", "uint32"),
    ((jax.ShapeDtypeStruct((3,), np.dtype("complex128")),), "args[0]", "complex128", "complex64"),
    ((jax.ShapeDtypeStruct((3,), np.dtype("float64")),), "args[0]", "float64", "float32"),
    ((np.zeros(3),), "args[0]", "float64", "float32"),
    (({"ids": np.arange(3)},), "args[0]['ids']", "int64", "int32"),
]


def test_stated_64_bit_dtypes() -> None:
    """They are those of JAX; a warning at the caller's line says so where that has 32 bits."""
    for args, where, wide, narrow in STATED:
        with pytest.warns(UserWarning, match="jax_enable_x64") as warned:
            executable = shlo_disc.compile(lambda x: jax.tree.leaves(x)[0] + 1, args=args)
        assert executable.signature.arguments[0].dtype == BY_NUMPY[narrow].name
        assert len(warned) == 1 and warned[0].filename == __file__
        text = str(warned[0].message)
        assert text.startswith(f"{where} has the dtype {wide}, which JAX makes {narrow}") and "JAX_ENABLE_X64=1" in text
        assert f"call it with arrays that .astype({narrow!r}) gives" in text


@pytest.mark.filterwarnings("error")
def test_64_bit_dtypes_without_a_warning() -> None:
    for args in (
        (("b", float),),
        (np.zeros(3, np.float32),),
        (1.5,),
        (("b", "int32"),),
        (("", jax.random.key(0).dtype),),
    ):
        shlo_disc.compile(lambda x: x, args=args)
    with jax.enable_x64(True):
        executable = shlo_disc.compile(lambda x: x + 1, args=(("b", "float64"),))
    assert executable.signature.arguments[0].dtype == "f64"


def test_deleted_arrays(doubled: shlo_disc.Executable) -> None:
    array = jnp.asarray(BASE)
    array.delete()
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        doubled(array)


SHARDED = """
import jax, numpy as np, shlo_disc
raw = np.empty(256 + 64, np.uint8)
owner = raw[-raw.ctypes.data % 64:][:256].view(np.float32)
program = shlo_disc.compile(lambda x: x + 1, args=(("n", "float32"),))
mesh = jax.make_mesh((2,), ("i",))
places = [jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)) for axes in (("i",), ())]
for place in (*places, jax.devices()[1]):
    owner[:] = np.arange(64)
    array = jax.device_put(owner, place)
    for turn in range(3):
        want = np.asarray(jax.jit(lambda x: x + 1)(array))
        assert np.array_equal(program(array), want), (place, turn)
        owner[:] += 1
print("right")
"""


def test_arrays_on_several_devices() -> None:
    """Whose memory may be somebody else's, too."""
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run([sys.executable, "-c", SHARDED], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["right"], done.stderr
