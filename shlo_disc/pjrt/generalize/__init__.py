# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One symbolic program for programs that differ in sizes only.

JAX sends a program without symbols for each shape. The native table of programs (`runtime/native/pjrt/program_table.h`)
tells which of them have one skeleton: all but their numbers, which are the sizes in types, the integers of attributes
that state sizes, and the elements of constants. From two or more of them this package makes a program whose sizes are
symbols, and an expression of the symbols for every number:

| module | what it does |
|--|--|
| `classes` | which of the programs: all, else those whose sizes leave the same remainders |
| `samples` | reads the programs and finds the place of each number in the module of one of them |
| `relations` | which numbers are the same at all sizes, as far as the ops tell |
| `pieces`, `gradients` | which numbers of ops belong together: where a value is cut, what gradients return to |
| `symbols` | which sizes of arguments are symbols, and which numbers count as constants of the program |
| `expressions`, `op_numbers` | an expression for each number: the op's formula, else the simplest that fits |
| `formulas`, `paddings`, `slices` | sizes that ops imply, paddings that sizes imply, bounds of slices |
| `elements` | constants: numbers, sizes, or hidden arguments |
| `search`, `terms`, `costs` | the simplest expression of some values, what it is made of, and what is simple |
| `emit` | rewrites the module: `?` for sizes, dynamic forms of ops that state them, hidden arguments |
| `steps` | the expressions as the table computes them |

The expressions may be guesses. The table serves another program by the symbolic one only if each of its numbers is what
the expression gives at its sizes; then both are the same program. A constant that changes and is no size becomes an
argument, which the table fills with the elements that the program at hand has.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from shlo_disc.driver.artifact_header import artifact_of
from shlo_disc.driver.cache import cache_key, open_cache, without_places
from shlo_disc.driver.compilation import Compilation, cpu_named
from shlo_disc.driver.compiler import run_pipeline, run_stage
from shlo_disc.driver.executable import Executable
from shlo_disc.driver.garbage import fewer_collections
from shlo_disc.errors import ArtifactError, DiscError, ProgramError, UnsupportedError
from shlo_disc.importer.import_program import declare, mark_participants, plain_signature
from shlo_disc.importer.normalise import entry_function, normalise
from shlo_disc.importer.precision import decide_precision
from shlo_disc.importer.programs import TextProgram
from shlo_disc.importer.support import check_supported
from shlo_disc.importer.tokens import tokens_as_arrays
from shlo_disc.options import CPU, Options
from shlo_disc.runtime import Artifact
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dialect.remembered import remembering
from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts

from .classes import choices
from .emit import Emission, finish
from .expressions import Expressions
from .misses import Miss, first_miss
from .relations import Relations
from .samples import NotGeneralError, Samples
from .steps import Step, Steps

_MOST_COST = {3: 3.0, 4: 4.0, 5: 5.0, 6: 6.0}
"""By the number of programs that an expression fits; the last one is for more."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SymbolicProgram:
    """A compiled program that all of some programs are instances of.

    artifact: the program; load: gives its executable.
    symbols: for each symbol the number that it is; those that the executable solves come first, in its order.
    steps: expressions of the symbols.
    expected: for each number the step that gives it, -1 where it may be anything.
    hidden: the constants, counted in the order of the program, that are the last arguments.
    least: the smallest value of each symbol.
    given: the symbols, by their positions, that are sizes of no argument. One more argument has them as sizes.
    """

    artifact: Artifact
    load: Callable[[], Executable]
    symbols: tuple[int, ...]
    steps: tuple[Step, ...]
    expected: tuple[int, ...]
    hidden: tuple[int, ...]
    least: tuple[int, ...]
    given: tuple[int, ...]

    @functools.cached_property
    def executable(self) -> Executable:
        """The program in this process."""
        return self.load()

    def explain_miss(self, program: bytes) -> Miss | None:
        """The number of a program of this skeleton that differs from what is expected; None where it is an instance."""
        return first_miss(self.symbols, self.least, self.steps, self.expected, program)

    def for_table(self) -> tuple[list[int], list[Step], list[int], list[int], list[int], list[int]]:
        """The arguments of the native table, after the executable."""
        parts = (self.symbols, self.expected, self.hidden, self.least, self.given)
        symbols, expected, hidden, least, given = map(list, parts)
        return symbols, list(self.steps), expected, hidden, least, given


def generalize(
    programs: Sequence[bytes], options: Options | None = None, target: str = CPU, participants: int = 1
) -> SymbolicProgram:
    """Compile a program that has portable artifacts as instances: all of them, else the last and others like it.

    participants: how many devices run it together. Raises NotGeneralError when there is none to be found, and what the
    compiler raises.
    """
    reason: NotGeneralError | None = None
    for chosen, most_cost in _attempts(programs):
        try:
            return _generalize(chosen, options or Options(), target, most_cost, participants)
        except NotGeneralError as error:
            reason = reason or error
    raise reason or NotGeneralError("there are no programs")


def _attempts(programs: Sequence[bytes]) -> Iterator[tuple[Sequence[bytes], float]]:
    """Yields programs to generalise, and the most that an expression may cost before a symbol is the better guess.

    Two programs are too few to tell: what they suggest is refuted by a third one, or is right. From then on little is
    guessed, so that there is no fourth.
    """
    if len(programs) > 2:
        yield programs, _MOST_COST[min(len(programs), max(_MOST_COST))]
    for chosen in choices(programs):
        yield chosen, inf


def _generalize(
    programs: Sequence[bytes], options: Options, target: str, most_cost: float, participants: int
) -> SymbolicProgram:
    compilation = Compilation(options, target, make_context(), cpu=cpu_named(options.cpu))
    found: list[Expressions] = []

    def work() -> None:
        samples = Samples(programs, compilation.context)
        expressions = Expressions(samples, Relations(samples), most_cost)
        if expressions.contested or expressions.separate:
            relations = Relations(samples, expressions.contested, expressions.separate)
            expressions = Expressions(samples, relations, most_cost)
        found.append(expressions)
        _import(compilation, found[0], participants)

    try:
        with compilation.context, ir.Location.unknown(), remembering(), fewer_collections():
            run_stage(compilation, "import", work)
        artifact, load = _compiled(compilation, partial(_instances, programs, most_cost, participants))
    except (ProgramError, UnsupportedError) as error:  # the programs are right, so what was guessed of them is not
        raise NotGeneralError(f"the symbolic program is none: {error}") from None
    return _program(artifact, load, found[0])


def _instances(programs: Sequence[bytes], most_cost: float, participants: int) -> TextProgram:
    """The text that stands for a symbolic program in the compile cache: that of its instances."""
    contents = [without_places(program) for program in programs]
    parts = b"".join(len(content).to_bytes(8, "little") + content for content in contents)
    return TextProgram(f"instances {most_cost:g}".encode() + parts, participants=participants)


def _compiled(c: Compilation, instances: Callable[[], TextProgram]) -> tuple[Artifact, Callable[[], Executable]]:
    """The artifact of an imported program, from the compile cache or compiled, and a function that loads it.

    instances: what stands for it in the cache, if there is one.
    """
    cache, key = open_cache(c.options) if c.target == CPU else None, ""
    if cache:
        key = cache_key(instances(), c.options)
        if artifact := cache.load(key):
            try:
                kept = Executable(artifact, c.options, (None, None), lambda: c, c.timings, 0)
                return artifact, lambda: kept
            except ArtifactError:
                cache.discard(key)
    run_pipeline(c)
    made = artifact_of(c)
    if cache:
        cache.store(key, made)
    return made, lambda: Executable(made, c.options, (None, None), lambda: c, c.timings, c.compile_count)


def generalize_or_explain(
    programs: Sequence[bytes],
    options: Options | None = None,
    target: str = CPU,
    tell: Callable[[Exception], None] = lambda error: None,
    participants: int = 1,
) -> SymbolicProgram | None:
    """As `generalize`; None when it does not succeed, for whatever reason: each program can be compiled as it is.

    tell: is given the reason. One that is a fault of ours is also logged.
    """
    try:
        return generalize(programs, options, target, participants)
    except (NotGeneralError, DiscError) as error:
        tell(error)
    except Exception as error:  # a program that compiles as it is must not fail because of its other shapes
        tell(error)
        _log.warning("compiled for one shape only, after an unexpected error", exc_info=True)
    return None


def _import(c: Compilation, expressions: Expressions, participants: int) -> None:
    """The `import` stage: from the samples' module to one function with symbols."""
    module = expressions.samples.module
    mark_participants(module, participants)
    Emission(expressions).run()
    tokens_as_arrays(expressions.main)
    arguments = [_dims(expressions, a) for a in expressions.main.regions[0].blocks[0].arguments]
    normalise(module)
    entry = entry_function(module)
    shapes = [*arguments, *finish(entry, tuple(map(Expr.symbol, expressions.given)))]
    check_supported(module, entry)
    if c.target != CPU:
        decide_precision(module, c.options.matmul_precision)
    c.module, c.signature = module, plain_signature(module, shapes)
    facts = Facts()
    for name in expressions.symbols:
        facts.declare(name, min=expressions.least(name))
    declare(module, c.signature, facts)


def _dims(expressions: Expressions, argument: ir.Value) -> Dims:
    """The sizes of an argument of the program; those of one that was a token are none of the samples'."""
    if argument in expressions.samples.dims:
        return expressions.dims(argument)
    return tuple(map(Expr.const, ir.RankedTensorType(argument.type).shape))


def _program(artifact: Artifact, load: Callable[[], Executable], expressions: Expressions) -> SymbolicProgram:
    solved = [row["name"] for row in artifact.header["symbols"]]
    names = [*solved, *(name for name in expressions.symbols if name not in solved)]
    steps = Steps(names)
    samples = expressions.samples
    free = {number for position in expressions.hidden for number in samples.elements[position]}
    uses = samples.uses

    def step(number: int) -> int:
        if number in free:
            return -1
        return steps.of(expressions.use(uses[number], number) if number in uses else expressions.of(number))

    expected = tuple(map(step, range(len(samples.values))))
    hidden = tuple(samples.constants[position] for position in expressions.hidden)
    symbols = tuple(expressions.symbols[name] for name in names)
    least, given = tuple(map(expressions.least, names)), tuple(map(names.index, expressions.given))
    return SymbolicProgram(artifact, load, symbols, tuple(steps.rows), expected, hidden, least, given)


__all__ = [
    "NotGeneralError", "SymbolicProgram", "generalize", "generalize_or_explain",
]  # fmt: skip
