# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `compile` returns."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, NamedTuple

from shlo_disc import codegen
from shlo_disc.compiler import STAGES, Compilation, artifact_header, constants_block
from shlo_disc.dtypes import BY_NAME
from shlo_disc.errors import ArtifactError, OptionError
from shlo_disc.runtime import Artifact, Client, LoadedExecutable, MemoryStats, TreeSpec
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.types import product
from shlo_disc.transforms.memory import arenas_of


class KernelLaunch(NamedTuple):
    """One step of the program: the kernel's name ("blas_dot" for a library product) and the kind of its fusion."""

    name: str
    kind: str


def client(threads: int, guard_pages: bool = False) -> Client:
    """The process's client for a thread count; clients share nothing but the machine."""
    return _client(threads, guard_pages)


@functools.cache
def _client(threads: int, guard_pages: bool) -> Client:
    return Client(threads=threads, guard_pages=guard_pages)


class Executable:
    """A compiled program: call it with arrays of any admissible shape.

    Takes and returns NumPy arrays, jax.Arrays and DLPack arrays in the program's own pytree. Raises ShapeError on a
    wrong rank, size or constraint and ArgumentTypeError on a wrong dtype or pytree; nothing has run then.
    """

    def __init__(self, compilation: Compilation):
        self._compilation = compilation
        self._artifact = _artifact(compilation)
        signature = compilation.signature
        self._client = client(compilation.options.threads, compilation.options.guard_pages)
        self._loaded = self._client.load(self._artifact, in_tree=signature.in_tree, out_tree=signature.out_tree)
        self._output = compilation.options.output

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        if self._output is None:
            return self._loaded(*args, **kwargs)
        return self._loaded.execute(args, kwargs, output=self._output)

    @property
    def compile_count(self) -> int:
        """How often native code was generated for this program: once, however many shapes were run."""
        return self._compilation.compile_count

    # ---- what it is -----------------------------------------------------------------------------------------------

    @property
    def signature(self) -> Any:
        """The arguments and results with their symbolic shapes."""
        return self._compilation.signature

    @property
    def stages(self) -> list[str]:
        """The names that `as_text` takes for MLIR, in pipeline order."""
        return list(STAGES)

    @property
    def kernels(self) -> list[KernelLaunch]:
        """Every launch of a call, in the program's order; those of a loop or branch stand there once."""
        lowered = self._compilation.lowered
        return [] if lowered is None else [KernelLaunch(*launch) for launch in lowered.launches]

    @property
    def timings(self) -> dict[str, float]:
        """Seconds that each stage took."""
        return dict(self._compilation.timings)

    @property
    def artifact(self) -> Artifact:
        """The artifact: header, native code, constants."""
        return self._artifact

    @property
    def loaded(self) -> LoadedExecutable:
        """The runtime's executable."""
        return self._loaded

    def as_text(self, stage: str = "simplify") -> str:
        """A stage's MLIR, or "llvm" (LLVM IR), "optimized-llvm", "asm". Raises OptionError on another name."""
        return stage_text(self._compilation, stage)

    def dump(self, directory: str | Path) -> list[Path]:
        """Write every stage's text to `directory`; returns the files."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for number, stage in enumerate(STAGES):
            path = folder / f"{number}-{stage}.mlir"
            path.write_text(self.as_text(stage))
            files.append(path)
        path = folder / f"{len(STAGES)}-codegen.ll"
        path.write_text(self._compilation.llvm_ir)
        return [*files, path]

    # ---- what it needs --------------------------------------------------------------------------------------------

    def out_shape(self, **dims: int) -> Any:
        """The results for given symbol values: a jax.ShapeDtypeStruct at each leaf of the program's result pytree.

        Raises ShapeError when the values are not admissible. Nothing is allocated and nothing runs.
        """
        import jax  # here, for a program that is not JAX's needs it for nothing else

        shapes = self._loaded.result_shapes(**dims)
        leaves = [
            jax.ShapeDtypeStruct(shape, jax.numpy.dtype(BY_NAME[result.dtype].numpy))
            for shape, result in zip(shapes, self.signature.results, strict=True)
        ]
        if self.signature.out_tree is not None:
            return jax.tree.unflatten(self.signature.out_tree, leaves)
        return leaves[0] if len(leaves) == 1 else tuple(leaves)

    @property
    def memory_stats(self) -> dict[str, Any]:
        """The device's counters: live and peak bytes, allocations."""
        return self._client.devices()[0].memory_stats()

    def measure_peak_memory(self, *args: Any, **kwargs: Any) -> int:
        """Run the program once and return the bytes it allocated at its peak, by the allocator's own count.

        Meaningful while no other thread allocates from the same client.
        """
        self._client.reset_peak()
        before = self.memory_stats["live_bytes"]
        self(*args, **kwargs)
        return self.memory_stats["peak_bytes"] - before

    def memory(self, **dims: int) -> MemoryStats:
        """Arena, result and constant bytes of one call at given symbol values."""
        return self._loaded.memory_stats(**dims)

    def peak_memory(self, **dims: int) -> int:
        """Bytes that one call allocates (arena and results) at given symbol values."""
        return self._loaded.peak_memory(**dims)

    @property
    def peak_memory_formula(self) -> str:
        """`peak_memory` as an expression of the symbols, in bytes."""
        c = self._compilation
        arena = sum(arenas_of(c.snapshots["plan"]), Expr.const(0))
        results = sum((_result_bytes(r) for r in self.signature.results), Expr.const(0))
        return str(c.facts.simplify(arena + results))


VIEWS = ("llvm", "optimized-llvm", "asm")
"""What `stage_text` gives besides the stages' MLIR."""


def stage_text(c: Compilation, stage: str) -> str:
    """A stage's MLIR, or one of `VIEWS`, of a compilation that went that far. Raises OptionError on another name."""
    if stage in c.snapshots:
        return str(c.snapshots[stage])
    if stage not in VIEWS:
        raise OptionError(f"no stage {stage!r}; stages are {', '.join([*STAGES, *VIEWS])}")
    if stage == "llvm":
        return c.llvm_ir
    view = codegen.optimized_llvm_ir if stage == "optimized-llvm" else codegen.assembly
    return view(c.llvm_ir, c.cpu, c.options.opt_level, c.exported)


def _result_bytes(spec: Any) -> Expr:
    return product(spec.dims) * BY_NAME[spec.dtype].bytes


def _artifact(c: Compilation) -> Artifact:
    trees = [_tree_json(t) for t in (c.signature.in_tree, c.signature.out_tree)]
    header = artifact_header(c)
    header["pytree"] = {k: v for k, v in zip(("in", "out"), trees, strict=True) if v is not _ABSENT}
    if c.lowered is None:
        raise ArtifactError("the program has not been lowered")
    return Artifact(header, c.object, constants_block(c.lowered))


_ABSENT = object()


def _tree_json(treedef: Any) -> Any:
    """The JSON form of a pytree; absent for plain signatures and for custom nodes, which need their class."""
    if treedef is None:
        return _ABSENT
    try:
        return TreeSpec.from_jax(treedef).to_json()
    except ArtifactError:
        return _ABSENT


__all__ = ["Executable", "KernelLaunch", "client"]
