# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of products that do what follows as well, in the emulator, which looks for races and bad accesses, too."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.errors import CompilerError
from shlo_disc.lowering_gpu import device_module, tensor_product
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dialect.host import DeviceProduct, call_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.verify.fusions import verify_fusions
from tests.gpu.sass import read
from tests.gpu.test_sass import needs_tools
from tests.ir.gpu_cases import EXACT, TARGETS, Run, assert_close
from tests.ir.gpu_emulator import Emulator
from tests.run.op_check import random_array
from tests.unit.shape_dialect.test_dialect_verifier import refusal

Texts = tuple[tuple[str, str], ...]


def lowered(function: Any, *arguments: tuple[str, str]) -> Compilation:
    """A program at the stage `host`."""
    start = import_stage(function, TARGETS[0], EXACT, arguments, None, ())
    return run_pipeline(start, "host")


def products_of(c: Compilation) -> list[DeviceProduct]:
    found: list[DeviceProduct] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "disc_host.product":
            found.append(call_of(op))
        return ir.WalkResult.ADVANCE

    with c.context:
        c.module.operation.walk(visit)
    return found


def given(arguments: Texts, dims: dict[str, int]) -> list[np.ndarray]:
    def shape(text: str) -> tuple[int, ...]:
        return tuple(eval(d, {"__builtins__": {}}, dims) for d in text.split(","))  # noqa: S307

    return [random_array(shape(text), dtype, i) for i, (text, dtype) in enumerate(arguments)]


def check(
    function: Callable[..., Any],
    arguments: Texts,
    *all_dims: dict[str, int],
    tolerance: float = 1e-5,
    change: Callable[[str], str] = str,
) -> None:
    """The emulated program gives XLA's numbers; `change`: of its kernels' text."""
    c = lowered(function, *arguments)
    with c.context, ir.Location.unknown():
        machine = Emulator(ir.Module.parse(change(str(device_module(c.module)))))
        for dims in all_dims:
            values = given(arguments, dims)
            assert_close(Run(c, dims, machine)(values), jax.jit(function)(*values), tolerance)


def gelu(x: Any, w: Any, b: Any) -> Any:
    return jax.nn.gelu(x @ w + b)


def arguments_of(dtype: str) -> Texts:
    return (("m, k", dtype), ("k, n", dtype), ("n", dtype))


def sizes(*triples: tuple[int, int, int]) -> list[dict[str, int]]:
    return [dict(zip("mkn", triple, strict=True)) for triple in triples]


EDGES = tuple((m, 5, n) for m, n in ((1, 15), (15, 16), (16, 17), (17, 1), (63, 64), (64, 65), (65, 63), (67, 131)))


@pytest.mark.parametrize("size", EDGES, ids=str)
def test_plain_kernel(size: tuple[int, int, int]) -> None:
    check(gelu, arguments_of("float32"), *sizes(size))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", [*EDGES, (16, 24, 128), (17, 32, 136), (72, 8, 264)], ids=str)
def test_tensor_kernel(size: tuple[int, int, int], dtype: str) -> None:
    check(gelu, arguments_of(dtype), *sizes(size), tolerance=2e-2)


@pytest.mark.parametrize("size", [(128, 16, 384), (136, 8, 257), (257, 33, 129)], ids=str)
def test_large_tiles(size: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_product, "PROCESSORS", 3)

    def function(x: Any, w: Any, b: Any) -> Any:
        return jax.lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32) * b[:, None]

    check(function, (("m, k", "float16"), ("k, n", "float16"), ("m", "float32")), *sizes(size), tolerance=1e-3)


@pytest.mark.parametrize("number", [-3, -2])
def test_no_barrier_around_kept_sums_can_be_left_out(number: int) -> None:
    """Those are the ones of the last version that is written, before the barrier at its end."""

    def change(text: str) -> str:
        places = [found.start() for found in re.finditer(r"gpu\.barrier\n", text)]
        place = places[number]
        return text[:place] + text[place + len("gpu.barrier\n") :]

    with pytest.raises(AssertionError, match="two threads touch one element"):
        check(gelu, arguments_of("float16"), *sizes((17, 33, 63)), tolerance=2e-2, change=change)


def test_every_access_is_as_wide_as_rows_and_addresses_allow() -> None:
    """A residual that begins in the middle of 16 bytes is read and written one by one."""
    c = lowered(lambda x, w, r: x @ w + r, ("m, k", "float32"), ("k, n", "float32"), ("m, n", "float32"))
    text = str(device_module(c.module))
    assert "vector.store" in text and "alignment = 16" in text
    with c.context, ir.Location.unknown():
        emulator = Emulator(device_module(c.module))
        for shift in (0, 1, 2, 4):
            x, w = (random_array((5, 5), "float32", i).reshape(-1) for i in range(2))
            memory, result = np.ones(25 + shift, np.float32), np.zeros(25, np.float32)
            x, w, more = x[:20], w[:20], memory[shift:][:25]
            (product,) = products_of(c)
            numbers = [size.evaluate({"m": 5, "k": 4, "n": 5}) for size in product.kernel.sizes]
            emulator.launch(product.kernel.kernel, 1, [x, w, more, result, np.zeros(0, np.float32)], numbers)
            assert_close(result.reshape(5, 5), x.reshape(5, 4) @ w.reshape(4, 5) + 1, 1e-6)


# ---- what is fused, and with what -----------------------------------------------------------------------------------


def dot(x: Any, w: Any) -> Any:
    return jax.lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)


def library_of(function: Any, *arguments: tuple[str, str]) -> tuple[bool, bool] | None:
    """Tells whether a library adds a bias, and rounds; None where it does nothing by itself."""
    (product,) = products_of(lowered(function, *arguments))
    assert product.epilogue is not None
    library = product.epilogue.library
    return None if library is None else (library.bias >= 0, library.rounded)


def test_what_a_library_does_by_itself() -> None:
    matrices, halves = arguments_of("float32")[:2], arguments_of("bfloat16")[:2]
    assert library_of(lambda x, w, b: x @ w + b, *matrices, ("n", "float32")) == (True, False)
    assert library_of(lambda x, w, b: x @ w + 2 * b, *matrices, ("n", "float32")) == (True, False), "a bias made before"
    assert library_of(lambda x, w, b: dot(x, w) + b, *halves, ("n", "float32")) == (True, False)
    assert library_of(lambda x, w, b: b[None] + dot(x, w), *halves, ("n", "float32")) == (True, False)


@pytest.mark.parametrize(
    ("function", "more"),
    [
        (lambda x, w, b: x @ w + b, ("m, 1", "float32")),
        (lambda x, w, b: x @ w + b, ("m, n", "float32")),
        (lambda x, w, b: x @ w - b, ("n", "float32")),
        (lambda x, w, b: x @ w + b, ("1", "float32")),
        (lambda x, w, b: jax.nn.relu(x @ w + b), ("n", "float32")),
        (lambda x, w, b: 2 * (x @ w) + b, ("n", "float32")),
        (lambda x, w, b: ((y := x @ w + b), y * y), ("n", "float32")),
    ],
    ids=["column", "residual", "subtracted", "scalar", "relu", "scaled", "two results"],
)
def test_what_a_library_does_not_do_by_itself(function: Any, more: tuple[str, str]) -> None:
    matrices, halves = arguments_of("float32")[:2], arguments_of("bfloat16")[:2]
    assert library_of(function, *matrices, more) is None
    assert library_of(lambda x, w, b: x @ w + b, *halves, ("n", "bfloat16")) is None, "rounded before it is added"
    rounded = lambda x, w, b: (dot(x, w) + b).astype(jnp.bfloat16)  # noqa: E731
    assert library_of(rounded, *halves, ("n", "float32")) is None, "a bias of more bits than the result"

    def narrow(x: Any, w: Any, b: Any) -> Any:
        sums = dot(x, w)
        return (sums + jnp.broadcast_to(b, sums.shape).astype(jnp.float32)).astype(jnp.bfloat16)

    assert library_of(narrow, *halves, ("n", "bfloat16")) is None, "nobody says how often it would be rounded"


def test_a_square_bias_is_along_the_right_axis() -> None:
    """Sizes do not tell rows from columns."""
    square = (("n, n", "float32"), ("n, n", "float32"), ("n", "float32"))
    assert library_of(lambda x, w, b: x @ w + b, *square) == (True, False)
    assert library_of(lambda x, w, b: x @ w + b[:, None], *square) is None


@functools.cache
def _host_text() -> str:
    return str(lowered(gelu, *arguments_of("float32")).snapshots["host"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sums = 0 : i64", "sums = 1 : i64", "does not read the product's result as buffer 1"),
        ("sums = 0 : i64", "sums = 9 : i64", "does not read the product's result as buffer 9"),
        ("operands = array<i64: 2, 3, 2>", "operands = array<i64: 2, 7, 2>", "it has no operand 7"),
        ("sizes = [@m, @n, @k,", "sizes = [@m, @n, @n,", "is told another problem"),
        ("kernel = @epilogue_add_multiply_tanh", "kernel = @nowhere", "@nowhere is no kernel of the module"),
        ("sums = 0 : i64", "library = {result = 2 : i64, rounded}, sums = 0 : i64", "sums of f32 are not rounded"),
        ("sums = 0 : i64", "library = {bias = 8 : i64, result = 2 : i64}, sums = 0 : i64", "it has no operand 8"),
    ],
)
def test_malformed_epilogues(old: str, new: str, message: str) -> None:
    text = _host_text()
    assert old in text
    assert message in refusal(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("function", "old", "new", "message"),
    [
        (gelu, "accumulators = 0 : i64, ", "accumulators = -1 : i64, ", "sums that need one are not"),
        (gelu, "accumulators = 0 : i64, ", "", None),
        (lambda x, w, b: (x @ w + b) > 0, "accumulators = -1 : i64, ", "accumulators = 0 : i64, ", "another type"),
        (lambda x, w, b: (x @ w + b) > 0, "accumulators = -1 : i64, ", "", "sums without a buffer are returned"),
    ],
)
def test_sums_lie_where_it_is_said(function: Any, old: str, new: str, message: str | None) -> None:
    text = str(lowered(function, *arguments_of("float32")).snapshots["plan"])
    assert old in text
    with make_context(), ir.Location.unknown():
        verify_fusions(ir.Module.parse(text))
        changed = ir.Module.parse(text.replace(old, new))
        if message is None:
            verify_fusions(changed)
            return
        with pytest.raises(CompilerError, match=message):
            verify_fusions(changed)


def test_the_text_of_a_program_is_all_that_it_is() -> None:
    assert refusal(_host_text()) == ""


# ---- machine code ---------------------------------------------------------------------------------------------------


@needs_tools
@pytest.mark.ptxas
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_machine_code(dtype: str, target: str) -> None:
    """No local memory, room for two blocks, and results are written four or more at a time."""
    found = shlo_disc.compile(gelu, target=target, args=arguments_of(dtype))
    kernels = [kernel for kernel in read(found.as_text("ptx")) if kernel[0].startswith("product_")]
    ((name, _, usage, machine),) = (kernel for kernel in kernels if not kernel[0].endswith("_by_maps"))
    assert usage.spills == 0 and machine.count("LDL", "STL") == 0, name
    assert usage.registers <= 128
    assert (128 if dtype == "float32" else 64) in machine.widths("STG"), (name, machine.widths("STG"))
