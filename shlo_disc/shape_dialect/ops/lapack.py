# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of LAPACK that programs call as jaxlib's custom calls (`lapack_sgetrf_ffi`).

Matrices have the largest rank and are laid out column by column, vectors have one dimension less, and numbers one less
again; all have the same leading batch dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass

MATRIX, VECTOR, NUMBER = "M", "V", "N"
ELEMENTS = {"s": "f32", "d": "f64", "c": "complex<f32>", "z": "complex<f64>"}
_REAL = {"s": "f32", "d": "f64", "c": "f32", "z": "f64"}
_COMPLEX = {"s": "complex<f32>", "d": "complex<f64>", "c": "complex<f32>", "z": "complex<f64>"}


@dataclass(frozen=True)
class LapackTensor:
    """An operand or result: MATRIX, VECTOR or NUMBER, and its element type."""

    kind: str
    dtype: str

    def rank(self, matrix_rank: int) -> int:
        """Its rank where matrices have `matrix_rank`."""
        return matrix_rank - {MATRIX: 0, VECTOR: 1, NUMBER: 2}[self.kind]


@dataclass(frozen=True)
class LapackFunction:
    """One function for one element type. `name` is without the letter: "getrf"."""

    name: str
    letter: str
    operands: tuple[LapackTensor, ...]
    results: tuple[LapackTensor, ...]

    @property
    def is_complex(self) -> bool:
        """Tells whether the matrices have complex elements."""
        return self.letter in "cz"


# Types: t the matrix's own, r its real, c its complex counterpart, i a 32-bit integer.
_SIGNATURES = {
    "geqp3 sdcz": "Mt Vi -> Mt Vi Vt",
    "geqrf sdcz": "Mt -> Mt Vt",
    "gesdd sdcz": "Mt -> Mt Vr Mt Mt Ni",
    "gesvd sdcz": "Mt -> Mt Vr Mt Mt Ni",
    "gees sd": "Mt -> Mt Mt Vt Vt Ni Ni",
    "gees cz": "Mt -> Mt Mt Vt Ni Ni",
    "geev sd": "Mt -> Vt Vt Mc Mc Ni",
    "geev cz": "Mt -> Vt Mt Mt Ni",
    "gehrd sdcz": "Mt -> Mt Vt Ni",
    "getrf sdcz": "Mt -> Mt Vi Ni",
    "gtsv sdcz": "Vt Vt Vt Mt -> Vt Vt Vt Mt Ni",
    "heevd cz": "Mt -> Mt Vr Ni",
    "hetrd cz": "Mt -> Mt Vr Vr Vt Ni",
    "orgqr sd": "Mt Vt -> Mt",
    "ormqr sd": "Mt Vt Mt -> Mt",
    "potrf sdcz": "Mt -> Mt Ni",
    "syevd sd": "Mt -> Mt Vr Ni",
    "sytrd sd": "Mt -> Mt Vr Vr Vt Ni",
    "trsm sdcz": "Mt Mt -> Mt",
    "ungqr cz": "Mt Vt -> Mt",
    "unmqr cz": "Mt Vt Mt -> Mt",
}


def _tensors(text: str, letter: str) -> tuple[LapackTensor, ...]:
    types = {"t": ELEMENTS[letter], "r": _REAL[letter], "c": _COMPLEX[letter], "i": "i32"}
    return tuple(LapackTensor(item[0], types[item[1]]) for item in text.split())


def _functions() -> dict[str, LapackFunction]:
    found = {}
    for key, signature in _SIGNATURES.items():
        name, letters = key.split()
        operands, results = signature.split("->")
        for letter in letters:
            function = LapackFunction(name, letter, _tensors(operands, letter), _tensors(results, letter))
            found[f"lapack_{letter}{name}_ffi"] = function
    return found


LAPACK: dict[str, LapackFunction] = _functions()
"""By the target of the custom call."""

LAPACK_ON_GPUS = frozenset(
    ["geqrf", "gesdd", "gesvd", "getrf", "heevd", "orgqr", "ormqr", "potrf", "syevd", "trsm", "ungqr", "unmqr"]
)
"""The functions that cuSOLVER and cuBLAS compute (`runtime/native/cuda/solver_functions.cpp`)."""
