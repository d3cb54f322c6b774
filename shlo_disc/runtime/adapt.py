# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments that are neither NumPy arrays, nor Buffers, nor Python numbers."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from shlo_disc.errors import ArgumentTypeError

from . import _native
from .keys import is_key_array, key_data


def adapt_argument(value: Any, path: str, key: str = "") -> Any:
    """Turns a call's argument into a NumPy array, a jax.Array, or an object with `__dlpack__`.

    `path` names the argument in errors; `key` is the implementation of PRNG keys that the program takes, "" where it
    takes numbers. Raises ArgumentTypeError when the value is no array, or one of other keys.
    """
    if isinstance(value, np.generic | np.ndarray):
        return unmasked(value, path)
    if is_key_array(value):
        value = key_data(value, path, key)  # a tracer where JAX traces
    if is_jax_array(value):
        return value
    if is_torch_tensor(value):
        return tensor_argument(value, path)
    if hasattr(value, "__dlpack__"):
        return value
    if hasattr(value, "__array__"):
        return _by_array_method(value, path)
    if hasattr(value, "__cuda_array_interface__"):
        raise ArgumentTypeError(f"{path} is on a GPU, and the program runs on the CPU: copy it to the host")
    raise ArgumentTypeError(f"{path} is a {type(value)}, which is not an array or a number")


_FILLED = "value.filled(...), or pass its data and its mask"


def unmasked(value: Any, path: str) -> np.ndarray:
    """A NumPy array of any class as a plain one. Raises ArgumentTypeError on masked arrays."""
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentTypeError(f"{path} is a masked array, whose mask would be lost: use {_FILLED}")
    return np.asarray(value)


def _by_array_method(value: Any, path: str) -> np.ndarray:
    try:
        made = value.__array__()
        return unmasked(made, path) if isinstance(made, np.ma.MaskedArray) else np.asarray(value)
    except ArgumentTypeError:
        raise
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{path} cannot be turned into an array: {error}") from error


def is_torch_tensor(value: object) -> bool:
    """Tells whether `value` is a tensor of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def tensor_argument(value: Any, path: str) -> Any:
    """A tensor of PyTorch as one that PyTorch hands over by DLPack: without a gradient, and with its signs in memory.

    Raises ArgumentTypeError where PyTorch records gradients, and the tensor requires one, which would be lost; and for
    tensors that are not dense, or have no elements.
    """
    if value.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise ArgumentTypeError(
            f"{path} requires a gradient, and none flows through a compiled program: call it under torch.no_grad(), "
            'pass a .detach() of it, or, for training, use torch.compile(module, backend="shlo_disc")'
        )
    if fault := no_elements(value):
        raise ArgumentTypeError(f"{path} is {fault}")
    plain = value.detach()
    return plain.resolve_neg().resolve_conj() if plain.is_neg() or plain.is_conj() else plain


def no_elements(value: Any) -> str:
    """A description of a tensor whose elements cannot be read, and what to pass instead; "" for others."""
    torch = sys.modules["torch"]
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return "a tensor of torch.vmap or torch.func, which no compiled program takes: call the module there"
    if type(value).__name__ == "FakeTensor":
        return "a FakeTensor of a trace, which has no elements: call the module there, not its program"
    if hasattr(value, "__tensor_flatten__"):
        return f"a {type(value).__name__}, which wraps other tensors: pass one that has elements"
    if value.device.type == "meta":
        return 'a tensor of the device "meta", which has no elements: pass one with elements'
    if value.is_nested or value.is_quantized:
        return f"a {'nested' if value.is_nested else 'quantized'} tensor, not a dense one"
    if value.layout != torch.strided:
        return f"a tensor of layout {value.layout}, not a dense one: pass its .to_dense()"
    return ""


def detached(value: Any) -> Any:
    """An argument that is kept, such as a weight: without its gradient, if it is a parameter of PyTorch."""
    return value.detach() if is_torch_tensor(value) and value.requires_grad else value


def is_jax_array(value: object) -> bool:
    """Tells whether `value` is a concrete jax.Array, and from then on lets the core recognise them by type.

    Raises ArgumentTypeError for values that exist only while JAX traces a function.
    """
    jax = sys.modules.get("jax")
    if jax is None:
        return False
    if isinstance(value, jax.core.Tracer):
        raise ArgumentTypeError(
            "a program cannot be bound, or called bound, inside a function that JAX is tracing (jit, grad, vmap): "
            f"call the executable itself there; the argument is {value}"
        )
    if not isinstance(value, jax.Array) or jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
        return False
    _native.set_jax_array_type(type(value))
    return True
