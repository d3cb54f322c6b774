# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C API by ctypes: bound weights, and memory for results."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

import shlo_disc

F32 = (2, 32, 1)


class Tensor(ctypes.Structure):
    """A DLTensor of f32, contiguous."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


def tensor(array: np.ndarray, code: int = 2) -> Tensor:
    sizes = (ctypes.c_int64 * array.ndim)(*array.shape)
    made = Tensor(array.ctypes.data, (1, 0), array.ndim, code, 32, 1, ctypes.addressof(sizes), None, 0)
    made.keep = sizes
    return made


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """w, x -> x @ w for w: f32[24, 40], x: f32[b, 24]."""
    path = tmp_path_factory.mktemp("saved") / "product.disc"
    shlo_disc.compile(lambda w, x: x @ w, args=(("24, 40", "float32"), ("b, 24", "float32"))).save(path)
    return path


class Library:
    def __init__(self) -> None:
        self.native = ctypes.CDLL(shlo_disc.get_library())
        self.native.disc_error_kind.restype = self.native.disc_error_argument.restype = ctypes.c_char_p

    def error(self, name: str, *args: object) -> tuple[str, str | None] | None:
        """None, or the kind and the argument of the error."""
        function = getattr(self.native, name)
        function.restype = ctypes.c_void_p
        error = function(*args)
        if error is None:
            return None
        kind = self.native.disc_error_kind(ctypes.c_void_p(error))
        argument = self.native.disc_error_argument(ctypes.c_void_p(error))
        self.native.disc_free_error(ctypes.c_void_p(error))
        return kind.decode(), argument and argument.decode()


def test_bound_weights_and_memory_of_results(saved: Path) -> None:
    rng = np.random.default_rng(0)
    w, library = rng.standard_normal((24, 40), np.float32), Library()
    program, bound = ctypes.c_void_p(), ctypes.c_void_p()
    options = (ctypes.c_int64 * 6)(48, 1, 0, 0, 0, 0)
    assert library.error("disc_load", str(saved).encode(), options, ctypes.byref(program)) is None
    assert library.error("disc_bind", program, ctypes.byref(tensor(w, 0)), ctypes.c_size_t(1), ctypes.byref(bound)) == (
        "ArgumentTypeError", shlo_disc.load(saved, trust=True).artifact.header["arguments"][0]["path"],
    )  # fmt: skip
    assert library.error("disc_bind", program, ctypes.byref(tensor(w)), ctypes.c_size_t(1), ctypes.byref(bound)) is None
    kept = w.copy()
    w[:] = np.nan
    one, executable = ctypes.c_size_t(1), shlo_disc.load(saved, trust=True)
    for rows in (1, 2, 7, 65):
        x, plan = rng.standard_normal((rows, 24), np.float32), ctypes.c_void_p()
        sizes = (ctypes.c_int64 * 2)(rows, 24)
        assert library.error("disc_plan", bound, sizes, ctypes.c_size_t(2), ctypes.byref(plan)) is None
        for shift in (0, 1):  # one of both is not aligned to 64 bytes
            out = np.zeros(rows * 40 + 1, np.float32)[shift:][: rows * 40].reshape(rows, 40)
            call = (ctypes.byref(tensor(x)), one, ctypes.byref(tensor(out)), one)
            assert library.error("disc_run", plan, *call) is None
            np.testing.assert_allclose(out, executable.bind(kept)(x), rtol=2e-5, atol=2e-6)
        big = np.zeros(rows * 40 + 24, np.float32)
        shared = ctypes.byref(tensor(big[: rows * 24].reshape(rows, 24))), one
        assert library.error(
            "disc_run", plan, *shared, ctypes.byref(tensor(big[4:][: rows * 40].reshape(rows, 40))), one
        ) == ("ValueError", None)
        library.native.disc_free_plan(plan)
    library.native.disc_free_program(bound)
    library.native.disc_free_program(program)


@pytest.mark.parametrize("strides", [(1, 3), (-24, 1), (48, 2), (0, 0)], ids=str)
def test_strided_arguments(saved: Path, strides: tuple[int, int]) -> None:
    library, program = Library(), ctypes.c_void_p()
    options = (ctypes.c_int64 * 5)(40, 1, 0, 0, 0)
    assert library.error("disc_load", str(saved).encode(), options, ctypes.byref(program)) is None
    w = np.random.default_rng(0).standard_normal((24, 40)).astype(np.float32)
    memory = np.random.default_rng(1).standard_normal(512).astype(np.float32)
    start = memory[200:]
    x = np.lib.stride_tricks.as_strided(start, (3, 24), [4 * s for s in strides])
    parts = tensor(w), tensor(x)  # they keep their sizes alive
    given = (Tensor * 2)(*parts)
    steps = (ctypes.c_int64 * 2)(*strides)
    given[1].strides = ctypes.addressof(steps)
    results = ctypes.c_void_p()
    assert library.error("disc_call", program, given, ctypes.c_size_t(2), ctypes.byref(results)) is None
    library.native.disc_result.restype = ctypes.POINTER(Tensor)
    found = library.native.disc_result(results, ctypes.c_size_t(0)).contents
    got = np.ctypeslib.as_array(ctypes.cast(found.data, ctypes.POINTER(ctypes.c_float)), (3, 40))
    np.testing.assert_allclose(got, x @ w, rtol=2e-5, atol=1e-5)
    library.native.disc_free_results(results)
    steps[0] = 1 << 62
    assert library.error("disc_call", program, given, ctypes.c_size_t(2), ctypes.byref(results)) == (
        "ShapeError", "args[1]",
    )  # fmt: skip
    library.native.disc_free_program(program)
