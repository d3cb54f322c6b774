# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The errors of shlo_disc.

Every error that you can cause derives from `DiscError` and from a matching Python built-in, so `except ValueError`
catches a wrong size and `except TypeError` a wrong dtype or pytree.

Codes are stable names for what can go wrong, each with a page in docs/errors. An error's code follows from its class
and its words, which tests fix. So the errors of the native runtime, which has classes and words only, have codes as
those of Python do, and no place that raises names one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class DiscError(Exception):
    """Base class of every error that shlo_disc raises on purpose. Its text is `message`, then `code` in brackets."""

    def __str__(self) -> str:
        message, code = self.message, self.code
        if not code:
            return message
        return f"{message.rstrip()}\n[{code}]" if "\n" in message else f"{message} [{code}]"

    @property
    def message(self) -> str:
        """The text without the code."""
        said, code = super().__str__(), self.code
        return said.removesuffix(f"[{code}]").rstrip() if code and said.endswith(f"[{code}]") else said

    @property
    def code(self) -> str:
        """The stable code of the error, such as "DISC-S101", which `python -m shlo_disc why` explains."""
        return code_of((kind.__name__ for kind in type(self).__mro__), super().__str__())

    @property
    def remedy(self) -> str:
        """General advice: the end of the page of the code; "" if there is no page."""
        return advice_of(self.code)


class ProgramError(DiscError, ValueError):
    """The program cannot be parsed, deserialized or verified. The message has the position."""


class OptionError(DiscError, ValueError):
    """An option, target or hint does not exist or does not match the program."""


class ShapeError(DiscError, ValueError):
    """The sizes of a call violate the signature: a wrong rank or size, a violated constraint, an overflow."""


class ArgumentTypeError(DiscError, TypeError):
    """The dtypes or the pytree of a call violate the signature."""


class ArtifactError(DiscError, ValueError):
    """An artifact is damaged, has another version, or is for another processor."""


class RecompileError(DiscError, RuntimeError):
    """A function of `shlo_disc.jit(..., compile_once=True)` needs a second compile, or the plugin needs more programs
    for a function than SHLO_DISC_MAX_PROGRAMS allows."""


class CustomCallError(DiscError, RuntimeError):
    """A function registered for a custom call returned an error. The program has run; its results are lost."""


class DeviceError(DiscError, RuntimeError):
    """A GPU or its driver is missing, or work on it failed. The message quotes the driver."""


class CompilerError(DiscError, RuntimeError):
    """A stage failed, or produced IR that violates its rules. This is a bug in shlo_disc, not in the program."""


class ReaderError(DiscError, RuntimeError):
    """The process that reads programs from outside cannot be started, or does not answer."""


@dataclass(frozen=True)
class Unsupported:
    """One construct that cannot be compiled: the op, the dtype (or ""), the user's source line, why, what to do."""

    op: str
    dtype: str
    location: str
    reason: str
    suggestion: str = ""

    def __str__(self) -> str:
        dtype = f" on {self.dtype}" if self.dtype else ""
        hint = f"; {self.suggestion}" if self.suggestion else ""
        place = "" if self.location == "unknown" else f" at {self.location}"
        return f"{self.op}{dtype}{place}: {self.reason}{hint}"


class UnsupportedError(DiscError, NotImplementedError):
    """The program uses constructs that cannot be compiled. Lists all of them at once, in `constructs`."""

    def __init__(self, constructs: list[Unsupported]):
        self.constructs = tuple(constructs)
        lines = "\n".join(f"  - {c}" for c in self.constructs)
        super().__init__(f"{len(self.constructs)} unsupported construct(s):\n{lines}")


# ---- codes ----------------------------------------------------------------------------------------------------------


class Code(NamedTuple):
    """name: such as "DISC-S101". error: the class of the errors. words: a regular expression that is found in their
    messages; "" for all that no code above has. title: what it means, in a line."""

    name: str
    error: str
    words: str
    title: str


OTHER_PROCESSOR = "DISC-A103"

OF_PYTORCH = (
    "export a torch.nn.Module of it, by shlo_disc.compile(shlo_disc.torch.export(module, args, dynamic_shapes=...)), "
    'or call torch.compile(function, backend="shlo_disc", dynamic=True)'
)
"""Advice on a function of PyTorch that is given as one of JAX."""

CODES = (
    # The program.
    Code("DISC-P101", "ProgramError", r"takes more than .* allow more", "reading the program exceeds a limit"),
    Code("DISC-P102", "ProgramError", r"cannot be parsed|is neither text", "the text or bytes are not a program"),
    Code("DISC-P103", "ProgramError", r"^cannot read the program", "the program's file cannot be read"),
    Code(
        "DISC-P104", "ProgramError", r"^cannot compile an object|^a torch.nn.Module|PyTorch.*: export a",
        "the object is not a program",
    ),
    Code("DISC-P105", "ProgramError", r"needs args=|^args= |^constraints= ", "a JAX function needs argument shapes"),
    Code("DISC-P106", "ProgramError", r"was exported for", "the program was exported for another platform"),
    Code("DISC-P107", "ProgramError", r"never does|never are|no call can satisfy", "no sizes satisfy the program"),
    Code("DISC-P108", "ProgramError", r"a stage has printed", "the program is the output of a compiler stage"),
    Code("DISC-P109", "ProgramError", r"is a compiled artifact", "the program is already compiled"),
    Code(
        "DISC-P110", "ProgramError",
        r"truth value of the size|to be false while it traces|for all sizes while it traces|cannot compute with sizes",
        "a branch or an operation depends on sizes",
    ),
    Code(
        "DISC-P111", "ProgramError", r"is not an int while the function|cannot be traced with sizes that have names",
        "a size is needed as a number",
    ),
    Code("DISC-P100", "ProgramError", "", "the program cannot be compiled as it stands"),
    Code("DISC-U101", "UnsupportedError", "", "the program uses constructs that cannot be compiled"),
    # What is chosen.
    Code("DISC-O101", "OptionError", r"^the hint for .* names no symbol", "a hint names an unknown symbol"),
    Code("DISC-O102", "OptionError", r"to a JAX function|^an Exp", "shapes were given for a program that has its own"),
    Code("DISC-O103", "OptionError", r"cache holds native|^the cache directory", "the cache directory is not safe"),
    Code("DISC-O104", "OptionError", r"^no stage|no pass of ours", "a stage or a pass does not exist"),
    Code(
        "DISC-O105", "OptionError", r"^(static|donate)_arg|^dynamic|^(constraints= |no call)|is static",
        "invalid use of `jit`",
    ),
    Code("DISC-O106", "OptionError", r"^unknown target", "the target does not exist"),
    Code("DISC-O107", "OptionError", r"needs --dims", "the sizes of the arguments are missing"),
    Code("DISC-O108", "OptionError", r"the program does not fail", "the program to reduce does not fail"),
    Code(
        "DISC-O109", "OptionError", r": no schedule: |: not an archive of|has no recorded programs|no \.mlir file in",
        "a file or folder lacks what it must contain",
    ),
    Code("DISC-O110", "OptionError", r"which the options add after .* failed", "a pass that the options add failed"),
    Code("DISC-O111", "OptionError", r"^there is no option", "an option does not exist"),
    Code("DISC-O112", "OptionError", r"^the cache store", "the store of the compile cache cannot be used"),
    Code("DISC-O100", "OptionError", "", "an option has an invalid value"),
    # Calls.
    Code("DISC-S101", "ShapeError", r"^Rank mismatch", "an array has the wrong rank"),
    Code("DISC-S102", "ShapeError", r"^Shape mismatch", "an array has the wrong size in a fixed dimension"),
    Code(
        "DISC-S103", "ShapeError", r"symbolic shape constraint|^the sizes do not satisfy", "sizes violate a constraint",
    ),
    Code(
        "DISC-S104", "ShapeError", r"polymorphic shapes spec|The program takes|The program was exported",
        "sizes contradict each other",
    ),
    Code("DISC-S105", "ShapeError", r"64 bits", "a size or a number of bytes does not fit in 64 bits"),
    Code("DISC-S100", "ShapeError", "", "symbols or shapes do not match the program"),
    Code("DISC-T101", "ArgumentTypeError", r"^Dtype mismatch", "an array has the wrong dtype"),
    Code(
        "DISC-T102", "ArgumentTypeError",
        r"pytree structure|other structure|; the (call (lacks|gives)|program was exported for)",
        "arguments have the wrong structure",
    ),
    Code("DISC-T103", "ArgumentTypeError", r"^the static argument", "a static argument is not hashable"),
    Code("DISC-T100", "ArgumentTypeError", "", "an argument is not an array that the program accepts"),
    Code("DISC-R102", "RecompileError", r"would have more than \d+ programs", "a function has too many programs"),
    Code("DISC-R101", "RecompileError", "", "a call does not fit the one compiled program"),
    Code("DISC-M101", "AllocationError", "", "not enough memory for a call"),
    Code("DISC-X101", "CustomCallError", "", "a registered function reports an error"),
    Code("DISC-D101", "DeviceError", "", "a GPU is missing, or work on it failed"),
    # Files.
    Code("DISC-A101", "ArtifactError", r"native code from outside", "native code from outside is not trusted"),
    Code(
        "DISC-A102", "ArtifactError", r"^artifact format|^header format|\bversion\b",
        "the artifact has an unsupported version",
    ),
    Code(OTHER_PROCESSOR, "ArtifactError", r"made for", "the artifact is for another processor or device"),
    Code("DISC-A104", "ArtifactError", r"not registered in this process", "a custom call is not registered"),
    Code("DISC-A105", "ArtifactError", r"has a node of type", "the pytree of the artifact contains a class of yours"),
    Code(
        "DISC-A106", "ArtifactError", r"which no other process has", "the program calls functions that cannot be saved",
    ),
    Code("DISC-A107", "ArtifactError", r"the program calls LAPACK", "the program calls LAPACK, which is missing"),
    Code("DISC-A100", "ArtifactError", "", "the artifact is damaged"),
    # What is no fault of the user's.
    Code("DISC-C101", "CompilerError", r"^the process that compiles ended", "the compiler process ended unexpectedly"),
    Code("DISC-C102", "CompilerError", r"^compiling takes more", "a compile exceeds a limit"),
    Code("DISC-C100", "CompilerError", "", "a stage of the compiler failed"),
    Code("DISC-I101", "ReaderError", "", "the process that reads programs does not work"),
)  # fmt: skip
"""All codes. Of those for one class, the first whose words are found counts."""

C_CODES = (
    Code("DISC-V101", "ValueError", r"depend on data", "a plan is asked for sizes that depend on data"),
    Code("DISC-V100", "ValueError", "", "a function of the C API is called with an invalid parameter"),
)
"""Codes of the C API alone, whose functions have parameters that Python's do not have."""

ALL_CODES = (*CODES, *C_CODES)

_COMPILED = tuple((code, re.compile(code.words, re.DOTALL)) for code in CODES)


def code_of(classes: Iterable[str], message: str) -> str:
    """The code of an error, by the names of its class and of those that it derives from; "" where there is none."""
    names = set(classes)
    return next((code.name for code, words in _COMPILED if code.error in names and words.search(message)), "")


_PACKAGE = Path(__file__).parent
PLACES_OF_PAGES = (_PACKAGE / "pages" / "errors", _PACKAGE.parent / "docs" / "errors")
"""Folders of the pages: in an installed package, and in the source tree."""


def page_of(name: str) -> str | None:
    """The page of a code, in Markdown; None where there is none."""
    found = next((place / f"{name}.md" for place in PLACES_OF_PAGES if (place / f"{name}.md").is_file()), None)
    return found.read_text() if name and found else None


def advice_of(name: str) -> str:
    """The text of a code's page below its example; "" where there is no page."""
    return (page_of(name) or "").rpartition("```\n")[2].strip()


# ---- files ----------------------------------------------------------------------------------------------------------
# Errors of the system about files keep their classes, such as FileNotFoundError, and say what to do.


@contextlib.contextmanager
def reading(path: str | os.PathLike[str], wanted: str = "") -> Iterator[None]:
    """While this lasts, an OSError about a file to read says which file is near. wanted: what kind of file it is to be.

    Raises OSError, which names `path`.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None or os.fspath(error.filename) != os.fspath(path):
            raise
        advice = similar_file(path) or wanted
        text = f"{error.strerror}; {advice}" if advice else error.strerror
        raise type(error)(error.errno, text, os.fspath(path)) from None


def similar_file(path: str | os.PathLike[str]) -> str:
    """The question for a file of nearly that name, where there is no file of that name; or "".

    Names are near by what stands before their last dots, since one extension is no likeness.
    """
    import difflib

    target = Path(path)
    if target.exists():
        return ""
    try:
        names = [entry.name for entry in os.scandir(target.parent) if entry.is_file()]
    except OSError:
        return f"there is no folder {str(target.parent)!r}"
    stems = set(difflib.get_close_matches(target.stem, {Path(name).stem for name in names}))
    near = [name for name in names if Path(name).stem in stems]
    found = difflib.get_close_matches(target.name, near, 1, cutoff=0)
    return f"did you mean {str(target.with_name(found[0]))!r}?" if found else ""


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raises OSError, which names `path`, where no file can be written there: the folder is missing, or it is one."""
    target = Path(path)
    if target.is_dir():
        text = "it is a folder: name a file in it"
        raise IsADirectoryError(errno.EISDIR, text, str(target))
    if not target.parent.exists():
        text = f"there is no folder {str(target.parent)!r}: create it first"
        raise FileNotFoundError(errno.ENOENT, text, str(target))
