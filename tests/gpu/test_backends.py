# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Those that shlo_disc is measured beside on GPUs, here on a processor: they compute the same program."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from benchmarks.gpu.backends import Backend, Refused
from benchmarks.gpu.backends.xla import Jit
from benchmarks.gpu.bundle import Bundle, Program
from benchmarks.gpu.recording import Source, record
from benchmarks.gpu.works import PLAIN, plain_work, sources_of
from tests.gpu.marks import needs_libdevice

pytest.importorskip("torch")

from benchmarks.torch_models.plain import PROGRAMS

pytestmark = needs_libdevice


class OnProcessor(Jit):
    """XLA where there is no GPU."""

    platform = "cpu"


def recorded(name: str, folder: Path) -> tuple[Bundle, Program, Source]:
    """A work in a bundle, timed at two small shapes."""
    (source,) = sources_of(name)
    assert source.work is not None
    source = dataclasses.replace(source, work=dataclasses.replace(source.work, shapes=[(3, 40), (7, 129)]))
    program = record(source, "cuda:sm_90", Bundle(folder))
    assert isinstance(program, Program), program
    return Bundle(folder), program, source


def assert_same(backend: Backend, program: Program, source: Source) -> None:
    backend.load(program, [])
    for index in range(2):
        given = backend.bundle.inputs(program, index)
        result = backend.call(backend.place(given))
        backend.wait(result)
        want = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(source.function)({}, *given))]
        for got, wanted in zip(backend.arrays(result), want, strict=True):
            assert got.dtype == wanted.dtype and got.shape == wanted.shape
            np.testing.assert_allclose(got, wanted, atol=2e-5 * np.abs(wanted).max(initial=1e-3), rtol=0)


@pytest.mark.parametrize("name", ["cross_entropy", "layernorm_gradient"])
def test_each_gives_the_numbers_of_the_program(name: str, tmp_path: Path) -> None:
    bundle, program, source = recorded(name, tmp_path)
    assert_same(OnProcessor(bundle), program, source)
    pytest.importorskip("torch")
    from benchmarks.gpu.backends.pytorch import Eager

    class OnProcessorToo(Eager):
        device = "cpu"

    assert_same(OnProcessorToo(bundle), program, source)


def test_those_without_a_gpu_refuse(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="gpu"):
        Jit(Bundle(tmp_path))
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        from benchmarks.gpu.backends.pytorch import Eager

        with pytest.raises(Refused, match="PyTorch sees no GPU"):
            Eager(Bundle(tmp_path))


@pytest.mark.parametrize("name", PLAIN)
def test_plain_programs_are_the_same_in_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    work: Any = plain_work(name, small=True)
    for shape in work.shapes:
        (given,) = work.make_inputs(*shape)
        want = jax.tree.leaves(work.function({}, given))
        found = PROGRAMS[name](torch.from_numpy(given))
        got = found if isinstance(found, tuple) else (found,)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a.numpy(), b, atol=1e-4, rtol=1e-5)


def test_triton_kernels_give_the_numbers_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreted, where there is no GPU."""
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    pytest.importorskip("triton")
    from benchmarks.gpu.backends import triton_kernels as kernels
    from benchmarks.torch_models import micro

    random = np.random.default_rng(0)
    for n, d in ((1, 2), (3, 34), (5, 130)):
        x, scale, bias = (torch.from_numpy(random.standard_normal(s, np.float32)) for s in ((n, d), (d,), (d,)))
        cos, sin = (torch.from_numpy(random.standard_normal((n, d // 2), np.float32)) for _ in range(2))
        labels = torch.from_numpy(random.integers(0, d, n, np.int32))
        inputs = {"softmax": (x,), "layernorm": (x, scale, bias), "gelu_bias": (x, bias),
                  "rmsnorm_rope": (x, scale, cos, sin), "cross_entropy": (x, labels)}  # fmt: skip
        for name, given in inputs.items():
            want = micro.PROGRAMS[name](kernels.EPSILON)(*given)
            torch.testing.assert_close(kernels.KERNELS[f"micro-{name}"](*given), want, atol=2e-5, rtol=1e-5)
        torch.testing.assert_close(kernels.row_sums(x), x.sum(1), atol=1e-5, rtol=1e-5)
