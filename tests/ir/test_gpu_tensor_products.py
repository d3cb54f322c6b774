# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of f16, bf16 and bytes on tensor cores, in the emulator: every tile, by copies and by elements, and all
layouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from shlo_disc.lowering.codegen import compile_to_ptx
from shlo_disc.lowering.element_types import Element
from shlo_disc.lowering_gpu import lower_to_nvvm, nvvm_to_llvm_ir, tensor_product
from shlo_disc.lowering_gpu.product_form import ProductForm
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from tests.gpu.sass import read
from tests.gpu.test_sass import needs_tools
from tests.ir.test_gpu_products import LAYOUTS, emulated, flat, kernels, problem_of, run, tiles_of

ELEMENTS, BYTES = ("f16", "bf16"), ("i8", "ui8")


@pytest.mark.parametrize("layout", LAYOUTS, ids="_".join)
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("sizes", [(8, 8, 8), (16, 128, 32), (16, 136, 40), (64, 64, 64), (72, 136, 96)], ids=str)
def test_rows_at_multiples_of_16_bytes(element: str, layout: tuple[str, str], sizes: tuple[int, int, int]) -> None:
    run(element, *layout, sizes, hole=0)
    run(element, *layout, sizes, hole=8)


@pytest.mark.parametrize("layout", LAYOUTS, ids="_".join)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (15, 17, 31), (17, 129, 33), (65, 63, 7)], ids=str)
def test_the_last_rows_columns_and_depths(layout: tuple[str, str], sizes: tuple[int, int, int]) -> None:
    for hole in (3, 7):
        run("f16", *layout, sizes, hole=hole)


@pytest.mark.parametrize("layout", LAYOUTS, ids="_".join)
@pytest.mark.parametrize("element", BYTES)
def test_bytes(element: str, layout: tuple[str, str]) -> None:
    """Rows at multiples of 16 bytes and others, of all values."""
    for sizes, hole in (((16, 16, 16), 0), ((64, 128, 96), 16), ((80, 144, 80), 0), ((1, 1, 1), 3), ((15, 17, 31), 5)):
        run(element, *layout, sizes, hole=hole)
    for sizes, hole in (((17, 129, 65), 3), ((65, 63, 97), 7), ((0, 5, 3), 1), ((5, 3, 0), 0), ((3, 5, 600), 8)):
        run(element, *layout, sizes, hole=hole)


@pytest.mark.parametrize("layout", LAYOUTS, ids="_".join)
def test_batches_of_bytes(layout: tuple[str, str]) -> None:
    run("i8", *layout, (16, 32, 48), (2, 2), 0)
    run("ui8", *layout, (5, 9, 33), (3,), 3)


@pytest.mark.parametrize("element", ELEMENTS)
def test_sums_are_rounded_once(element: str) -> None:
    for sizes, hole in (((17, 33, 90), 3), ((72, 40, 128), 0), ((5, 129, 64), 0)):
        run(element, "mk", "kn", sizes, hole=hole, rounded=True)


@pytest.mark.parametrize("sizes", [(0, 5, 3), (5, 0, 3), (5, 3, 0), (0, 8, 8), (8, 8, 0)], ids=str)
def test_nothing(sizes: tuple[int, int, int]) -> None:
    run("bf16", "mk", "kn", sizes)
    run("bf16", "km", "nk", sizes, hole=0)


@pytest.mark.parametrize("batch", [(0,), (3,), (2, 3), (2, 1, 2, 2)], ids=str)
@pytest.mark.parametrize("hole", [0, 3])
def test_batches(batch: tuple[int, ...], hole: int) -> None:
    run("f16", "mk", "nk", (5, 8, 16), batch, hole)
    run("f16", "km", "kn", (24, 8, 8), batch, hole)


@pytest.fixture
def few_processors(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Larger tiles pay for smaller results."""
    emulated.cache_clear()
    monkeypatch.setattr(tensor_product, "PROCESSORS", 3)
    yield
    emulated.cache_clear()


@pytest.mark.usefixtures("few_processors")
@pytest.mark.parametrize("layout", LAYOUTS, ids="_".join)
def test_large_tiles(layout: tuple[str, str]) -> None:
    for sizes in ((128, 384, 64), (136, 264, 40), (264, 136, 8)):
        run("f16", *layout, sizes, hole=0)
    run("f16", *layout, (257, 129, 33), hole=3)
    run("i8", *layout, (144, 272, 80), hole=0)
    run("ui8", *layout, (257, 129, 33), hole=3)


@pytest.mark.slow
def test_any_number_of_blocks_and_odd_addresses() -> None:
    form = ProductForm(Element("f16"), "mk", "kn", 0)
    context, emulator = emulated(form)
    for shift in (0, 1, 4, 8):
        random = np.random.default_rng(shift)
        lhs, rhs = (random.integers(-4, 5, size + shift).astype(np.float16) for size in (72 * 16, 16 * 136))
        a, b = lhs[shift:].reshape(72, 16), rhs[shift:].reshape(16, 136)
        for blocks in (1, 2, 40):
            result = np.full((72, 136), np.nan, np.float32)
            problem = problem_of("f16", a, b, result)
            numbers = [number.constant for number in problem.numbers]
            with context, ir.Location.unknown():
                emulator.launch(form.name, blocks, [lhs[shift:], rhs[shift:], flat(result)], numbers)
            np.testing.assert_array_equal(result, a.astype(np.float32) @ b.astype(np.float32))


def test_a_flat_result_has_work_for_all_its_tiles() -> None:
    """The grid is that of tiles of 64 x 64, which are no fewer than those of 16 x 128 where there are few rows."""
    for m, n in ((1, 1), (16, 128), (16, 129), (9, 1000)):
        a, b, c = np.zeros((m, 4), np.float16), np.zeros((4, n), np.float16), np.zeros((m, n), np.float32)
        assert tiles_of(problem_of("f16", a, b, c)).constant >= -(-m // 16) * -(-n // 128)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("element", ELEMENTS)
def test_machine_code(element: str, architecture: str) -> None:
    with make_context(), ir.Location.unknown():
        module = kernels(
            *(
                ProductForm(Element(element), *layout, 1, rounded, splits=splits)
                for layout in LAYOUTS
                for rounded, splits in ((False, False), (True, False), (False, True))
            )
        )
        ptx = compile_to_ptx(nvvm_to_llvm_ir(lower_to_nvvm(module)), architecture)
    for _, _, usage, machine in read(ptx):
        assert usage.spills == machine.count("LDL", "STL") == 0
        assert machine.count("HMMA.16816") and machine.count("LDSM") and machine.count("LDGSTS")


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_machine_code_of_bytes(architecture: str) -> None:
    """Sides that are turned are not copied asynchronously."""
    with make_context(), ir.Location.unknown():
        forms = [ProductForm(Element(element), *layout, 1) for layout in LAYOUTS for element in BYTES]
        module = kernels(*forms, *(replace(form, splits=True) for form in forms))
        ptx = compile_to_ptx(nvvm_to_llvm_ir(lower_to_nvvm(module)), architecture)
    for name, _, usage, machine in read(ptx):
        assert usage.spills == machine.count("LDL", "STL") == 0
        assert machine.count("IMMA.16832.S8.S8" if "_i8_" in name else "IMMA.16832.U8.U8") and machine.count("LDSM")
        assert bool(machine.count("LDGSTS")) == ("_bmk_" in name or "_bnk" in name)
