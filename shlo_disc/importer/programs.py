# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs as the user hands them over, read or traced but not yet parsed. Needs no MLIR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from shlo_disc.importer.reader import Limits


class JaxProgram(NamedTuple):
    """A `jax.export.Exported`, and the names of the sizes that its hidden arguments stand for.

    source: where it was read from, for messages; None when this process made it, and its bytecode is known to be whole.
    limits: those of reading it when it is from outside; None means the environment's. keeps: what only this process has
    and the program calls, which stays alive as long as this. parameters: the names of the function's positional
    parameters, "" for one that is not passed by name; () where they are not known. guards: `SizeGuard`s that the module
    asserts, and that its derivatives have to.
    """

    exported: Any
    sizes: Sequence[str] = ()
    source: str | None = None
    limits: Limits | None = None
    keeps: Sequence[Any] = ()
    parameters: tuple[str, ...] = ()
    guards: tuple[Any, ...] = ()

    def trees(self) -> tuple[Any, Any]:
        """The pytrees of the arguments, the hidden ones left out, and of the results."""
        return (self._shown() if self.sizes else self.exported.in_tree), self.exported.out_tree

    def _shown(self) -> Any:
        import jax

        in_tree = self.exported.in_tree
        args, kwargs = jax.tree.unflatten(in_tree, list(range(in_tree.num_leaves)))
        return jax.tree.structure((args[:-1], kwargs))


class DescribedProgram(NamedTuple):
    """The module of a `jax.export.Exported`, and what that says of it, for those that have no JAX.

    data: the module, for `reader`, or trusted where `source` is None, as for JaxProgram. signature: a `Signature`.
    hidden: the arguments that stand for sizes, and their names. platform: which of so many platforms to compile for.
    is_ordered: it takes and returns tokens.
    """

    data: bytes
    signature: Any
    hidden: Mapping[int, str]
    platform: int
    platform_count: int
    is_ordered: bool
    source: str | None = None
    limits: Limits | None = None

    def trees(self) -> tuple[Any, Any]:
        """The pytrees of the arguments and of the results."""
        return self.signature.in_tree, self.signature.out_tree


class TextProgram(NamedTuple):
    """StableHLO as text or bytes, and the path it came from ("" when it was given directly).

    trusted: bytecode is known to be whole, and is read without the precautions for that of others. has_tokens: tokens
    that the program takes and returns stand for arrays without elements, as JAX passes them.
    participants: how many devices run it together; 1 for a program that runs alone. limits: as for JaxProgram.
    is_own: a translation of ours, which may have ops by which sizes are read from data. parameters: as for JaxProgram.
    axes: for each argument the order of axes in which it takes a weight of the user's, () for that of the weight.
    weights: how many of the first arguments are weights, which `bind` fixes. functions: the numbers of the functions of
    Python that it calls, which become as many arguments behind its own: each process has other numbers.
    """

    data: str | bytes
    source: str = ""
    trusted: bool = False
    has_tokens: bool = False
    participants: int = 1
    limits: Limits | None = None
    is_own: bool = False
    parameters: tuple[str, ...] = ()
    axes: tuple[tuple[int, ...], ...] = ()
    weights: int = 0
    functions: tuple[int, ...] = ()

    def trees(self) -> tuple[Any, Any]:
        """There are none: arguments and results are flat."""
        return None, None


Program: TypeAlias = JaxProgram | TextProgram
"""Programs that users pass."""

Importable: TypeAlias = Program | DescribedProgram
