# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of translated ops in Markdown: `from shlo_disc.torch import ops_page; print(ops_page(), end="")`."""

from __future__ import annotations

import itertools
import textwrap

from . import table


def page() -> str:
    """The table of ops by family, with what each is."""
    rows = table.rows()
    lines = [
        "# PyTorch ops",
        "",
        f"{len(rows)} overloads of ATen, PyTorch's library of ops, are translated directly to StableHLO, at symbolic",
        "sizes. PyTorch's own decompositions rewrite the others. An op that then remains is rejected with an error",
        "that has its name and your source line. [torch.md](torch.md) describes how to compile and call programs, and",
        "has the [functions whose sizes PyTorch fixes](torch.md#sizes-that-pytorch-fixes), and what to write instead.",
        "",
        "| op | translated in | what it computes |",
        "|--|--|--|",
    ]
    by_function = sorted(rows.items(), key=lambda item: (item[1].family, id(item[1].translate)))
    entries = []
    for (family, _), group in itertools.groupby(by_function, key=lambda item: (item[1].family, id(item[1].translate))):
        found = list(group)
        names = ", ".join(f"`{name}`" for name, _ in sorted(found))
        entries.append(
            f"| {names} | `{family}` | {(found[0][1].translate.__doc__ or 'As its name says.').split(chr(10))[0]} |"
        )
    return "\n".join([*lines, *sorted(entries, key=lambda e: (e.split("|")[2], e)), *_complex()]) + "\n"


def _complex() -> list[str]:
    """The ops that take complex numbers."""
    names = sorted(table.complex_names())
    text = f"{len(names)} of the overloads take complex numbers: " + ", ".join(f"`{name}`" for name in names) + "."
    return ["", "## Complex numbers", "", *textwrap.wrap(text, 120, break_on_hyphens=False)]
