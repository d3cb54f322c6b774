# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results as jax.Array, without a copy. JAX itself is imported with the first such result."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

ToJax = Callable[[np.ndarray], Any]
Collect = Callable[[], None]


def jax_elements(array: Any) -> np.ndarray:
    """The elements of a jax.Array as they are now.

    JAX keeps the NumPy array that it has gathered from several devices, and would not see that the memory of one, which
    may be somebody else's, has changed.
    """
    if array.is_deleted() or not array.is_fully_addressable or len(array.sharding.device_set) == 1:
        return np.asarray(array)
    shards = array.addressable_shards
    if array.is_fully_replicated:
        return np.asarray(shards[0].data)
    whole = np.empty(array.shape, array.dtype)
    for shard in shards:
        whole[shard.index] = np.asarray(shard.data)
    return whole


def shared_with_jax(buffer: Any) -> Any:
    """A Buffer on a GPU as a jax.Array there, which shares its memory."""
    import jax

    return jax.dlpack.from_dlpack(buffer)


@functools.cache
def jax_converter() -> tuple[ToJax, Collect | None]:
    """Turns NumPy arrays into jax.Arrays on the CPU that share the memory, uncommitted like the results of jax.jit.

    The fastest way that works in the installed JAX: `batched_device_put` is not part of its public interface. A
    jax.Array that is dropped does not drop the NumPy array at once: JAX collects them, and does so when the second
    function is called, if there is one.
    """
    try:
        convert = _by_device_put()
        if np.asarray(convert(np.zeros(2, np.float32))).tolist() == [0.0, 0.0]:
            return convert, _collector()
    except (ImportError, AttributeError, TypeError):
        pass
    return _by_dlpack, None


def collect_dropped() -> None:
    """Free the memory of results that were jax.Arrays and have been dropped."""
    if "jax" in sys.modules and (collect := jax_converter()[1]) is not None:
        collect()


def _collector() -> Collect | None:
    from jaxlib import _jax  # type: ignore[attr-defined,unused-ignore]

    return getattr(_jax, "collect_garbage", None)


def _by_device_put() -> ToJax:
    import jax
    from jax.core import ShapedArray
    from jaxlib import _jax  # type: ignore[attr-defined,unused-ignore]

    device = jax.devices("cpu")[0]
    devices = [device]
    sharding = jax.sharding.SingleDeviceSharding(device)
    put: Any = _jax.batched_device_put
    aval = functools.lru_cache(maxsize=4096)(ShapedArray)

    def convert(array: np.ndarray) -> Any:
        return put(aval(array.shape, array.dtype), sharding, [array], devices, False)

    return convert


def _by_dlpack(array: np.ndarray) -> Any:
    import jax

    return jax.dlpack.from_dlpack(array)
