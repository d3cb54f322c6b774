# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products by wgmma and TMA, in the emulator: every tile, all layouts, and that its checks find what is wrong."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from shlo_disc.lowering.codegen import compile_to_ptx
from shlo_disc.lowering.element_types import Element
from shlo_disc.lowering_gpu import hopper, hopper_product, lower_to_nvvm, nvvm_to_llvm_ir
from shlo_disc.lowering_gpu.hopper_launch import name_by_maps
from shlo_disc.lowering_gpu.hopper_product import build_hopper_product, takes_maps
from shlo_disc.lowering_gpu.product_form import ProductForm
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.transforms.simplify.dot import SUM_TYPES
from tests.gpu.sass import read
from tests.gpu.test_sass import needs_tools
from tests.ir import test_gpu_products as products
from tests.ir.gpu_emulator import Emulator
from tests.ir.gpu_hopper_state import TensorMap
from tests.ir.test_gpu_products import DTYPES, LAYOUTS, flat, problem_of, stack

ELEMENTS, INTEGERS = ("f16", "bf16"), ("i8", "ui8")


kernels = functools.partial(products.kernels, build=build_hopper_product)
emulated = functools.cache(functools.partial(products.emulator_of, build=build_hopper_product))


def map_of(array: np.ndarray, depth_last: bool, form_axes: str) -> TensorMap:
    """The map of matrices [batch..., rows, k] or [batch..., k, columns], which lie as `form_axes` says."""
    inner = -1 if (form_axes[-1] == "k") == depth_last else -2
    order = [inner, -3 - inner, *range(array.ndim - 3, -1, -1)]
    strides = tuple(array.strides[axis] // array.itemsize for axis in order)
    assert strides[0] == 1 or array.shape[inner] == 1 or not array.size
    box = (hopper.ROW_BYTES // array.itemsize, hopper.BOX, *[1] * (array.ndim - 2))
    return TensorMap(flat(array), tuple(array.shape[axis] for axis in order), (1, *strides[1:]), box)


def run(
    element: str,
    lhs_axes: str,
    rhs_axes: str,
    sizes: tuple[int, int, int],
    batch: tuple[int, ...] = (),
    rounded: bool = False,
    blocks: int = 2,
    hole: int = 3,
    launched: Callable[[ProductForm], tuple[Any, Emulator]] = emulated,
) -> None:
    """The kernel gives NumPy's numbers, and writes nothing else."""
    named = dict(zip("mnk", sizes, strict=True))
    lhs = stack("mk", batch, lhs_axes, named, DTYPES[element], 0, 5)
    rhs = stack("kn", batch, rhs_axes, named, DTYPES[element], 1, 5)
    memory = np.full((*batch, named["m"], named["n"] + hole), 77, DTYPES[element if rounded else SUM_TYPES[element]])
    result = memory[..., : named["n"]]
    form = ProductForm(Element(element), lhs_axes, rhs_axes, len(batch), rounded)
    context, emulator = launched(form)
    numbers = [number.evaluate({}) for number in problem_of(element, lhs, rhs, result).numbers]
    maps = [map_of(lhs, True, lhs_axes), map_of(rhs, False, rhs_axes)]
    with context, ir.Location.unknown():
        emulator.launch(name_by_maps(form.name), blocks, [flat(lhs), flat(rhs), flat(result)], numbers, maps)
    exact = np.int64 if element in INTEGERS else np.float64
    wide = lhs.astype(exact) @ rhs.astype(exact)
    np.testing.assert_array_equal(result, wide.astype(memory.dtype))
    assert (memory[..., named["n"] :] == 77).all()


@pytest.fixture
def few_processors(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Larger tiles pay for results that have so many."""

    def pays(count: int) -> None:
        emulated.cache_clear()
        monkeypatch.setattr(hopper_product, "PROCESSORS", count)

    yield pays
    emulated.cache_clear()


# ---- numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS, ids="_".join)
@pytest.mark.parametrize("element", ELEMENTS)
def test_layouts(element: str, layout: tuple[str, str]) -> None:
    run(element, *layout, (63, 65, 65))


@pytest.mark.parametrize("element", INTEGERS)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (63, 65, 127), (64, 64, 128), (65, 129, 129), (5, 63, 600)], ids=str)
def test_integers(element: str, sizes: tuple[int, int, int]) -> None:
    run(element, "mk", "nk", sizes)
    run(element, "mk", "nk", sizes, batch=(2,))


@pytest.mark.slow
def test_integers_in_larger_tiles(few_processors: Callable[[int], None]) -> None:
    few_processors(1)
    run("i8", "mk", "nk", (129, 257, 270))
    few_processors(3)
    run("ui8", "mk", "nk", (255, 129, 33))


@pytest.mark.parametrize("m", [1, 63, 64, 65, 127])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 129])
def test_sizes(m: int, n: int) -> None:
    run("bf16", "mk", "kn", (m, n, 17))


@pytest.mark.parametrize("k", [0, 1, 16, 63, 64, 65, 200, 331])
@pytest.mark.parametrize("layout", [("mk", "nk"), ("km", "kn")], ids="_".join)
def test_depths(layout: tuple[str, str], k: int) -> None:
    run("f16", *layout, (67, 131, k))


@pytest.mark.parametrize("sizes", [(0, 5, 3), (5, 0, 3)], ids=str)
def test_nothing(sizes: tuple[int, int, int]) -> None:
    run("bf16", "mk", "kn", sizes)


@pytest.mark.parametrize("least", [1, 3], ids=["large", "medium"])
@pytest.mark.parametrize("layout", LAYOUTS, ids="_".join)
def test_larger_tiles(layout: tuple[str, str], least: int, few_processors: Callable[[int], None]) -> None:
    few_processors(least)
    run("f16", *layout, (129, 257 if least == 1 else 255, 130))
    run("bf16", *layout, (128, 256, 64) if least == 1 else (256, 256, 64))


@pytest.mark.parametrize("batch", [(0,), (3,), (2, 3), (2, 1, 2)], ids=str)
def test_batches(batch: tuple[int, ...]) -> None:
    run("f16", "mk", "nk", (5, 8, 70), batch)
    run("bf16", "km", "kn", (66, 8, 8), batch)


@pytest.mark.parametrize("n", [8, 61, 64, 67, 124, 130, 136])
@pytest.mark.parametrize("rounded", [False, True])
def test_results_at_multiples_of_16_bytes(n: int, rounded: bool) -> None:
    """Whole pieces are written at once, and what is left of a row one by one."""
    run("f16", "mk", "nk", (66, n, 24), (2,), rounded, hole=-n % 8)
    run("bf16", "mk", "kn", (5, n, 24), (), rounded, hole=-n % 4)


@pytest.mark.parametrize("blocks", [1, 3, 7])
def test_any_number_of_blocks(blocks: int) -> None:
    run("bf16", "mk", "kn", (130, 259, 131), blocks=blocks)


@pytest.mark.parametrize("element", ELEMENTS)
def test_sums_are_rounded_once(element: str) -> None:
    run(element, "mk", "kn", (17, 33, 90), rounded=True)


def test_which_products() -> None:
    form = ProductForm(Element("bf16"), "mk", "kn", 3)
    assert takes_maps(form, "sm_90a")
    assert not takes_maps(form, "sm_90") and not takes_maps(form, "sm_80")
    assert not takes_maps(ProductForm(Element("bf16"), "mk", "kn", 4), "sm_90a")
    assert not takes_maps(ProductForm(Element("f32"), "mk", "nk", 0), "sm_90a")
    assert takes_maps(ProductForm(Element("ui8"), "mk", "nk", 0), "sm_90a")
    for sides in LAYOUTS:
        assert takes_maps(ProductForm(Element("i8"), *sides, 0), "sm_90a") == (sides == ("mk", "nk"))


# ---- each check can fail --------------------------------------------------------------------------------------------


def broken(form: ProductForm) -> tuple[Any, Emulator]:
    """A kernel of its own, built as things are."""
    return emulated.__wrapped__(form)


def fails(text: str, sizes: tuple[int, int, int] = (65, 64, 460), layout: tuple[str, str] = ("mk", "kn")) -> None:
    with pytest.raises(AssertionError, match=text):
        run("bf16", *layout, sizes, blocks=1, launched=broken)


def test_the_mutated_product_is_right_without_mutation() -> None:
    for layout in LAYOUTS:
        run("bf16", *layout, (65, 64, 460), blocks=1, launched=broken)


def nothing(*_: Any, **__: Any) -> None:
    """In place of an instruction."""


def calls(function: Callable[..., Any], numbers: set[int], instead: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose calls of some numbers are others. In the module, those that bring slices come first."""
    count = itertools.count()
    return lambda *args, **named: (instead if next(count) in numbers else function)(*args, **named)


BRINGS, MULTIPLIES = {0, 1, 2}, {3, 4, 5}
"""Calls of `wait_for`: three tiles that are brought, then three that are multiplied."""


def test_no_wait_for_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopper, "wait_for", calls(hopper.wait_for, MULTIPLIES, nothing))
    fails("has not landed|not equal")


def test_no_wait_for_an_empty_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopper, "wait_for", calls(hopper.wait_for, BRINGS, nothing))
    fails("two copies to one place|may still read|more arrive")


@pytest.mark.parametrize("which", [BRINGS, MULTIPLIES], ids=["empty", "full"])
def test_the_wrong_phase(monkeypatch: pytest.MonkeyPatch, which: set[int]) -> None:
    whole = hopper.wait_for

    def other(address: ir.Value, parity: ir.Value) -> None:
        whole(address, hopper.arith.xori(parity, hopper.i32(1)))

    monkeypatch.setattr(hopper, "wait_for", calls(whole, which, other))
    fails("all warpgroups wait|has not landed|not equal")


def test_a_stage_is_left_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopper, "wait_for_products", lambda pending: None)
    fails("may still read|while a product adds")


def test_sums_are_read_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = hopper.wait_for_products
    monkeypatch.setattr(hopper, "wait_for_products", lambda pending: whole(1))
    fails("while a product adds|may still read")


@pytest.mark.parametrize("difference", [-hopper.BOX_BYTES, hopper.BOX_BYTES, 16])
def test_wrong_numbers_of_bytes(monkeypatch: pytest.MonkeyPatch, difference: int) -> None:
    whole = hopper.expect_bytes
    monkeypatch.setattr(hopper, "expect_bytes", lambda address, count: whole(address, count + difference))
    fails("has not landed|more bytes come|all warpgroups wait")


LEFT_OUT = (
    ("fence", "without a fence"),
    ("publish_barriers", "do not know of a barrier|before copies know"),
    ("close_products", "while a product adds|under way|may still read"),
    ("arrive", "all warpgroups wait"),
    ("expect_bytes", "more bytes|all warpgroups wait"),
)
"""Functions that emit an instruction, and what the emulator says where one emits none."""


@pytest.mark.parametrize(("name", "text"), LEFT_OUT)
def test_without_an_instruction(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setattr(hopper, name, nothing)
    fails(text)


@pytest.mark.parametrize("layout", LAYOUTS, ids="_".join)
def test_wrong_offsets_in_a_descriptor(monkeypatch: pytest.MonkeyPatch, layout: tuple[str, str]) -> None:
    whole = hopper.depth_step
    monkeypatch.setattr(hopper, "depth_step", lambda inside: whole(not inside))
    fails("not equal|amidst|outside", layout=layout)


@pytest.mark.parametrize("layout", LAYOUTS, ids="_".join)
def test_wrong_steps_in_a_descriptor(monkeypatch: pytest.MonkeyPatch, layout: tuple[str, str]) -> None:
    monkeypatch.setattr(hopper, "ATOM_BYTES", 2048)
    monkeypatch.setattr(hopper_product, "SHARED_BYTES", hopper_product.SHARED_BYTES + 1024)
    fails("not equal|outside|not landed", layout=layout)


@pytest.mark.parametrize("side", [0, 1])
def test_a_side_that_is_not_transposed(monkeypatch: pytest.MonkeyPatch, side: int) -> None:
    whole: Callable[..., ir.Value] = hopper.multiply_add

    def other(*given: Any) -> ir.Value:
        insides = list(given[-1])
        insides[side] = not insides[side]
        return whole(*given[:-1], tuple(insides))

    monkeypatch.setattr(hopper, "multiply_add", other)
    fails("not equal|outside|not landed")


def test_too_many_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopper_product, "REGISTERS", (56, 232))
    fails("too many registers")


def test_too_little_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopper_product, "SHARED_BYTES", hopper_product.SHARED_BYTES - 1024)
    fails("outside of the shared memory")


# ---- machine code ---------------------------------------------------------------------------------------------------


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("element", ELEMENTS)
def test_machine_code(element: str) -> None:
    with make_context(), ir.Location.unknown():
        forms = [ProductForm(Element(element), *layout, 1, rounded) for layout in LAYOUTS for rounded in (False, True)]
        ptx = compile_to_ptx(nvvm_to_llvm_ir(lower_to_nvvm(kernels(*forms))), "sm_90a")
    begun = ptx.split("wgmma.commit_group")[1:]
    assert not any(
        "cvt." in p.split("wgmma.wait_group")[0] or "st.global" in p.split("wgmma.wait_group")[0] for p in begun
    )
    for name, _, usage, machine in read(ptx):
        assert ("tnspA" in machine.text, "tnspB" in machine.text) == ("_bkm_" in name, "_bkn_" in name), name
        assert usage.spills == machine.count("LDL", "STL") == 0 and usage.registers <= 168
        assert machine.count("UTMALDG.3D") == 3 + 4 + 6 and machine.count("USETMAXREG") == 2
        assert 128 in machine.widths("STG")
        # Eight products in the first pass of a loop and in the others, and no wait between those of a slice.
        assert machine.count("HGMMA") == 24 and machine.count("WARPGROUP.DEPBAR") <= 9
