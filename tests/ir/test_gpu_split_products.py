# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products whose depth is split over blocks, in the emulator: each kind of kernel, sizes around its tiles and parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shlo_disc.lowering.element_types import Element
from shlo_disc.lowering_gpu import device_module
from shlo_disc.lowering_gpu.backend import GpuBackend
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.lowering_gpu.product_form import ProductForm
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.transforms.decisions import OUTCOMES
from tests.ir.gpu_cases import Run, assert_close, launches_of
from tests.ir.gpu_emulator import Emulator
from tests.ir.gpu_mutations import expect_refused, without
from tests.ir.test_gpu_epilogues import arguments_of, gelu, given, lowered, products_of, sizes
from tests.ir.test_gpu_products import LAYOUTS, flat, kernels, problem_of, run

KINDS = (
    ("f32", "full"), ("f32", "tf32"), ("f32", "tf32x3"), ("f64", "full"), ("i32", "full"), ("f16", "full"),
    ("bf16", "full"), ("i8", "full"), ("ui8", "full"),
)  # fmt: skip

NAMES = ["_".join(kind) for kind in KINDS]

STEPS = {"f16": 32, "bf16": 32, "i8": 64, "ui8": 64}
"""Elements of the depth that parts are multiples of; 16 for others, 8 for f64 and few rows."""


# ---- kernels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("element", "precision"), KINDS, ids=NAMES)
@pytest.mark.parametrize("m", [1, 15, 16, 17, 64, 65])
def test_rows_around_tiles(m: int, element: str, precision: str) -> None:
    """A part more than there are steps of the depth: the last one has nothing."""
    run(element, "mk", "kn", (m, 66, STEPS.get(element, 16) + 1), precision=precision, parts=3)


@pytest.mark.parametrize(("element", "precision"), KINDS, ids=NAMES)
@pytest.mark.parametrize("m", [9, 18])
def test_layouts(m: int, element: str, precision: str) -> None:
    """Rows at multiples of 16 bytes, and others."""
    for number, layout in enumerate(LAYOUTS):
        run(element, *layout, (m, 129, 64), precision=precision, parts=2, hole=16 * (number % 2) + 3 * (number == 3))


@pytest.mark.parametrize(("element", "precision"), KINDS, ids=NAMES)
def test_depths_around_parts(element: str, precision: str) -> None:
    step = STEPS.get(element, 16)
    for number, k in enumerate((0, 1, step - 1, step, step + 1, 2 * step + 1, 5 * step - 1)):
        run(element, *LAYOUTS[number % 4], (3, 5, k), precision=precision, parts=2 + number % 3)
        run(element, *LAYOUTS[number % 4], (18, 5, k), precision=precision, parts=2 + number % 3, hole=16)


@pytest.mark.parametrize("m", [2, 17])
def test_batches_and_sums_that_are_rounded(m: int) -> None:
    run("f32", "mk", "kn", (m, 7, 40), (2, 1, 2), parts=2)
    run("bf16", "mk", "nk", (m, 7, 70), (3,), parts=2, rounded=True)
    run("i8", "mk", "kn", (m, 7, 70), (0,), parts=2)
    run("f16", "mk", "kn", (0, 7, 70), parts=2)


def launch_changed(change: Callable[[str], str], element: str, m: int, launches: int = 1, blocks: int = 6) -> None:
    """A kernel of three parts of two tiles, whose text is changed, gives the numbers of NumPy in each launch."""
    form = ProductForm(Element(element), "mk", "kn", 0, splits=True)
    n = 130 if m <= 16 else 66
    lhs, rhs = (np.ones(shape, np.float32 if element == "f32" else np.float16) for shape in ((m, 96), (96, n)))
    result, room = np.zeros((m, n), np.float32), np.full(6 * 4096, np.nan, np.float32)
    numbers = [number.constant for number in problem_of(element, lhs, rhs, result).numbers]
    with make_context(), ir.Location.unknown():
        emulator = Emulator(ir.Module.parse(change(str(kernels(form)))))
        for _ in range(launches):
            result[...] = 0
            emulator.launch(form.name, blocks, [flat(lhs), flat(rhs), flat(result), room], [*numbers, 3])
            np.testing.assert_array_equal(result, 96)


VERSIONS = {("f32", 3): 0, ("f16", 3): 0, ("f32", 20): 1, ("f16", 20): 1}
"""Kinds of kernels and rows, and which version of the kernel does it."""


@pytest.mark.parametrize(("element", "m"), VERSIONS, ids=str)
@pytest.mark.parametrize("blocks", [1, 4, 6])
def test_a_kernel_can_be_launched_again(blocks: int, element: str, m: int) -> None:
    launch_changed(str, element, m, 2, blocks)


def left_out(pattern: str, numbers: range) -> Callable[[str], str]:
    """A change that leaves out a line of each version of a kernel."""

    def change(text: str) -> str:
        for number in reversed(numbers):
            text = without(pattern, number)(text)
        return text

    return change


def every(pattern: str, of_each: int, which: int) -> Callable[[str], str]:
    """A change that leaves out one line of those that hold a pattern in each version, which has so many."""

    def change(text: str) -> str:
        count = len(re.findall(pattern, text))
        assert count and count % of_each == 0
        for number in reversed(range(which, count, of_each)):
            text = without(pattern, number)(text)
        return text

    return change


@pytest.mark.parametrize(("element", "m"), VERSIONS, ids=str)
def test_the_last_block_resets_the_ticket(element: str, m: int) -> None:
    with pytest.raises(AssertionError):
        launch_changed(every(r"memref\.atomic_rmw assign", 1, 0), element, m, 2)


@pytest.mark.parametrize(("element", "m"), VERSIONS, ids=str)
@pytest.mark.parametrize("fence", [0, 1])
def test_no_fence_can_be_left_out(fence: int, element: str, m: int) -> None:
    with pytest.raises(AssertionError, match="two blocks touch one element, and one writes it"):
        launch_changed(every(r"llvm\.fence", 2, fence), element, m)


@pytest.mark.parametrize(("element", "m"), VERSIONS, ids=str)
def test_a_ticket_has_to_be_atomic(element: str, m: int) -> None:
    def change(text: str) -> str:
        """Adds to the tickets by a load and a store."""
        pattern = r"(%\d+) = memref\.atomic_rmw addi (%\S+), (%\S+)\[(%\S+)\] : \(i32, (memref<.*>)\) -> i32"
        plain_add = r"\1 = memref.load \3[\4] : \5\n%next = arith.addi \1, \2 : i32\nmemref.store %next, \3[\4] : \5"
        return re.sub(pattern, plain_add, text)

    with pytest.raises(AssertionError, match="two blocks touch one element"):
        launch_changed(change, element, m)


@pytest.mark.parametrize(("element", "m"), VERSIONS, ids=str)
@pytest.mark.parametrize("barrier", [0, 1])
def test_no_barrier_around_a_ticket_can_be_left_out(barrier: int, element: str, m: int) -> None:
    """Before it all threads have left their sums; behind it all of them know what they do."""

    def change(text: str) -> str:
        """Each ticket is taken between two barriers."""
        pattern = r"( *gpu\.barrier\n)((?:(?!gpu\.barrier).)*?llvm\.fence(?:(?!gpu\.barrier).)*?)( *gpu\.barrier\n)"
        kept = r"\2\3" if barrier == 0 else r"\1\2"
        changed, count = re.subn(pattern, kept, text, flags=re.DOTALL)
        assert count
        return changed

    with pytest.raises(AssertionError, match="two (threads|blocks) touch one element"):
        launch_changed(change, element, m)


# ---- programs -------------------------------------------------------------------------------------------------------


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """So short that an emulator gets through with them."""
    monkeypatch.setattr(GpuBackend, "policy", replace(GPU_POLICY, part_depth=16, blocks=8))
    yield


def check(function: Callable[..., Any], arguments: Any, *all_dims: dict[str, int], tolerance: float) -> None:
    c = lowered(function, *arguments)
    with c.context, ir.Location.unknown():
        machine = Emulator(device_module(c.module))
        for dims in all_dims:
            values = given(arguments, dims)
            assert_close(Run(c, dims, machine)(values), jax.jit(function)(*values), tolerance)


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_with_an_epilogue(dtype: str) -> None:
    """Depths of one part, of two, and of more than there are blocks for; and results of many tiles, which are whole."""
    dims = sizes((3, 31, 17), (3, 32, 17), (16, 97, 130), (17, 80, 5), (65, 70, 129), (130, 40, 140))
    check(gelu, arguments_of(dtype), *dims, tolerance=1e-5 if dtype == "float32" else 2e-2)


@pytest.mark.usefixtures("short_parts")
def test_a_result_in_whose_place_sums_may_lie() -> None:
    arguments = (("m, k", "float16"), ("k, n", "float16"), ("m, n", "float32"))

    def residual(x: Any, w: Any, r: Any) -> Any:
        return jax.lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32) + r * 2

    check(residual, arguments, *sizes((2, 70, 12), (20, 70, 12)), tolerance=1e-3)


@pytest.mark.usefixtures("short_parts")
def test_products_by_themselves_and_in_a_batch() -> None:
    def function(x: Any, y: Any) -> Any:
        return jnp.einsum("bmk,bkn->bnm", x, y)

    check(function, (("b, m, k", "float32"), ("b, k, 5", "float32")), {"b": 2, "m": 3, "k": 70}, tolerance=1e-5)


def test_how_many_blocks_there_are() -> None:
    """Two for each multiprocessor, as long as parts have 256 elements; where rows are few, half of them have work."""
    (launch,) = launches_of(lowered(lambda x, w: x @ w, ("m, k", "float32"), ("k, n", "float32")))

    def blocks(m: int, k: int, n: int) -> int:
        return launch.blocks.evaluate({"m": m, "k": k, "n": n})

    assert blocks(1, 511, 4096) == 64 and blocks(1, 512, 4096) == 128
    assert blocks(16, 4096, 4096) == 64 * 8 and blocks(17, 4096, 4096) == 64 * 4
    assert blocks(64, 1 << 20, 64) == 64 and blocks(4096, 16384, 64) == 64 * 4
    assert blocks(4096, 4096, 4096) == 64 * 64 and blocks(1, 4096, 1 << 20) == 1 << 14


def test_the_choice_stands_in_the_program() -> None:
    c = lowered(gelu, *arguments_of("bfloat16"))
    (product,) = products_of(c)
    assert product.partials >= 0 and product.kernel_numbers[-1] == product.parts
    assert "several blocks for each tile where k >= 512" in " ".join(map(str, guards_of(c)))


def guards_of(c: Any) -> list[Any]:
    from shlo_disc.lowering.launches import launches_in

    return [guard for launch in launches_in(c.snapshots["host"]) for guard in launch.guards]


# ---- what is not split ----------------------------------------------------------------------------------------------


def refused(*arguments: tuple[str, str], function: Callable[..., Any] = lambda x, w: x @ w) -> set[str]:
    before = OUTCOMES.copy()
    c = lowered(function, *arguments)
    assert "partials" not in str(c.snapshots["fuse"])
    return {name for (name, holds) in OUTCOMES - before if name.startswith("depth-over-blocks.") and not holds}


def test_conditions_of_parts_of_the_depth() -> None:
    assert refused(("m, 511", "float32"), ("511, n", "float32")) == {"depth-over-blocks.may-be-long"}
    assert refused(("m + 17, k", "float32"), ("k, 8449", "float32")) == {"depth-over-blocks.may-be-few"}
    assert "partials" in str(
        lowered(lambda x, w: x @ w, ("m + 16, k", "float32"), ("k, 8448", "float32")).snapshots["fuse"]
    )


def test_wrong_room_for_sums_is_found() -> None:
    c = lowered(gelu, *arguments_of("float32"))
    change = r'(#disc.fusion<"gemm", \{partials = )1', r"\g<1>2"
    expect_refused(c, *change, "do not have room for each value that they leave")
