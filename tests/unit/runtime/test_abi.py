# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of the binary interface, and the header that is made of it."""

from __future__ import annotations

from pathlib import Path

import shlo_disc.runtime
from shlo_disc.runtime import abi

HEADER = Path(shlo_disc.runtime.__file__).parent / "native" / "core" / "abi.h"


def test_the_header_is_what_the_table_says() -> None:
    assert HEADER.read_text() == abi.header(), "run python -m shlo_disc.runtime.abi > " + str(HEADER)


def test_fields_follow_one_another() -> None:
    for struct in abi.STRUCTS.values():
        last = 0
        for field in struct.fields.values():
            assert field.first == last
            last += field.count * field.words
        assert last == struct.words


def test_a_structure_in_a_structure_takes_its_words() -> None:
    assert abi.CONVOLUTION.fields["images"].first == abi.DOT.words
