# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The choice of programs of one skeleton to generalise, where all of them have no expressions in common.

What Python decides by a size (`if n % 2`) is different for each residue class of the size, and the program of a class
serves half, a third, ... of all sizes. So the programs whose sizes have the residues of the last one's are tried, from
small divisors to large ones, and then the last two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shlo_disc.runtime.native_module import read_program

_DIVISORS = (2, 3, 4, 5, 6, 8, 16)


def choices(programs: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Lists of at least two of the programs, each with the last one: first all of them."""
    yield list(programs)
    sizes = _argument_sizes(programs)
    tried = {tuple(range(len(programs)))}
    kept = [[i for i, one in enumerate(sizes) if _is_congruent(one, sizes[-1], k)] for k in _DIVISORS]
    for chosen in (*kept, [len(programs) - 2, len(programs) - 1]):
        if len(chosen) > 1 and tuple(chosen) not in tried:
            tried.add(tuple(chosen))
            yield [programs[i] for i in chosen]


def _is_congruent(one: Sequence[int], other: Sequence[int], divisor: int) -> bool:
    return all((a - b) % divisor == 0 for a, b in zip(one, other, strict=True))


def _argument_sizes(programs: Sequence[bytes]) -> list[list[int]]:
    """The sizes of the arguments of the first function, for each program."""
    found = [read_program(program) for program in programs]
    first = next((op for kind, op, *_ in found[0]["places"] if kind == "argument"), None)
    places = [i for i, (kind, op, *_) in enumerate(found[0]["places"]) if kind == "argument" and op == first]
    return [[sample["numbers"][i] for i in places] for sample in found]


__all__ = ["choices"]
