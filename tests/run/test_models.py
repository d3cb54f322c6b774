# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example models: one compile of each serves every shape, with XLA's numbers.

The bound is `examples.model.relative_error <= 1e-5`: per result the largest absolute difference over the largest
magnitude of the reference. XLA itself differs from its own op-by-op evaluation by up to about 1e-6 in this measure at
small sizes; gradients of the real models are compared with double precision, for XLA's own are up to 8e-6 off there.
"""

from __future__ import annotations

import functools
import gc
import importlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest

import shlo_disc
from examples.model import describe, function, relative_error

NAMES = (
    "bert", "gpt2", "vit", "mlp_mixer", "transformer_train", "dien", "dien_train", "seq2seq", "resnet50",
    "asr", "asr_train", "crnn", "gpt2_decode",
)  # fmt: skip
TOLERANCE = 1e-5
KERNELS = {
    "bert": {"attention": 2, "dot": 8, "loop": 3, "row_reduce": 1},
    "gpt2": {"attention": 2, "dot": 9, "loop": 1, "row_reduce": 1},
    "vit": {"attention": 2, "dot": 10, "loop": 1, "row_reduce": 2},
    "mlp_mixer": {"dot": 10, "loop": 1, "reduce": 1, "row_reduce": 2},
    "transformer_train": {
        "attention": 2,
        "attention_gradient": 2,
        "clear": 3,
        "dot": 35,
        "loop": 5,
        "reduce": 19,
        "row_reduce": 7,
        "scatter": 3,
    },
    "dien": {"dot": 6, "loop": 8, "recurrence": 2, "reduce": 3},
    "dien_train": {"clear": 5, "dot": 20, "loop": 26, "recurrence": 4, "reduce": 8, "row_reduce": 1, "scatter": 5},
    "seq2seq": {"attention": 4, "dot": 13, "loop": 5, "row_reduce": 1},
    "resnet50": {"convolution": 4, "dot": 8, "loop": 21, "reduce": 1, "window": 1},
    "asr": {"attention": 1, "convolution": 2, "dot": 6, "loop": 4, "row_reduce": 1},
    "asr_train": {"clear": 3, "convolution": 5, "dot": 28, "loop": 18, "reduce": 12, "row_reduce": 5, "scatter": 3},
    "crnn": {"convolution": 6, "dot": 3, "loop": 19, "recurrence": 2, "window": 4},
    "gpt2_decode": {"attention": 2, "dot": 9, "loop": 5, "row_reduce": 1},
}
"""Kernels of each kind that a call of the small model launches; a layer of BERT is four dots and an attention."""
PAIRS = [(1, 1), (1, 2), (2, 1), (3, 7), (5, 11), (2, 13), (7, 3), (4, 8), (1, 15), (1, 16), (3, 17), (2, 23)]
BATCHES = [1, 2, 3, 4, 5, 7, 8, 11, 13, 15, 16, 17, 23]


def model(name: str) -> ModuleType:
    """The example module called `name`."""
    return importlib.import_module(f"examples.{name}")


def shapes(module: ModuleType, config: Any) -> list[tuple[int, ...]]:
    """At least 12 shapes: ones, twos, primes, both sides of a vector of 16, and the largest of each symbol."""
    limits = module.limits(config)
    if len(limits) == 1:
        return [(size,) for size in BATCHES] + [limits]
    if len(limits) == 3:
        return [(*pair, size) for pair, size in zip(PAIRS, BATCHES[len(PAIRS) - 1 :: -1], strict=True)] + [limits]
    return [*(p for p in PAIRS if p[1] <= limits[1]), (1, limits[1]), (limits[0], 1), limits]


@pytest.fixture(scope="module")
def small(request: pytest.FixtureRequest) -> Iterator[tuple[ModuleType, Any, Any, Any]]:
    """(module, config, params, executable compiled once) of the model named by the parameter."""
    module = model(request.param)
    executable = shlo_disc.compile(module.export(module.SMALL))
    yield module, module.SMALL, module.init(module.SMALL), executable
    gc.collect()


@functools.cache
def reference(name: str) -> Any:
    """XLA's version of the small model; it compiles anew for each shape."""
    module = model(name)
    return jax.jit(function(module, module.SMALL))


def assert_close(got: Any, want: Any) -> None:
    """The two results have one structure, and `relative_error` is within the tolerance."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    error = relative_error(got, want)
    assert error <= TOLERANCE, f"relative error {error:.2e} exceeds {TOLERANCE}"


@pytest.mark.parametrize("name", NAMES)
def test_shape_list_covers_the_edges(name: str) -> None:
    module = model(name)
    tried = shapes(module, module.SMALL)
    limits = module.limits(module.SMALL)
    assert len(set(tried)) >= 12
    assert all(any(sizes[axis] == 1 for sizes in tried) for axis in range(len(limits)))
    assert limits in tried
    assert all(sizes[1] <= limits[1] for sizes in tried if len(limits) > 1)


@pytest.mark.parametrize("small", NAMES, indirect=True)
def test_matches_xla_at_every_shape_with_one_compile(small: tuple[ModuleType, Any, Any, Any]) -> None:
    module, config, params, executable = small
    xla = reference(module.__name__.rpartition(".")[2])
    for seed, sizes in enumerate(shapes(module, config)):
        inputs = module.make_inputs(config, *sizes, seed=seed)
        assert_close(executable(params, *inputs), xla(params, *inputs))
    assert executable.compile_count == 1


@pytest.mark.parametrize("small", NAMES, indirect=True)
def test_kernel_counts(small: tuple[ModuleType, Any, Any, Any]) -> None:
    module, _, _, executable = small
    counts = Counter(kernel.kind for kernel in executable.kernels)
    assert dict(counts) == KERNELS[module.__name__.rpartition(".")[2]]


@pytest.mark.parametrize("small", NAMES, indirect=True)
def test_dynamic_equals_our_static_compile(small: tuple[ModuleType, Any, Any, Any]) -> None:
    module, config, params, executable = small
    tried = shapes(module, config)
    for sizes in (tried[0], tried[4], tried[-1]):
        static = shlo_disc.compile(module.export(config, ", ".join(map(str, sizes))))
        inputs = module.make_inputs(config, *sizes, seed=3)
        assert_close(executable(params, *inputs), static(params, *inputs))


@pytest.mark.parametrize("small", NAMES, indirect=True)
def test_same_inputs_give_the_same_bits(small: tuple[ModuleType, Any, Any, Any]) -> None:
    module, config, params, executable = small
    inputs = module.make_inputs(config, *shapes(module, config)[3])
    first, again = (jax.tree.leaves(executable(params, *inputs)) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("small", NAMES, indirect=True)
def test_out_shape_and_peak_memory_follow_the_sizes(small: tuple[ModuleType, Any, Any, Any]) -> None:
    module, config, params, executable = small
    for sizes in shapes(module, config)[::5]:
        dims = describe(sizes, module.DIMS)
        result = executable(params, *module.make_inputs(config, *sizes))
        got = [tuple(leaf.shape) for leaf in jax.tree.leaves(result)]
        predicted = jax.tree.leaves(executable.out_shape(**dims), is_leaf=lambda node: hasattr(node, "shape"))
        assert [tuple(leaf.shape) for leaf in predicted] == got
        assert executable.peak_memory(**dims) > 0


@pytest.mark.parametrize("name", ["bert", "gpt2", "vit", "transformer_train", "seq2seq", "asr"])
def test_a_length_past_the_limit_is_refused(name: str) -> None:
    module = model(name)
    executable = shlo_disc.compile(module.export(module.SMALL))
    _, longest, *others = module.limits(module.SMALL)
    with pytest.raises(shlo_disc.errors.ShapeError, match="constraint"):
        executable(module.init(module.SMALL), *module.make_inputs(module.SMALL, 1, longest + 1, *others))


def real_shapes(module: ModuleType) -> list[tuple[int, ...]]:
    """Shapes for the real configurations: the edges and some primes, with the largest taken at batch 1."""
    limits = module.limits(module.BASE)
    if len(limits) == 1:
        return [(size,) for size in (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 24)]
    if len(limits) == 3:
        return [(1 + n % 3, length, 2 * n + 1) for n, length in enumerate((1, 2, 7, 13, 16, 17, 31, 64, 97, limits[1]))]
    longest = limits[1]
    lengths = (1, 2, 7, 13, 16, 17, 31, 64, 97, 128, longest - 1, longest)
    batches = itertools.cycle((1, 2, 3))
    return [(1 if length > 128 else next(batches), length) for length in lengths]


def exact(module: ModuleType) -> Callable[..., Any]:
    """XLA's version of a real model, computed in double precision and rounded at the end."""
    computed = jax.jit(function(module, module.BASE))

    def run(*arguments: Any) -> Any:
        with jax.enable_x64(True):
            return _of_precision(computed(*_of_precision(arguments, np.float32, np.float64)), np.float64, np.float32)

    return run


def _of_precision(tree: Any, old: type, new: type) -> Any:
    """A pytree as NumPy's arrays, those of one dtype being of another."""
    return jax.tree.map(lambda a: a.astype(new) if a.dtype == old else a, jax.tree.map(np.asarray, tree))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_real_configuration_matches_xla(name: str) -> None:
    module = model(name)
    params = jax.tree.map(jax.numpy.asarray, module.init(module.BASE))
    executable = shlo_disc.compile(module.export(module.BASE))
    xla = exact(module) if name.endswith("_train") else jax.jit(function(module, module.BASE))
    for sizes in real_shapes(module):
        inputs = module.make_inputs(module.BASE, *sizes)
        assert_close(executable(params, *inputs), xla(params, *inputs))
    assert executable.compile_count == 1
    fixed = shlo_disc.compile(module.export(module.BASE, ", ".join(map(str, real_shapes(module)[3]))))
    inputs = module.make_inputs(module.BASE, *real_shapes(module)[3])
    assert_close(executable(params, *inputs), fixed(params, *inputs))
