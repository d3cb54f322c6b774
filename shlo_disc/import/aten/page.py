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
        "# Ops of PyTorch",
        "",
        f"{len(rows)} overloads of ATen are translated to StableHLO as they are, at symbolic sizes. Others are taken",
        "apart by PyTorch's own decompositions. An op that is left then is refused, by its name and the line of the",
        "program that calls it. [torch.md](torch.md) says how programs are compiled and called.",
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
