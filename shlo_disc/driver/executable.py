# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The executable that `compile` returns."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from shlo_disc.driver.stages import STAGES
from shlo_disc.errors import OTHER_PROCESSOR, ArtifactError, OptionError, check_folder
from shlo_disc.options import CPU, Options, takes_options
from shlo_disc.runtime import Artifact, BoundExecutable, LoadedExecutable
from shlo_disc.runtime.call_arguments import takes_weights
from shlo_disc.runtime.clients import client, gpu_client
from shlo_disc.runtime.described import count_text, program_table, program_text, target_row, target_text
from shlo_disc.runtime.dims import NO_DIMS, all_dims, by_name
from shlo_disc.runtime.jax_arrays import collect_dropped
from shlo_disc.runtime.native_owner import NativeOwner
from shlo_disc.runtime.sized import Sized

if TYPE_CHECKING:
    from shlo_disc.driver.compilation import Compilation
    from shlo_disc.importer.programs import Program
    from shlo_disc.lowering.launches import Launched
    from shlo_disc.report.decisions import FusionReport
    from shlo_disc.report.explanation import Explanation
    from shlo_disc.report.listing import Listing
    from shlo_disc.runtime.call_results import CommandTime


_VIEWS = {"llvm": "ll", "ptx": "ptx"}
"""The texts below MLIR that `dump` writes, and how their files end."""


class KernelLaunch(NamedTuple):
    """One command of the program: the kernel's name ("gemm_f32" for a matrix product) and the kind of its fusion."""

    name: str
    kind: str


class Executable(Sized, NativeOwner):
    """A compiled program: call it with arrays of any shape that its signature allows.

    It takes and returns NumPy arrays, jax.Arrays and DLPack arrays in the pytree of the program. A call deletes
    jax.Arrays that are passed for donated arguments. You can also call it in functions that JAX traces: inside
    `jax.jit`, `jax.vmap`, and `jax.grad` if the program has a gradient (docs/in-jax.md). Raises ShapeError on a wrong
    rank, size or constraint and ArgumentTypeError on a wrong dtype or pytree, before anything runs.

    It is pickled as the program in portable form and the options, and compiled again when it is unpickled, for the
    processor of that machine. Gradients are not pickled. Copying returns the executable itself.
    """

    pickle_instead = "it was compiled by the plugin"

    def __init__(
        self,
        artifact: Artifact,
        options: Options,
        trees: tuple[Any, Any],
        start: Callable[[], Compilation],
        timings: dict[str, float],
        compile_count: int,
        *,
        program: Program | None = None,
        gradient: Callable[[], Executable] | None = None,
    ):
        """`start` gives the program's compilation, at least imported; it is called when somebody looks at a stage.

        `trees`: the pytrees of the arguments and results; None where they are flat. `program`: what was compiled.
        `gradient` compiles its vector-Jacobian product.
        """
        self.program = program
        self._gradient = gradient
        self._artifact = artifact
        self._options = options
        self._start = functools.cache(start)
        self._timings = timings
        self._compile_count = compile_count
        self._lock = threading.Lock()
        self._client = client(options.threads, options.has_guard_pages, options.replicas)
        self._trees = trees
        self._on_device = self._load_here()
        self._output = options.output

    def __repr__(self) -> str:
        return f"<Executable {program_text(self._artifact.header)} for {target_text(self._artifact.header)}>"

    def _repr_html_(self) -> str:
        header = self._artifact.header
        compiled = "compiled", f"{count_text(self._compile_count, 'time')}, in {sum(self._timings.values()):.3g} s"
        return program_table(f"Executable {header['name']}", header, [target_row(header), compiled])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        if self._output is None:
            return self._loaded(*args, **kwargs)
        return self._loaded.execute(args, kwargs, output=self._output)

    def execute_sharded(self, shards: Sequence[Sequence[Any]]) -> list[Any]:
        """Run a program of several replicas, each on its own positional arguments; returns the results of each.

        Raises ValueError for a wrong number of shards, and the errors of a call.
        """
        return self._loaded.execute_sharded(shards, output=self._output)

    @takes_weights
    def bind(
        self,
        *args: Any,
        weights: Mapping[str, Any] | str | os.PathLike[str] | None = None,
        donate: bool = False,
        copy: bool = True,
    ) -> BoundExecutable:
        """The program with its first arguments fixed, such as weights in serving; call it with the others.

        weights: arguments by their names, in any order: a mapping, or the path of an .npz file; they come after `args`.
        Right-hand sides of matrix products are packed once for all shapes; if nothing else reads them, only the packed
        form is kept. All other arrays are copied. You may change or drop the arrays afterwards. With `donate`, each
        jax.Array or Buffer is deleted once it has been packed or copied, so the weights are never in memory twice. With
        `copy=False`, the arrays are kept alive and read in place, unless they are strided or unaligned; do not change
        them while the bound program is in use, because packed forms would not change. Raises ValueError for `donate`
        with `copy=False`, ArgumentTypeError, ShapeError and AllocationError.
        """
        return self._loaded.bind(*args, weights=weights, output=self._output, donate=donate, copy=copy)

    def _load_here(self) -> LoadedExecutable | None:
        """The loaded program; None for a GPU, and for a chosen processor that is not this one: a call then raises."""
        try:
            return self._load() if self.target == CPU else None
        except ArtifactError as error:
            if error.code != OTHER_PROCESSOR or "host" in self._options.cpus:
                raise
            return None

    def _load(self) -> LoadedExecutable:
        on = self._client if self.target == CPU else gpu_client(0, self._options.replicas)
        loaded = on.load(self._artifact, in_tree=self._trees[0], out_tree=self._trees[1])
        loaded.keeps = getattr(self.program, "keeps", ())
        loaded.has_executable = True
        if (gradient := self._gradient) is not None:
            loaded.gradient = lambda: gradient().loaded
        return loaded

    @property
    def _loaded(self) -> LoadedExecutable:
        """The program on its device. One for a GPU comes there when it is first called: others may compile it."""
        if self._on_device is None:
            with self._lock:
                self._on_device = self._on_device or self._load()
        return self._on_device

    @property
    def target(self) -> str:
        """The target of the program: "cpu", or the name of a GPU architecture, e.g. "cuda:sm_90"."""
        return str(self._artifact.header["target"].get("name", CPU))

    @property
    def compile_count(self) -> int:
        """The number of times that native code was generated for this program: once for all shapes.

        It is 0 if the native code came from the compile cache.
        """
        return self._compile_count

    # ---- what it is -----------------------------------------------------------------------------------------------

    @property
    def signature(self) -> Any:
        """The arguments and results with their symbolic shapes."""
        return self._at("annotate").signature

    @property
    def stages(self) -> list[str]:
        """The names that `as_text` takes for MLIR, in pipeline order."""
        return list(STAGES)

    @property
    def kernels(self) -> list[KernelLaunch]:
        """Every launch of a call, in program order; those in a loop or branch are listed once."""
        return [KernelLaunch(launch.name, launch.kind) for launch in self.launches]

    @property
    def fusion_count(self) -> int:
        """The number of fusion decisions, at most `Options(max_fusions=...)`."""
        return self._at("fuse").decisions["fusion"].taken

    @property
    def timings(self) -> dict[str, float]:
        """The seconds of each stage; only those of "cache" if the program came from the compile cache."""
        return dict(self._timings)

    @property
    def options(self) -> Options:
        """The options with which the program was compiled."""
        return self._options

    @property
    def artifact(self) -> Artifact:
        """The artifact: header, native code, constants."""
        return self._artifact

    @takes_options
    def save(self, path: str | os.PathLike[str], *, prepack: bool = False) -> None:
        """Write the program to a file, which `shlo_disc.load` loads without a compiler.

        prepack: write constant weights in the layout that matrix products read, so that loading need not pack them, and
        processes share them. A file names no classes: where arguments or results are in a pytree node of a class of
        your own or of Equinox, `load` needs `in_tree` or `out_tree` (docs/guides/serving.md). Raises OSError, and
        ArtifactError for a program that calls Python functions or other programs.
        """
        (self._artifact.prepacked() if prepack else self._artifact).save(path)

    def export_library(self, path: str | os.PathLike[str], name: str | None = None) -> None:
        """Write a shared library with the program and the runtime, and beside it a C header with the types.

        name: the prefix of its functions; by default the name of the file. This needs the C compiler of the system.
        Raises OptionError for programs with data-dependent sizes: `save` them, and use `disc_load` and `disc_call`.
        `shlo_disc.runtime.export_library.export_library` documents the errors.
        """
        from shlo_disc.runtime.export_library import export_library

        export_library(self._artifact, path, name)

    @property
    def loaded(self) -> LoadedExecutable:
        """The executable of the runtime."""
        return self._loaded

    def as_text(self, stage: str = "simplify") -> str:
        """The MLIR of a stage, or "llvm" (LLVM IR); "optimized-llvm" or "asm" for CPUs, "ptx" for GPUs.

        Raises OptionError on another name.
        """
        from shlo_disc.driver.stage_text import stage_text

        return stage_text(self._at(stage if stage in STAGES else STAGES[-1]), stage)

    def dump(self, directory: str | Path) -> list[Path]:
        """Write the text of every stage to `directory`; returns the files."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for number, stage in enumerate(STAGES):
            path = folder / f"{number}-{stage}.mlir"
            path.write_text(self.as_text(stage))
            files.append(path)
        for view, suffix in _VIEWS.items():
            if view == "llvm" or view in self._artifact.sections:
                path = folder / f"{len(STAGES)}-codegen.{suffix}"
                path.write_text(self.as_text(view))
                files.append(path)
        return files

    @property
    def _sized(self) -> LoadedExecutable:
        return self._loaded

    @by_name
    def explain(self, **dims: int) -> Explanation:
        """The kernels of a call at given values of the symbols, measured on synthetic arguments.

        Each has its ops, chosen variant, bytes, flops, time beside the least time that the machine allows, missing
        facts and source line. Print it for a table. The first call also measures the machine, which takes a second or
        two. On a GPU, the times come from the GPU. Raises ShapeError for values that the program does not allow,
        DeviceError if there is no GPU.
        """
        from shlo_disc.report.explanation import explain

        return explain(self._loaded.artifact.level(), self._loaded.client, self._at("host"), dims)

    def fusion_report(self) -> FusionReport:
        """Every decision of `fuse`, with what it saves by the cost model, and the work of the kernels that came of it.

        Costs are those of likely sizes, 64 for each symbol; the work is an expression of the symbols. Print it.
        """
        from shlo_disc.report.decisions import fusion_report

        return fusion_report(self._at("plan"))

    def profile(self, *args: Any, **kwargs: Any) -> list[CommandTime]:
        """Run the program for arguments as a call takes them, or a tuple of them, and return the time of each command.

        Its results are dropped. Raises the errors of a call.
        """
        return self._loaded.profile(*args, **kwargs)

    def listing(self, *stages: str, file: str = "") -> Listing:
        """The code, kernel by kernel, beside your source lines: of the stage "kernels" (MLIR) and of the target.

        By default it has the MLIR of the kernels and assembly, or PTX for a GPU. Print it. file: the file of a program
        as text that names no files, for its lines. Raises OptionError on other stages.
        """
        from shlo_disc.report.listing.program import program_listing

        return program_listing(self._at(STAGES[-1]), stages, file)

    def source_lines(self) -> dict[str, list[str]]:
        """The source lines of each fusion of `launches`, such as "model.py:12"."""
        from shlo_disc.report.listing.program import source_lines

        module = self._at("plan").snapshots["plan"].opview
        return {fusion: source_lines(module, fusion) for fusion in {launch.fusion for launch in self.launches}}

    @property
    def launches(self) -> list[Launched]:
        """Like `kernels`, with the fusion, the functions and the run-time choices of each."""
        from shlo_disc.lowering.launches import launches_in

        return launches_in(self._at("host").snapshots["host"])

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        dims: Iterable[Mapping[str, int]] | Mapping[str, int] = (),
        *,
        show: bool | None = None,
    ) -> Path:
        """Write a self-contained HTML page about the compile (docs/report.md); returns its path.

        path: None for a new temporary file. dims: values of the symbols, such as {"b": 2, "s": 16}, or several; the
        page shows the arena and measures the kernels at each of them, as `explain` does. show: whether to open the
        page in a browser, if there is a display; by default only temporary pages are opened. Raises OptionError if
        `path` is a mapping, ShapeError for values that the program does not allow, and OSError.
        """
        from shlo_disc.report.page import report_page
        from shlo_disc.report.page.browser import show_page, temporary_page

        if isinstance(path, Mapping):
            raise OptionError(f"the first argument of report is a path: write report(dims={dict(path)!r})")
        if path is not None:
            check_folder(path)
        page = report_page(self._artifact, self._at(STAGES[-1]), lambda: self._loaded.client, all_dims(dims))
        written = temporary_page() if path is None else Path(path)
        written.write_text(page, encoding="utf-8")
        shown = path is None if show is None else show
        if shown:
            show_page(written)
        return written

    def trace(self, path: str | os.PathLike[str], dims: Iterable[Mapping[str, int]] | Mapping[str, int] = ()) -> Path:
        """Write a trace of the compile, and of a call at each of `dims`, for https://ui.perfetto.dev; returns its path.

        Raises ShapeError for values that the program does not allow, DeviceError for calls if there is no GPU, and
        OSError.
        """
        import json

        from shlo_disc.report.trace import trace_of, traced_call

        check_folder(path)
        written, loaded = Path(path), self._loaded
        calls = [traced_call(loaded.artifact.level(), loaded.client, self.explain(**d)) for d in all_dims(dims)]
        written.write_text(json.dumps(trace_of(self._at(STAGES[-1]), calls)))
        return written

    # ---- what it needs --------------------------------------------------------------------------------------------

    @by_name
    def out_shape(self, **dims: int) -> Any:
        """The shapes of the results for given values of the symbols: a pytree of jax.ShapeDtypeStructs.

        Raises ShapeError for values that the program does not allow. Nothing is allocated and nothing runs.
        """
        leaves = self._loaded.result_types(**dims)
        if self._trees[1] is not None:
            import jax

            return jax.tree.unflatten(self._trees[1], leaves)
        return leaves[0] if len(leaves) == 1 else tuple(leaves)

    def measure_peak_memory(self, *args: Any, **kwargs: Any) -> int:
        """Run the program once and return its peak of allocated bytes, as counted by the allocator.

        The result is meaningful only if no other thread allocates from the same client.
        """
        collect_dropped()
        self._client.reset_peak()
        before = self.memory_stats()["live_bytes"]
        self(*args, **kwargs)
        return self.memory_stats()["peak_bytes"] - before

    @property
    def peak_memory_formula(self) -> str:
        """`peak_memory` as an expression of the symbols, in bytes."""
        from shlo_disc.driver.stage_text import peak_memory

        return str(peak_memory(self._at("plan")))

    def max_dim(self, name: str, values: Mapping[str, int] = NO_DIMS, /, *, memory: int, **dims: int) -> int:
        """The largest value of a symbol for which `peak_memory` is at most `memory` bytes.

        dims: the values of all other symbols, which may also be in the mapping `values`. The result is exact: bounds of
        the formula exclude greater values. Where it is not monotone, a smaller value may take more than `memory`.
        Raises ShapeError when no value fits, when every value fits and the symbol has no maximum, or for wrong symbols.
        """
        from shlo_disc.driver.max_dim import max_dim

        return max_dim(self, self._at("plan"), name, memory, {**values, **dims})

    def _at(self, stage: str) -> Compilation:
        """The compilation, down to `stage` at least."""
        from shlo_disc.driver.compiler import run_pipeline

        with self._lock:
            return run_pipeline(self._start(), stage)


__all__ = ["Executable", "KernelLaunch"]
