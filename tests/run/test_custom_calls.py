# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that a user registers: plain C through ctypes, and handlers of XLA's FFI, at symbolic sizes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from jaxlib import lapack

import shlo_disc
from shlo_disc.errors import ArtifactError, CustomCallError, OptionError, UnsupportedError
from shlo_disc.runtime import Artifact, Client


class Buffer(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("dtype", ctypes.c_char_p),
    )

    def array(self) -> np.ndarray:
        shape = tuple(self.dims[i] for i in range(self.rank))
        dtype = np.dtype({b"f32": "float32", b"i32": "int32", b"c64": "complex64"}[self.dtype])
        count = int(np.prod(shape, dtype=np.int64))
        memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(self.data or 0) if count else b""
        return np.frombuffer(memory, dtype).reshape(shape)


class Attribute(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("count", ctypes.c_int64),
        ("data", ctypes.c_void_p),
    )


class Call(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_int64),
        ("operand_count", ctypes.c_int64),
        ("operands", ctypes.POINTER(Buffer)),
        ("result_count", ctypes.c_int64),
        ("results", ctypes.POINTER(Buffer)),
        ("attribute_count", ctypes.c_int64),
        ("attributes", ctypes.POINTER(Attribute)),
    )


SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Call))
MESSAGE = ctypes.create_string_buffer(b"no good")


def plain(function: Callable[[Call], Any]) -> Any:
    """A Python function with the plain C signature; it fails when it returns a true value."""

    def call(pointer: Any) -> int | None:
        return ctypes.addressof(MESSAGE) if function(pointer.contents) else None

    return SIGNATURE(call)


def copy_out(call: Call, value: np.ndarray, position: int = 0) -> None:
    target = call.results[position].array()
    assert target.shape == value.shape
    ctypes.memmove(call.results[position].data, np.ascontiguousarray(value, target.dtype).ctypes.data, target.nbytes)


def ffi_call(target: str, like: Callable[..., Any], /, **attributes: Any) -> Callable[..., Any]:
    """A JAX function of one array that calls `target`; `like` says what its results are like."""

    def function(x: jax.Array) -> Any:
        return jax.ffi.ffi_call(target, like(x))(x, **attributes)

    return function


def same(x: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


# ---- the plain signature --------------------------------------------------------------------------------------------


def test_symbolic_sizes() -> None:
    """The function gets the sizes of each run; what is around the call is fused as ever."""
    seen: list[tuple[int, ...]] = []

    def double(call: Call) -> None:
        x = call.operands[0].array()
        seen.append(x.shape)
        copy_out(call, x * 2)

    shlo_disc.register_custom_call("test.double", plain(double))
    executable = shlo_disc.compile(lambda x: ffi_call("test.double", same)(x + 1) - 1, args=(("b, n", "float32"),))
    for shape in ((1, 1), (3, 17), (2, 40)):
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        np.testing.assert_array_equal(executable(x), (x + 1) * 2 - 1)
    assert seen == [(1, 1), (3, 17), (2, 40)]
    assert ("test.double", "library") in executable.kernels


def test_several_results_and_dtypes() -> None:
    def split(call: Call) -> None:
        x = call.operands[0].array()
        copy_out(call, x.sum(1), 0)
        copy_out(call, np.int32([x.shape[0]]), 1)

    shlo_disc.register_custom_call("test.split", plain(split))

    def like(x: jax.Array) -> Any:
        return jax.ShapeDtypeStruct(x.shape[:1], x.dtype), jax.ShapeDtypeStruct((1,), jnp.int32)

    executable = shlo_disc.compile(ffi_call("test.split", like), args=(("b, 3", "complex64"),))
    x = (np.arange(12) * 1j).astype(np.complex64).reshape(4, 3)
    total, rows = executable(x)
    np.testing.assert_array_equal(total, x.sum(1))
    assert rows == [4]


def test_attributes() -> None:
    found: dict[str, Any] = {}

    def record(call: Call) -> None:
        types = {b"i64": np.int64, b"f32": np.float32, b"f64": np.float64, b"i1": np.bool_, b"i32": np.int32}
        for attribute in call.attributes[: call.attribute_count]:
            if attribute.dtype == b"string":
                found[attribute.name.decode()] = ctypes.string_at(attribute.data, attribute.count).decode()
                continue
            dtype = np.dtype(types[attribute.dtype])
            data = ctypes.string_at(attribute.data, attribute.count * dtype.itemsize)
            found[attribute.name.decode()] = np.frombuffer(data, dtype)
        copy_out(call, call.operands[0].array())

    shlo_disc.register_custom_call("test.record", plain(record))
    given = {
        "count": np.int64(-(2**63)), "scale": np.float32(0.1), "limit": np.float64("inf"), "yes": True, "label": "ä b",
        "sizes": np.array([1, 2, 3], np.int64), "rates": np.array([0.5, 0.1], np.float64),
    }  # fmt: skip
    executable = shlo_disc.compile(ffi_call("test.record", same, **given), args=(("n", "float32"),))
    executable(np.zeros(3, np.float32))
    assert set(found) == set(given)
    for name, value in given.items():
        np.testing.assert_array_equal(np.ravel(found[name]), np.ravel(value))


def test_errors_are_raised() -> None:
    shlo_disc.register_custom_call("test.fail", plain(lambda call: call.operands[0].dims[0] > 2))
    executable = shlo_disc.compile(ffi_call("test.fail", same), args=(("n", "float32"),))
    with pytest.raises(CustomCallError, match="'test.fail' failed: no good"):
        executable(np.zeros(3, np.float32))
    executable(np.zeros(2, np.float32))  # and the executable is as good as before


def test_from_several_threads() -> None:
    def negate(call: Call) -> None:
        copy_out(call, -call.operands[0].array())

    shlo_disc.register_custom_call("test.negate", plain(negate))
    executable = shlo_disc.compile(ffi_call("test.negate", same), args=(("n", "float32"),))
    wrong: list[int] = []

    def run(n: int) -> None:
        x = np.arange(n, dtype=np.float32)
        wrong.extend(i for i in range(20) if not np.array_equal(executable(x), -x))

    threads = [threading.Thread(target=run, args=(n,)) for n in (3, 50, 700)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_aliases_start_with_the_operand() -> None:
    shlo_disc.register_custom_call("test.nothing", plain(lambda call: None))

    def function(x: jax.Array) -> Any:
        return jax.ffi.ffi_call("test.nothing", same(x), input_output_aliases={0: 0})(x)

    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(shlo_disc.compile(function, args=(("n", "float32"),))(x), x)


# ---- artifacts ------------------------------------------------------------------------------------------------------


def test_artifacts_name_what_they_call() -> None:
    shlo_disc.register_custom_call("test.first", plain(lambda call: copy_out(call, call.operands[0].array() + 1)))
    executable = shlo_disc.compile(ffi_call("test.first", same), args=(("n", "float32"),))
    artifact = executable.artifact
    assert [call["target"] for call in artifact.header["calls"]] == ["test.first"]
    again = Artifact.deserialize(artifact.serialize(), trust=True)
    x = np.ones(3, np.float32)
    shlo_disc.register_custom_call("test.first", plain(lambda call: copy_out(call, call.operands[0].array() + 5)))
    np.testing.assert_array_equal(Client().load(again)(x), x + 5)
    np.testing.assert_array_equal(executable(x), x + 1)  # a loaded program keeps the function it was loaded with
    header = {**again.header, "calls": [{**again.header["calls"][0], "target": "test.gone"}]}
    with pytest.raises(ArtifactError, match="'test.gone', which is not registered"):
        Client().load(Artifact.of(header, again.object, again.constants))


# ---- handlers of XLA's FFI ------------------------------------------------------------------------------------------


def test_a_handler_of_jaxlib() -> None:
    """jaxlib's own LAPACK kernels are such handlers; this one computes a Cholesky factor, column by column."""
    handler = next(value for name, value, _ in lapack.registrations()["cpu"] if name == "lapack_spotrf_ffi")
    jax.jit(jnp.linalg.cholesky)(np.eye(2, dtype=np.float32))  # loads jaxlib's LAPACK
    shlo_disc.register_custom_call("test.potrf", handler, convention="ffi")
    like = lambda x: (same(x), jax.ShapeDtypeStruct(x.shape[:1], jnp.int32))  # noqa: E731
    executable = shlo_disc.compile(
        ffi_call("test.potrf", like, uplo=np.uint8(ord("U"))), args=(("b, n, n", "float32"),)
    )
    for b, n in ((1, 1), (3, 5)):
        a = np.random.default_rng(n).standard_normal((b, n, n)).astype(np.float32)
        a = a @ np.swapaxes(a, -1, -2) + n * np.eye(n, dtype=np.float32)
        factor, info = executable(a)
        np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(a), rtol=1e-5, atol=1e-5)
        assert not np.any(info)


HANDLER = """
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;

static ffi::Error Scale(float factor, std::string_view mode, ffi::Span<const int64_t> shifts, ffi::AnyBuffer x,
                        ffi::Result<ffi::Buffer<ffi::F32>> y) {
  if (mode != "scale") return ffi::Error::InvalidArgument("mode must be scale");
  for (size_t i = 0; i < y->element_count(); ++i)
    y->typed_data()[i] = x.typed_data<float>()[i] * factor + static_cast<float>(shifts[i % shifts.size()]);
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(TestScale, Scale,
                              ffi::Ffi::Bind().Attr<float>("factor").Attr<std::string_view>("mode")
                                  .Attr<ffi::Span<const int64_t>>("shifts").Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::Buffer<ffi::F32>>());
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_a_handler_compiled_with_the_headers(tmp_path: Path) -> None:
    source, library = tmp_path / "handler.cc", tmp_path / "handler.so"
    source.write_text(HANDLER)
    command = ["g++", "-std=c++17", "-O0", "-shared", "-fPIC", f"-I{jax.ffi.include_dir()}"]
    subprocess.run([*command, str(source), "-o", str(library)], check=True, capture_output=True)
    shlo_disc.register_custom_call("test.scale", jax.ffi.pycapsule(ctypes.CDLL(str(library)).TestScale))
    attributes = {"factor": np.float32(3), "shifts": np.array([1, 2], np.int64)}
    args = (("n", "float32"),)
    executable = shlo_disc.compile(ffi_call("test.scale", same, mode="scale", **attributes), args=args)
    for n in (1, 5, 40):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(executable(x), x * 3 + 1 + np.arange(n) % 2)
    wrong = shlo_disc.compile(ffi_call("test.scale", same, mode="other", **attributes), args=args)
    with pytest.raises(CustomCallError, match="'test.scale' failed: mode must be scale"):
        wrong(np.zeros(2, np.float32))
    missing = shlo_disc.compile(ffi_call("test.scale", same, mode="scale"), args=args)
    with pytest.raises(CustomCallError, match="test.scale"):
        missing(np.zeros(2, np.float32))


# ---- what is refused ------------------------------------------------------------------------------------------------


def test_unregistered() -> None:
    with pytest.raises(UnsupportedError, match=r"@test\.unknown at .*test_custom_calls.py.*register_custom_call"):
        shlo_disc.compile(ffi_call("test.unknown", same), args=(("n", "float32"),))


def test_layouts() -> None:
    shlo_disc.register_custom_call("test.layout", plain(lambda call: None))

    def function(x: jax.Array) -> Any:
        return jax.ffi.ffi_call("test.layout", same(x), input_layouts=[(1, 0)])(x)

    with pytest.raises(UnsupportedError, match="row-major"):
        shlo_disc.compile(function, args=(("n, n", "float32"),))


@pytest.mark.parametrize(
    ("target", "convention", "pattern"),
    [(0, None, "null"), ("f", None, "not 'f'"), (1, "rust", "one of c, ffi"), (True, None, "not True")],
)
def test_what_cannot_be_registered(target: Any, convention: str | None, pattern: str) -> None:
    with pytest.raises(OptionError, match=pattern):
        shlo_disc.register_custom_call("test.wrong", target, convention=convention)
    with pytest.raises(OptionError, match="name"):
        shlo_disc.register_custom_call("", 1)
