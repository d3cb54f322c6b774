# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every element type in buffers, and in the exchange of arrays with NumPy, JAX and DLPack."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from shlo_disc.runtime import Client
from shlo_disc.shape_dialect.dtypes import BY_NAME, DTYPES, numpy_dtype

CLIENT = Client()


@pytest.mark.parametrize("name", BY_NAME)
def test_buffers_hold_every_type(name: str) -> None:
    dtype = numpy_dtype(BY_NAME[name])
    array = np.array([[1, 0], [1, 1]]).astype(dtype)
    buffer = CLIENT.buffer_from_host(array)
    assert buffer.dtype == dtype
    assert buffer.on_device_size_in_bytes() == 4 * BY_NAME[name].bytes == array.nbytes
    assert np.asarray(buffer).tobytes() == array.tobytes()


def test_names_and_sizes() -> None:
    for dtype in DTYPES:
        assert numpy_dtype(dtype).name == dtype.numpy
        assert numpy_dtype(dtype).itemsize == dtype.bytes


@pytest.mark.parametrize("name", ["c64", "c128"])
def test_complex_buffers_by_dlpack(name: str) -> None:
    array = (np.arange(6) - 2j).astype(numpy_dtype(BY_NAME[name])).reshape(2, 3)
    assert np.from_dlpack(CLIENT.buffer_from_host(array)).tolist() == array.tolist()


def test_small_floats_by_dlpack() -> None:
    dtype = numpy_dtype(BY_NAME["f8e4m3fn"])
    array = jnp.from_dlpack(CLIENT.buffer_from_host(np.array([1, -2], dtype)))
    assert array.dtype == dtype
    assert np.asarray(array).tolist() == [1, -2]


@pytest.mark.parametrize("name", ["i4", "u2", "f4e2m1fn", "f6e3m2fn"])
def test_dlpack_has_no_type_of_less_than_a_byte_in_a_byte(name: str) -> None:
    buffer = CLIENT.buffer_from_host(np.array([1, 0]).astype(numpy_dtype(BY_NAME[name])))
    with pytest.raises(BufferError, match="less than a byte"):
        buffer.__dlpack__()
