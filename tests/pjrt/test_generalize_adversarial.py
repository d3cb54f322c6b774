# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose first shapes suggest something wrong. They may be compiled again, but never served wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from shlo_disc.pjrt.generalize import NotGeneralError, generalize
from shlo_disc.pjrt.generalize.classes import choices
from tests.pjrt.streams import Stream, artifact


def draw(*shape: int) -> np.ndarray:
    """Numbers that are told apart easily."""
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def squares(x: Any) -> Any:
    return x.sum() + jnp.arange(x.shape[0] ** 2)


def parity(x: Any) -> Any:
    return x * (2 if x.shape[0] % 2 else 3) + (x.shape[0] % 3)


def windows(x: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, (max(x.shape[0] // 2, 1),), (1,), "VALID")


def rows_or_columns(x: Any) -> Any:
    return x + jnp.arange(x.shape[0])[:, None] + 100 * jnp.arange(x.shape[1])


def baked_length(x: Any) -> Any:
    return x[: max(4, x.shape[0] // 2)] * x.shape[0]


def regrouped(x: Any) -> Any:
    """(n, 6) as rows of 4, of n, and of the size that makes 3 rows."""
    return x.reshape(-1, 4), x.reshape(-1, x.shape[0]), x.reshape(3, -1)


def algorithm(x: Any) -> Any:
    """Another one for many rows."""
    return jnp.sort(x, 0) if x.shape[0] > 6 else -jnp.sort(-x, 0)


def literal(x: Any) -> Any:
    """The literal 4 is no size, though a size is 4."""
    return x.astype(jnp.int32) * 4 + x.shape[0]


def broadcast_rows(x: Any, y: Any) -> Any:
    """Either may have one row, which is broadcast."""
    return x + y


def first_rows(x: Any, y: Any) -> Any:
    return x[: y.shape[0]] * y + jnp.arange(y.shape[0])[:, None] * x.shape[0]


def rounded(x: Any) -> Any:
    """Padded to a multiple of 4."""
    return jnp.pad(x, (0, -x.shape[0] % 4)).reshape(-1, 4).sum(1)


def strided(x: Any) -> Any:
    return x[:: x.shape[1]], x[x.shape[1] - 1 :]


def powers(x: Any) -> Any:
    return x * float(2 ** x.shape[0]) + np.float32(1 / x.shape[0])


def by_hand(x: Any) -> Any:
    """A loop that Python unrolls: another program for each length."""
    total = x[0]
    for i in range(1, x.shape[0]):
        total = total * 0.5 + x[i]
    return total


def wide(x: Any) -> Any:
    return jnp.broadcast_to(x[:, None], (x.shape[0], 4)).reshape(-1)


def prefix_or_broadcast(x: Any, y: Any) -> Any:
    """As many rows as `y`: the first ones of several, or the only one as often."""
    rows = y.shape[0]
    return (lax.broadcast_in_dim(x, (rows, 4), (0, 1)) if x.shape[0] == 1 else x[:rows]), x + y[:1]


def first_row_or_rows(x: Any, y: Any) -> Any:
    """The first row of `x` for all rows of an even `y`, and its first rows for those of an odd one."""
    rows = y.shape[0]
    return lax.broadcast_in_dim(x[:1], (rows, 4), (0, 1)) if rows % 2 == 0 else x[:rows]


def prefixes(x: Any, y: Any, z: Any) -> Any:
    """Prefixes of prefixes, and of a row that is broadcast."""
    part = x[: y.shape[0]]
    wide = jnp.broadcast_to(x[:1], y.shape)
    return part * 2, part[: z.shape[0]] + 1, wide[: z.shape[0]] - y[: z.shape[0]]


def one(*shapes: tuple[int, ...]) -> list[tuple[np.ndarray, ...]]:
    """Calls with one argument."""
    return [(draw(*shape),) for shape in shapes]


def two(*shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> list[tuple[np.ndarray, ...]]:
    """Calls with two arguments."""
    return [(draw(*a), draw(*b)) for a, b in shapes]


CASES: dict[str, tuple[Callable[..., Any], Sequence[tuple[Any, ...]]]] = {
    "equal sizes": (rows_or_columns, one((4, 4), (8, 8), (3, 5), (5, 3), (1, 7))),
    "one size changes": (rows_or_columns, one((4, 4), (4, 8), (8, 4), (1, 1), (2, 9))),
    "square lengths": (squares, one((1,), (2,), (3,), (5,))),
    "square lengths, no line": (squares, one((2,), (3,), (4,), (7,))),
    "constants by parity": (parity, one((4,), (6,), (7,), (9,), (12,), (5,))),
    "windows": (windows, one((4,), (6,), (7,), (9,), (3,))),
    "a length with a floor": (baked_length, one((4, 2), (6, 2), (8, 2), (10, 2), (16, 2))),
    "reshapes": (regrouped, one((2, 6), (4, 6), (6, 6), (8, 6), (12, 6))),
    "another algorithm": (algorithm, one((4, 3), (6, 3), (7, 3), (9, 3), (5, 3))),
    "a literal": (literal, one((4, 8), (4, 16), (5, 8), (7, 4))),
    "broadcast rows": (broadcast_rows, two(((1, 4), (1, 4)), ((3, 4), (3, 4)), ((1, 4), (3, 4)), ((5, 4), (1, 4)))),
    "broadcast later": (broadcast_rows, two(((2, 4), (2, 4)), ((2, 6), (2, 6)), ((1, 6), (2, 6)), ((3, 6), (3, 6)))),
    "two arguments": (first_rows, two(((4, 2), (4, 2)), ((8, 2), (8, 2)), ((8, 2), (4, 2)), ((9, 2), (5, 2)))),
    "rounded up": (rounded, one((4,), (8,), (6,), (7,), (9,), (1,))),
    "strides": (strided, one((4, 2), (8, 2), (8, 3), (9, 4), (6, 6))),
    "float constants": (powers, one((2,), (3,), (4,), (10,))),
    "unrolled": (by_hand, one((3, 2), (4, 2), (3, 5), (4, 5))),
    "a fixed factor": (wide, one((4,), (8,), (3,), (1,))),
    "prefix, then broadcast": (
        prefix_or_broadcast,
        two(*(((a, 4), (b, 4)) for a, b in ((7, 3), (5, 4), (6, 6), (1, 1), (1, 3), (4, 1), (1, 5), (9, 2)))),
    ),
    "broadcast, then prefix": (
        prefix_or_broadcast,
        two(*(((a, 4), (b, 4)) for a, b in ((1, 3), (4, 4), (7, 3), (1, 4), (5, 5), (3, 1), (1, 1)))),
    ),
    "prefix of a fixed length": (
        lambda x: (lax.broadcast_in_dim(x, (4, 2), (0, 1)) if x.shape[0] == 1 else x[:4]) + 1,
        one((6, 2), (9, 2), (1, 2), (4, 2), (5, 2), (8, 2)),
    ),
    "a row or rows": (
        first_row_or_rows,
        two(*(((a, 4), (b, 4)) for a, b in ((9, 3), (9, 5), (9, 4), (9, 1), (7, 6), (7, 7), (1, 2), (1, 1)))),
    ),
    "prefixes of prefixes": (
        prefixes,
        [
            (draw(*a), draw(*b), draw(*c))
            for a, b, c in (
                ((9, 4), (5, 4), (3, 4)),
                ((9, 4), (7, 4), (4, 4)),
                ((9, 4), (9, 4), (2, 4)),
                ((4, 4), (4, 4), (4, 4)),
                ((9, 4), (1, 4), (1, 4)),
                ((1, 4), (1, 4), (1, 4)),
                ((9, 4), (6, 4), (6, 4)),
                ((8, 4), (6, 4), (1, 4)),
            )
        ],
    ),
    "empty": (rows_or_columns, one((3, 4), (0, 4), (5, 4), (0, 0), (2, 2))),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_right(name: str) -> None:
    """The results are XLA's for any guess from the first shapes, and again when all shapes come back."""
    function, calls = CASES[name]
    stream = Stream(function)
    for args in [*calls, *calls]:
        stream.check(*args)
    assert set(stream.how[len(calls) :]) <= {"known", "instance", "compiled", "compiled_symbolic"}


def test_a_wrong_guess_is_compiled_anew() -> None:
    """A fixed length is guessed from 9 and 10, 13 shows that it is a multiple."""
    stream = Stream(lambda x: jnp.cumsum(jnp.pad(x, (0, -x.shape[0] % 4))))
    how = [stream.check(draw(n)) for n in (9, 10, 11, 13, 17, 8)]
    assert how == ["compiled", "compiled_symbolic", "instance", "compiled_symbolic", "instance", "instance"]


def test_a_constant_that_stops_being_the_same() -> None:
    """It becomes an argument with the next symbolic program."""
    stream = Stream(parity)
    how = [stream.check(draw(n)) for n in (6, 12, 15, 9, 4, 7)]
    assert how == ["compiled", "compiled_symbolic", "compiled_symbolic", "instance", "compiled_symbolic", "instance"]


def test_padding_by_parity() -> None:
    """SAME padding of even lengths is not that of odd ones; one program has both."""

    def convolution(x: Any) -> Any:
        return lax.conv_general_dilated(x[None, None], jnp.ones((1, 1, 3)), (2,), "SAME")

    stream = Stream(convolution)
    how = [stream.check(draw(n)) for n in (8, 10, 9, 12, 11, 13, 14, 15, 16)]
    assert how == ["compiled", "compiled_symbolic", "compiled_symbolic", *["instance"] * 6]


def test_classes_of_sizes() -> None:
    """All programs are tried, then those whose sizes leave the remainders of the last one's, then the last two."""
    programs = [artifact(jnp.tanh, [draw(n)]) for n in (8, 10, 9, 11, 13)]
    tried = [[programs.index(program) for program in chosen] for chosen in choices(programs)]
    assert tried == [[0, 1, 2, 3, 4], [2, 3, 4], [1, 4], [2, 4], [0, 4], [3, 4]]


def test_arrays_without_elements_are_no_samples() -> None:
    """Programs with them are compiled as they are, and do not stand in the way of the others."""
    stream = Stream(rows_or_columns)
    how = [stream.check(draw(*sizes)) for sizes in ((0, 4), (3, 4), (0, 6), (5, 4), (0, 0), (7, 4))]
    assert how == ["compiled", "compiled", "compiled_symbolic", "compiled_symbolic", "compiled", "instance"]
    assert stream.table.counts["not_general"] == 0


def test_the_reason_is_told() -> None:
    """Strides have to be numbers."""
    kernel = draw(1, 1, 3)
    programs = [
        artifact(lambda x, n=n: lax.conv_general_dilated(x, kernel, (n,), "VALID"), [draw(1, 1, 40)]) for n in (2, 3)
    ]
    with pytest.raises(
        NotGeneralError, match=rf"^window_strides of stablehlo.convolution changes \(.*{Path(__file__).name}:\d+\)$"
    ):
        generalize(programs)
