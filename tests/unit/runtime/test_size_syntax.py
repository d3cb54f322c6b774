# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts of sizes that JAX does not read: messages say what to write, and that compiles."""

from __future__ import annotations

import re

import jax
import pytest

from shlo_disc.importer.constraints import constraint_fault
from shlo_disc.runtime.size_syntax import rewritten, syntax_advice

WRITTEN = {
    "2b": "2*b",
    "[b, 4]": "b, 4",
    "b 4": "b, 4",
    "b; 4": "b, 4",
    "b x 4": "b, 4",
    "(b, 2n + 1)": "b, 2*n + 1",
    "2(b + 1)": "2*b + 2",
    "a - (b - 1)": "- b + a + 1",
    "b/2": "floordiv(b, 2)",
    "b // 2, 4": "floordiv(b, 2), 4",
    "b % 2": "mod(b, 2)",
    "b**2": "b^2",
    "(a + b)//2": "floordiv(b + a, 2)",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_what_to_write(text: str) -> None:
    found = re.search(r"write '(.*?)'", syntax_advice(text))
    assert found and found[1] == WRITTEN[text]
    jax.export.symbolic_shape(found[1])


@pytest.mark.parametrize("text", ["b", "(b, 4)", "b,", "n - 1, ...", "_, b", "floordiv(b, 2)", "(mod(b, 2), 4)"])
def test_what_jax_reads(text: str) -> None:
    assert not syntax_advice(text) and rewritten(text) == text


@pytest.mark.parametrize("text", ["b+", "b!", "mod(b, 2", "1/2*b", "b//0", "b,,4", "f(b)"])
def test_what_nobody_reads(text: str) -> None:
    assert syntax_advice(text).startswith("sizes are numbers, names")


def test_names_of_quotients() -> None:
    advice = syntax_advice("b//2")
    assert advice.endswith("otherwise name this size, as by 'b', and write '2*b' for its multiple")
    assert "if other arguments have the sizes in it" in syntax_advice("a//b")


def test_a_rank_decides_between_a_comma_and_a_product() -> None:
    assert syntax_advice("2 b", 1) == "write '2*b'" and syntax_advice("2 b", 2).endswith("write '2, b'")


def test_constraints() -> None:
    assert constraint_fault(("2b <= 8",)) == "constraints= has '2b <= 8': write '2*b <= 8'"
    assert not constraint_fault(("2*b <= 8",))
