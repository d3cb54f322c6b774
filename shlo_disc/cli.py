# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line: `python -m shlo_disc opt|compile|info|run|explain|report|tune|bisect|check|ops`.

    opt FILE [--stage NAME]             print a stage's MLIR, or the LLVM IR or assembly
    opt FILE --pass-pipeline=PASSES     print what stages, passes and MLIR's passes make of it
    compile FILE -o OUT                 write the artifact, which `shlo_disc.runtime` loads without the compiler
    info FILE                           signature, symbols, constraints, kernels, memory, timings
    run FILE --dims b=2,s=16            call the program once on synthetic or given arrays
    explain FILE --dims b=2,s=16        what a call consists of: each kernel's time beside what the machine allows
    report FILE [--dims b=2,s=16] -o P  one HTML page of all that a compile did; see docs/report.md
    tune FILE --dims b=2,s=16 -o OUT    choose how kernels are written by measuring, for `--schedule OUT`
    bisect FILE [--dims b=2,s=16]       find the decision with which the results become wrong
    check FILE...                       run self-checking modules; see `shlo_disc.check`
    doctor                              what works on this machine, and what to do about the rest
    ops                                 the table of ops: what is compiled, for which element types and how

FILE is StableHLO text, bytecode or a portable artifact, or what the `serialize` of a `jax.export.Exported` wrote;
`info` and `run` take a compiled artifact too. Results go to standard output and errors to standard error. Exit status:
0, 1 when the program or a file is at fault, 2 when the command line is.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shlo_disc.bisect.command import add_bisect
from shlo_disc.check.command import add_check
from shlo_disc.errors import ArtifactError, DiscError, OptionError
from shlo_disc.opt_command import add_opt
from shlo_disc.options import Options
from shlo_disc.report.command import add_report
from shlo_disc.schedule import Schedule
from shlo_disc.target import CPU, TARGETS

if TYPE_CHECKING:
    from shlo_disc.executable import Executable
    from shlo_disc.runtime import Artifact

ARTIFACT_MAGIC = b"SHLODISC"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status. Raises SystemExit(2) on a wrong command line, as argparse does."""
    options = _parser().parse_args(arguments)
    try:
        status = options.command(options) or 0
        sys.stdout.flush()
    except DiscError as error:
        return _fail(str(error))
    except BrokenPipeError:
        # The reader of a pipe left, e.g. `| head`; the interpreter must not try to flush again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    return status


def _fail(message: str) -> int:
    print(f"shlo_disc: error: {message}", file=sys.stderr)
    return 1


# ---- the command line --------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="shlo_disc", description="Compile StableHLO once, for every shape.")
    parser.add_argument("--version", action="version", version=f"shlo_disc {version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_opt(commands, _add_common, _options)
    _add_compile(commands)
    _add_info(commands)
    _add_run(commands)
    _add_explain(commands)
    add_report(commands, _pairs, _add_common, _build)
    _add_doctor(commands)
    _add_tune(commands)
    add_check(commands)
    add_bisect(commands, _pairs, _add_common, _options)
    _add_ops(commands)
    _add_dialect(commands)
    return parser


def _add_compile(commands: Any) -> None:
    command = commands.add_parser("compile", help="write a compiled artifact")
    command.set_defaults(command=_compile)
    command.add_argument("file", metavar="FILE")
    command.add_argument("-o", "--output", metavar="FILE", required=True)
    _add_common(command)


def _add_info(commands: Any) -> None:
    command = commands.add_parser("info", help="what a program or an artifact takes, gives and needs")
    command.set_defaults(command=_info)
    command.add_argument("file", metavar="FILE")
    _add_common(command)


def _add_run(commands: Any) -> None:
    command = commands.add_parser("run", help="call a program once")
    command.set_defaults(command=_run)
    command.add_argument("file", metavar="FILE")
    command.add_argument("--dims", type=_pairs, default={}, metavar="b=2,s=16", help="sizes of synthetic arguments")
    command.add_argument("--seed", type=int, default=0, help="seed of synthetic arguments")
    command.add_argument("--inputs", metavar="FILE.npz", help="arguments, in the order of the archive")
    command.add_argument("--outputs", metavar="FILE.npz", help="write the results there")
    command.add_argument("--trust", action="store_true", help="run an artifact's native code: say so if you made it")
    _add_common(command)


def _add_doctor(commands: Any) -> None:
    command = commands.add_parser("doctor", help="what works on this machine, and what to do about the rest")
    command.set_defaults(command=_doctor)
    command.add_argument("--json", action="store_true", help="print everything as JSON")


def _add_explain(commands: Any) -> None:
    command = commands.add_parser("explain", help="what a call consists of, kernel by kernel")
    command.set_defaults(command=_explain)
    command.add_argument("file", metavar="FILE")
    command.add_argument("--dims", type=_pairs, default={}, metavar="b=2,s=16", help="the values of the symbols")
    command.add_argument("--json", action="store_true", help="print everything as JSON")
    _add_common(command)


def _add_tune(commands: Any) -> None:
    command = commands.add_parser("tune", help="choose how kernels are written by measuring")
    command.set_defaults(command=_tune)
    command.add_argument("file", metavar="FILE")
    command.add_argument(
        "--dims", type=_pairs, action="append", required=True, metavar="b=2,s=16", help="a shape; may be given often"
    )
    command.add_argument("--rounds", type=int, default=15, help="calls of each candidate at each shape")
    command.add_argument("-o", "--output", metavar="FILE", required=True, help="write the schedule there")
    _add_common(command)


def _add_ops(commands: Any) -> None:
    command = commands.add_parser("ops", help="print the table of ops")
    command.set_defaults(command=_ops)


def _add_dialect(commands: Any) -> None:
    command = commands.add_parser("dialect", help="print the page of the disc dialect")
    command.add_argument("--irdl", action="store_true", help="print the dialect as IRDL")
    command.set_defaults(command=_dialect)


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--target", default=CPU, help=f"what to compile for: {', '.join(TARGETS)} (default: {CPU})")
    command.add_argument("--threads", type=int, default=0, help="threads of a call; 0: all processors")
    command.add_argument("--opt-level", type=int, help="LLVM's optimisation level, 0 to 3")
    command.add_argument("--schedule", metavar="FILE", help="how kernels are written, by `shlo_disc tune`")
    command.add_argument("--max-fusions", type=int, metavar="N", help="make N fusions at most, to find a faulty one")
    command.add_argument("--no-reuse", action="store_true", help="give every value a buffer of its own, to find faults")
    command.add_argument("--deterministic", action="store_true", help="GPUs give the same bits at each run, slowly")
    command.add_argument("--strict", action="store_true", help="an internal error of a fusion ends the compile")
    command.add_argument("--symbolic", action="store_true", help="make the argument sizes of a static program symbols")
    command.add_argument("--hints", type=_pairs, default={}, metavar="s=128", help="likely sizes of symbols")


def _pairs(text: str) -> dict[str, int]:
    """`b=2,s=16` as a dict."""
    pairs = [part.partition("=") for part in text.split(",")]
    try:
        return {name.strip(): int(value) for name, _, value in pairs}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form b=2,s=16") from None


def _options(options: argparse.Namespace) -> Options:
    return Options(
        threads=options.threads,
        opt_level=options.opt_level,
        hints=options.hints,
        symbolic=options.symbolic,
        max_fusions=options.max_fusions,
        reuse=not options.no_reuse,
        deterministic=options.deterministic,
        strict=options.strict or None,
        schedule=Schedule.load(options.schedule) if options.schedule else Schedule(),
    )


# ---- compile -------------------------------------------------------------------------------------------------


def _build(options: argparse.Namespace) -> Executable:
    """The executable."""
    from shlo_disc.api import compile as build

    return build(Path(options.file), target=options.target, options=_options(options))


def _compile(options: argparse.Namespace) -> None:
    executable = _build(options)
    executable.save(options.output)
    print(f"{options.output}: {os.path.getsize(options.output)} bytes, {executable.signature}")


def _ops(options: argparse.Namespace) -> None:
    from shlo_disc.registry.document import ops_document

    sys.stdout.write(ops_document())


def _dialect(options: argparse.Namespace) -> None:
    from shlo_disc.shape_dialect.dialect.document import dialect_document, irdl_text

    sys.stdout.write(irdl_text() if options.irdl else dialect_document())


# ---- info --------------------------------------------------------------------------------------------------------


def _info(options: argparse.Namespace) -> None:
    artifact = _artifact(options)
    lines = _artifact_lines(artifact) if artifact else _executable_lines(_build(options))
    print("\n".join(lines))


def _artifact(options: argparse.Namespace, *, trust: bool = False) -> Artifact | None:
    """The file as an artifact; None when it is a program."""
    from shlo_disc.runtime import Artifact

    with open(options.file, "rb") as file:
        if file.read(len(ARTIFACT_MAGIC)) != ARTIFACT_MAGIC:
            return None
        file.seek(0)
        return Artifact.deserialize(file.read(), trust=trust)


def _artifact_lines(artifact: Artifact) -> Iterator[str]:
    """What the header says; the native code is not touched."""
    header = artifact.header
    try:
        yield from _header_lines(header)
        yield from _section_lines(artifact)
    except (KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(f"the artifact's header is malformed: {error!r}") from None


def _section_lines(artifact: Artifact) -> Iterator[str]:
    target = artifact.header["target"]
    sections = (
        ("object", "native code", target.get("triple")),
        ("ptx", "PTX", target.get("name")),
        ("consts", "constants", None),
    )
    for name, text, machine in sections:
        if name in artifact.sections:
            yield f"{text:<13} {len(artifact.sections[name])} bytes" + (f" for {machine}" if machine else "")


def _executable_lines(executable: Executable) -> Iterator[str]:
    yield from _header_lines(executable.artifact.header)
    yield f"kernels       {len(executable.kernels)} launches, {len(set(executable.kernels))} different"
    yield from (f"  {launch.name}: {launch.kind}" for launch in executable.kernels)
    yield f"peak memory   {executable.peak_memory_formula} bytes"
    yield from _section_lines(executable.artifact)
    yield f"timings       {sum(executable.timings.values()):.3f} s"
    yield from (f"  {stage}: {seconds:.3f} s" for stage, seconds in executable.timings.items())


def _header_lines(header: Mapping[str, Any]) -> Iterator[str]:
    from shlo_disc.runtime.described import tensor_text

    yield f"program       {header['name']}"
    for title in ("arguments", "results"):
        yield f"{title:<14}{len(header[title])}"
        yield from (f"  {tensor_text(row)}" for row in header[title])
    yield f"symbols       {len(header['symbols'])}"
    yield from (f"  {_symbol(row)}" for row in header["symbols"])
    checks = [check for check in header["checks"] if check["kind"] in ("constraint", "equal")]
    yield f"constraints   {len(checks)}"
    yield from (f"  {_condition(check['message'])}" for check in checks)


def _symbol(row: Mapping[str, Any]) -> str:
    low = f"{row['min']} <= " if row["min"] is not None else ""
    high = f" <= {row['max']}" if row["max"] is not None else ""
    solve = row["solve"]
    return f"{low}{row['name']}{high}, from dimension {solve['dim']} of argument {solve['argument']}"


def _condition(message: str) -> str:
    """The part of a check's message that states the condition, without the sizes of a call."""
    text = message.removeprefix("Input shapes do not match the ")
    text = text.removeprefix("polymorphic shapes specification. ").removeprefix("symbolic shape constraint ")
    return text.partition(", but found")[0].partition(" Using the following")[0]


# ---- doctor ------------------------------------------------------------------------------------------------------


def version() -> str:
    """The package's."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    try:
        return version_of("shlo_disc")
    except PackageNotFoundError:
        return "unknown"


def _doctor(options: argparse.Namespace) -> int:
    """1 where nothing works without what is broken."""
    import json

    from shlo_disc.doctor import BROKEN, examine, report

    found = []
    for finding in examine():
        found.append(finding)
        if not options.json:
            print(finding, flush=True)
    if options.json:
        print(json.dumps(report(iter(found)), indent=2))
    return int(any(finding.state == BROKEN for finding in found))


# ---- explain -----------------------------------------------------------------------------------------------------


def _explain(options: argparse.Namespace) -> None:
    import json

    explanation = _build(options).explain(**options.dims)
    print(json.dumps(explanation.to_json(), indent=2) if options.json else explanation)


# ---- tune --------------------------------------------------------------------------------------------------------


def _tune(options: argparse.Namespace) -> None:
    from shlo_disc.tune import tune

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    found = tune(Path(options.file), options.dims, options=_options(options), rounds=options.rounds, say=say)
    found.schedule.save(options.output)
    print(found)


# ---- run ---------------------------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> None:
    import numpy as np

    from shlo_disc.clients import gpu_client
    from shlo_disc.report.synthetic import load_flat, synthetic_arguments
    from shlo_disc.runtime import Client
    from shlo_disc.target import CPU

    artifact = _artifact(options, trust=options.trust) or _build(options).artifact
    if not artifact.trusted:
        raise ArtifactError("the artifact holds native code from outside: pass --trust if you know who made it")
    rows = artifact.header["results"]
    on = Client(threads=options.threads) if artifact.header["target"].get("name", CPU) == CPU else gpu_client()
    executable = load_flat(on, artifact)
    header, dims = artifact.header, options.dims
    arrays = _read_inputs(options.inputs) if options.inputs else synthetic_arguments(header, dims, options.seed)
    start = time.perf_counter()
    results = executable(*arrays)
    seconds = time.perf_counter() - start
    for row, result in zip(rows, results, strict=True):
        print(f"{row['path']}: {result.dtype}{list(result.shape)} {_summary(result)}")
    print(f"first call    {seconds:.6f} s")
    if options.outputs:
        np.savez(options.outputs, *results)


def _read_inputs(path: str) -> list[Any]:
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as archive:
            return [archive[name] for name in archive.files]
    except (AttributeError, EOFError, ValueError) as error:
        raise OptionError(f"{path}: not an archive of arrays: {error}") from None


def _summary(array: Any) -> str:
    """Enough to compare two runs by eye: the mean of the magnitudes in double precision."""
    import numpy as np

    return f"mean magnitude {np.abs(array.astype(np.float64)).mean():.6g}" if array.size else "empty"


__all__ = ["main"]
