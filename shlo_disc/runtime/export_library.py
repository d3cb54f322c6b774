# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`Executable.export_library`: a program and the runtime in one shared library, with a header that has its types."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from shlo_disc.errors import OptionError, check_folder
from shlo_disc.options import CPU
from shlo_disc.runtime import Artifact
from shlo_disc.runtime.c_api import get_archive, get_include
from shlo_disc.runtime.described import argument_names, type_text

_TYPES = {"f32": "float", "f64": "double", "c64": "float", "c128": "double", "i1": "uint8_t"}
_TYPES |= {f"i{bits}": f"int{max(bits, 8)}_t" for bits in (2, 4, 8, 16, 32, 64)}
_TYPES |= {f"u{bits}": f"uint{max(bits, 8)}_t" for bits in (2, 4, 8, 16, 32, 64)}
_TYPES |= {"f16": "uint16_t", "bf16": "uint16_t"}
"""The C types of elements; those that are not here are floats of a byte. Complex numbers are two reals."""

_KEYWORDS = frozenset((
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
    "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed",
    "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "plan",
    "program", "asm", "bool", "catch", "class", "delete", "explicit", "export", "false", "friend", "mutable",
    "namespace", "new", "operator", "private", "protected", "public", "template", "this", "throw", "true", "try",
    "typename", "using", "virtual", "wchar_t", "int64_t", "int32_t", "int16_t", "int8_t", "uint64_t", "uint32_t",
    "uint16_t", "uint8_t", "size_t", "errno", "linux", "unix", "nullptr", "offsetof", "static_assert", "typeof",
))  # fmt: skip
"""Keywords of C and C++, and names in the header."""

_TAKEN_HEADERS = frozenset((
    "shlo_disc", "shlo_disc_custom_call", "alloca", "assert", "complex", "ctype", "endian", "errno", "features", "fenv",
    "float", "inttypes", "iso646", "libintl", "limits", "locale", "math", "pthread", "sched", "setjmp", "signal",
    "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib", "stdnoreturn", "string",
    "strings", "tgmath", "threads", "time", "uchar", "unistd", "wchar", "wctype",
))  # fmt: skip
"""Headers of the package and of C, and those that these include: one of the same name beside the library hides them."""

_RESERVED = re.compile(r"_.*|[A-Z][A-Z0-9_]*|k?DL\w*|disc_\w*|\w+_t|i386")
"""Names that are, or could become, macros and types of the headers that are included."""


def export_library(artifact: Artifact, path: str | os.PathLike[str], name: str | None = None) -> None:
    """Write `path`, a shared library of the program and the runtime, and beside it `NAME.h` and what that includes.

    name: what its functions begin with; by default the file's name up to its first dot, without "lib". Needs a C
    compiler: `$CC`, or cc. Raises OptionError for a name that is none in C, and for programs that C cannot run by
    plans: those for GPUs or several devices, and those with sizes that depend on data, which `disc_load` and
    `disc_call` run; FileNotFoundError without a compiler, OSError with its message where it fails.
    """
    target = Path(path)
    check_folder(target)
    if name is None:
        name = re.sub(r"\W", "_", target.name.split(".")[0].removeprefix("lib"))
    _check(artifact.header, name)
    compiler = _compiler()
    text = _header_text(artifact.header, name)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / f"{name}.h").write_text(text)
        (work / f"{name}.c").write_text(_source_text(artifact.header, name))
        (work / f"{name}.map").write_text(f"{{ global: disc_*; {name}_*; local: *; }};\n")
        artifact.save(work / f"{name}.disc")
        _link(compiler, work, name, target.name)
        for made, to in ((f"{name}.so", target.name), (f"{name}.h", f"{name}.h")):
            _put(work / made, target.parent / to)
    for header in ("shlo_disc.h", "shlo_disc_custom_call.h"):
        _put(Path(get_include()) / header, target.parent / header)


def _check(header: Mapping[str, Any], name: str) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name in _KEYWORDS:
        raise OptionError(f"{name!r} is no name for functions in C: pass another as name=")
    if name == "disc" or name.startswith("disc_"):
        raise OptionError(f"functions of shlo_disc.h have names that begin with {name!r}: pass another as name=")
    if name.lower() in _TAKEN_HEADERS:
        raise OptionError(f"the header {name}.h would hide the one of that name: pass another name as name=")
    if header["target"].get("name", CPU) not in (None, CPU) or header.get("replicas", 1) != 1:
        raise OptionError("export_library is for programs of the processor and one device: compile it for these")
    if header.get("segments"):
        raise OptionError(
            "export_library is for programs whose sizes follow from those of the arguments, and this one has sizes "
            "that depend on data: write it with save(path), and call it from C by disc_load and disc_call"
        )


def _compiler() -> str:
    wanted = os.environ.get("CC", "cc")
    found = shutil.which(wanted)
    if found is None:
        raise FileNotFoundError(
            f"export_library needs a C compiler, and there is no {wanted!r}: install one, or set CC"
        )
    return found


def _link(compiler: str, work: Path, name: str, soname: str) -> None:
    command = [
        compiler, "-std=gnu11", "-O1", "-fPIC", "-shared", "-s", f"-I{get_include()}", f"-I{work}", f"{name}.c",
        "-Wl,--whole-archive", get_archive(), "-Wl,--no-whole-archive", f"-Wl,--version-script={name}.map",
        "-Wl,-Bsymbolic", "-Wl,-z,nodelete", "-Wl,--no-undefined", "-Wl,--gc-sections", "-Xlinker", "-soname",
        "-Xlinker", soname,  # by itself, for a comma in it would end an option of -Wl
        "-l:libstdc++.so.6", "-lm", "-ldl", "-pthread", "-o", f"{name}.so",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)  # noqa: S603 (the user's own)
    if done.returncode != 0:
        raise OSError(f"{compiler} could not make the library:\n{done.stderr}")


def _put(source: Path, target: Path) -> None:
    """Copy a file, whole or not at all: what has the old one open keeps it."""
    unfinished = target.with_name(f".{target.name}-{os.getpid()}")
    try:
        shutil.copyfile(source, unfinished)
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


# ---- what is generated -------------------------------------------------------------------------------------------


def _names(texts: Sequence[str], taken: set[str]) -> Iterator[str]:
    """A name in C for each text, none of them taken."""
    for text in texts:
        plain = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "x"
        plain = f"x{plain}" if plain[0].isdigit() else plain
        name = plain
        if name in _KEYWORDS or (len(name) > 1 and _RESERVED.fullmatch(name)):
            name = f"x_{name.lstrip('_')}"
        while name in taken:
            name += "_"
        taken.add(name)
        yield name


def _arrays(header: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """(name, type of the pointer, row of the header) of all arguments and results."""
    rows = [*header["arguments"], *header["results"]]
    names = _names([row["path"] for row in rows], {str(symbol["name"]) for symbol in header["symbols"]})
    found = []
    for i, (name, row) in enumerate(zip(names, rows, strict=True)):
        const = "const " if i < len(header["arguments"]) else ""
        found.append((name, f"{const}{_TYPES.get(row['dtype'], 'uint8_t')} *", row))
    return found


def _plan_signature(name: str, symbols: Sequence[str]) -> str:
    sizes = "".join(f"int64_t {symbol}, " for symbol in symbols)
    return f"disc_error_t *{name}_plan({sizes}disc_plan_t **plan)"


def _run_signature(header: Mapping[str, Any], name: str, arrays: Sequence[str]) -> str:
    lines = [f"disc_error_t *{name}_run(const disc_plan_t *plan"]
    names = [*argument_names(header), *[""] * len(header["results"])]
    for own, (_, pointer, row), called in zip(arrays, _arrays(header), names, strict=True):
        text = f"{called}: {type_text(row, is_as_taken=True)}" if called else type_text(row, is_as_taken=True)
        text = " ".join(text.split()).replace("*/", "* /").replace("/*", "/ *").replace("\\", "/")
        lines.append(f"    {pointer}{own} /* {text} */")
    return ",\n".join(lines) + ")"


def _header_text(header: Mapping[str, Any], name: str) -> str:
    guard, title = f"{name.upper()}_H", repr(header["name"]).replace("*/", "* /")
    symbols = list(_names([str(symbol["name"]) for symbol in header["symbols"]], set()))
    return f"""\
/* The compiled program {title}; made by shlo_disc. Link with the library beside this header. */
#ifndef {guard}
#define {guard}

#include "shlo_disc.h"

#ifdef __cplusplus
extern "C" {{
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* The program, for the functions of shlo_disc.h. It is loaded by the first call of a function here, and stays as long
 * as the process: do not free it. Errors: as disc_load. */
disc_error_t *{name}_program(disc_program_t **program);

/* The sizes of all results, for values of the symbols. Errors: as disc_plan. */
{_plan_signature(name, symbols)};

/* Runs the program at the sizes of a plan. Arrays are row-major without gaps; results must not overlap others.
 * Errors: as disc_run. */
{_run_signature(header, name, [own for own, _, _ in _arrays(header)])};

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}}
#endif

#endif
"""


def _source_text(header: Mapping[str, Any], name: str) -> str:
    # Parameters are numbered here, for names of the program could be those of what stands around them.
    count = len(header["arguments"])
    arrays = [f"array_{i}" for i in range(count + len(header["results"]))]
    symbols = [f"symbol_{i}" for i in range(len(header["symbols"]))]
    given, taken = ([f"(void *){own}" for own in part] for part in (arrays[:count], arrays[count:]))
    return f"""\
#include "{name}.h"

#include <pthread.h>

__asm__(".section .rodata\\n.balign 64\\n{name}_artifact: .incbin \\"{name}.disc\\"\\n"
        "{name}_artifact_end:\\n.previous\\n");
disc_error_t *disc_check_parameter(const void *given, const char *parameter); /* both of the runtime */
disc_error_t *disc_check_plan(const disc_plan_t *plan, const disc_program_t *program, const char *function);

extern const char begin[] __asm__("{name}_artifact"), end[] __asm__("{name}_artifact_end");

disc_error_t *{name}_program(disc_program_t **program) {{
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static disc_program_t *loaded;
  disc_load_options options = {{.struct_size = sizeof options, .trust = 1, .borrow = 1}};
  disc_error_t *error = disc_check_parameter(program, "{name}_program: program");
  if (error != NULL)
    return error;
  pthread_mutex_lock(&mutex);
  if (loaded == NULL)
    error = disc_load_bytes(begin, (size_t)(end - begin), &options, &loaded);
  if (error == NULL)
    *program = loaded;
  pthread_mutex_unlock(&mutex);
  return error;
}}

{_plan_signature(name, symbols)} {{
  disc_program_t *program;
  disc_error_t *error = disc_check_parameter(plan, "{name}_plan: plan");
  if (error == NULL)
    error = {name}_program(&program);
  const int64_t values[] = {{{", ".join([*symbols, "0"])}}};
  return error != NULL ? error : disc_plan_symbols(program, values, {len(symbols)}, plan);
}}

typedef disc_error_t *describe(const disc_program_t *, size_t, disc_array_info *);
typedef const int64_t *shape_of(const disc_plan_t *, size_t);

static disc_error_t *fill(const disc_plan_t *plan, describe *describe_array, shape_of *shape, size_t count,
                          void *const *data, DLTensor *tensors) {{
  disc_program_t *program;
  disc_error_t *error = {name}_program(&program);
  if (error == NULL)
    error = disc_check_plan(plan, program, "{name}_run");
  for (size_t i = 0; i < count && error == NULL; ++i) {{
    disc_array_info info = {{.struct_size = sizeof info}};
    error = describe_array(program, i, &info);
    int64_t *sizes = (int64_t *)shape(plan, i);
    tensors[i] = (DLTensor){{data[i], {{kDLCPU, 0}}, (int32_t)info.rank, info.type, sizes, NULL, 0}};
  }}
  return error;
}}

{_run_signature(header, name, arrays)} {{
  void *const given[] = {{{", ".join([*given, "NULL"])}}}, *const taken[] = {{{", ".join([*taken, "NULL"])}}};
  DLTensor arguments[{count + 1}], results[{len(taken) + 1}];
  disc_error_t *error = fill(plan, disc_describe_argument, disc_plan_argument_shape, {count}, given, arguments);
  if (error == NULL)
    error = fill(plan, disc_describe_result, disc_plan_result_shape, {len(taken)}, taken, results);
  return error != NULL ? error : disc_run(plan, arguments, {count}, results, {len(taken)});
}}
"""


__all__ = ["export_library"]
